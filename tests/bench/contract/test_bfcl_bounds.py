"""What BFCL's scores lie between: its recorded solutions pass, and doing nothing never does.

Part of every test run: it installs the package, 49 MB, where that is not done yet.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.bench.installation import Installation
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.rollout import RolloutSettings

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(1200)]


async def test_all_recorded_solutions_pass_without_an_error_and_doing_nothing_never_does(
    bfcl: Installation, tmp_path: Path
) -> None:
    played = {
        agent: await run_bench(bfcl, RolloutSettings(agent=agent, out=tmp_path / agent)) for agent in ("oracle", "noop")
    }
    oracle, noop = bench_report([played["oracle"].run, played["noop"].run]).runs
    assert (oracle.total.official.value, oracle.total.tasks, oracle.left_out) == (1.0, 800, 0)
    assert oracle.recorded == {"failed": 0, "raised": 0}
    assert oracle.total.floor == 0.0
    assert oracle.total.ceiling == 1.0
    assert (noop.total.official.value, noop.total.tasks, noop.left_out) == (0.0, 800, 0)
