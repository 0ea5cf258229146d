from __future__ import annotations

import pytest

from envscaler.bench.catalogue import BENCHMARKS, benchmark_named
from envscaler.bench.installation import Installation
from envscaler.bench.known import OWN_SOURCE, faulty_tasks, published
from envscaler.errors import UsageError


def test_what_an_installation_finds_is_added_to_what_others_reported(lamps: Installation) -> None:
    name = "multi_turn_base_0"
    recorded = {**lamps.installed.recorded}
    assert name not in faulty_tasks("bfcl", lamps.installed)
    for change, reason in (
        ({"passes": False, "reason": "state"}, "does not pass"),
        ({"raised": 2}, "fail"),
        ({"failed": 1}, "fail"),
        ({"early": 1}, "not there yet"),
        ({"turns_differ": True}, "another number"),
    ):
        wrong = {**recorded, name: recorded[name].model_copy(update=change)}
        found = faulty_tasks("bfcl", lamps.installed.model_copy(update={"recorded": wrong}))[name]
        assert reason in found.reason
        assert found.source == OWN_SOURCE


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_reported_task_says_why_and_who_says_so(name: str) -> None:
    for fault in faulty_tasks(name, None).values():
        assert fault.reason
        assert fault.source.startswith("https://")


def test_published_results_stand_under_their_columns() -> None:
    rows = {row.model: row for row in published("BFCL-MT")}
    assert rows["Qwen3-8B + SFT + RL"].scores == {"BFCL-MT": 41.88, "tau": 44.81, "ACE": 72.5}
    assert published("BFCL-MT v4") == ()


def test_a_benchmark_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="there are bfcl, bfcl-v4"):
        benchmark_named("nonsense")
