"""The example that trains SmolLM2 with TRL, from nothing: `make test-adapters` runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("trl", reason="TRL is not installed here: make test-adapters makes the place for it")

EXAMPLE = Path(__file__).parents[3] / "examples" / "grpo_smollm2.py"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_two_steps_of_grpo_are_made_and_every_episode_has_a_reward(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLE), "--library", str(tmp_path / "grpo")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    summary = json.loads(done.stdout[done.stdout.rindex("\n{\n") :])
    assert (summary["steps"], summary["episodes"]) == (2, 4)
    assert len(summary["mean_reward_of_each_step"]) == 2
    assert all(0 <= reward < 1 for reward in summary["mean_reward_of_each_step"])
    assert summary["tool_calls"] >= summary["tool_calls_answered_by_an_error"] >= 0
