"""Tests of the funnel and of what a run is said to have cost, from records of units alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.llm.metering import RoleUse
from envscaler.models import Faults
from envscaler.skeleton import EnvDescription, ModelUse
from envscaler.synth.discover import Discovered
from envscaler.synth.replies import MendedReplies, Unusable
from envscaler.synth.report import SynthReport
from envscaler.synth.resume import Unit
from envscaler.synth.tally import Tally

DESK = EnvDescription(summary="A desk", introduction="It lends.")


def reported(tally: Tally) -> SynthReport:
    return tally.report(Path("library"), problems=(), spent=ModelUse(), reused=ModelUse(), faults=Faults())


def use(calls: int, tokens: int, cost: float | None = 0.5) -> ModelUse:
    return ModelUse(calls=calls, input_tokens=tokens, output_tokens=10, cost_usd=cost)


@pytest.mark.parametrize(
    ("unit", "passed", "reason"),
    [
        (Unit(env_id="a", reached="design", failed="x", unanswered=True), (), "no usable reply"),
        (Unit(env_id="a", reached="program", failed="x", unanswered=True), ("designed",), "no usable reply"),
        (Unit(env_id="a", reached="program", failed="x"), ("designed",), "does not load"),
        (
            Unit(env_id="a", reached="program", failed="x", loads=True),
            ("designed", "loads"),
            "too few working tools",
        ),
        (Unit(env_id="a", reached="program"), ("designed", "loads", "programmed"), None),
        (
            Unit(env_id="a", reached="assess", failed="x", unanswered=True, assessed_by="key"),
            ("designed", "loads", "programmed"),
            "no usable reply",
        ),
        (
            Unit(env_id="a", reached="assess", failed="x", assessed_by="key"),
            ("designed", "loads", "programmed", "assessed"),
            "not accepted",
        ),
        (
            Unit(env_id="a", reached="scenarios", assessed_by="key"),
            ("designed", "loads", "programmed", "assessed", "accepted"),
            None,
        ),
    ],
)
def test_an_environment_counts_in_every_stage_that_it_came_through(
    unit: Unit, passed: tuple[str, ...], reason: str | None
) -> None:
    tally = Tally()
    tally.built(unit)
    report = reported(tally)
    stages = ("designed", "loads", "programmed", "assessed", "accepted")
    assert tuple(stage for stage in stages if getattr(report.funnel, stage)) == passed
    assert [dropped.reason for dropped in report.dropped] == ([reason] if reason else [])


def test_what_infrastructure_failed_is_no_failure_of_the_environment() -> None:
    tally = Tally()
    tally.built(Unit(env_id="a", reached="program", failed="worker lost"), lost=True)
    assert [dropped.reason for dropped in reported(tally).dropped] == ["infrastructure, tried again by the next run"]


def test_a_task_that_is_stateful_counts_as_such_also_without_a_description() -> None:
    tally = Tally()
    tally.discovered("a", Discovered(outcome="no usable reply", stateful=True, reason="x"), useful=False)
    tally.discovered("b", Discovered(outcome="no usable reply", reason="x"), useful=False)
    tally.discovered("c", Discovered(outcome="described", description=DESK), useful=True)
    funnel = reported(tally).funnel
    assert (funnel.tasks, funnel.stateful, funnel.described) == (3, 2, 1)


def test_what_is_given_up_is_paid_for_by_what_is_accepted() -> None:
    tally = Tally()
    tally.discovered("a", Discovered(outcome="described", description=DESK, use={"discover": use(1, 90)}), useful=True)
    tally.built(Unit(env_id="a", reached="scenarios", assessed_by="key", use={"program": use(2, 290)}))
    tally.built(Unit(env_id="b", reached="program", failed="x", use={"program": use(3, 90, None)}))
    tally.built(Unit(env_id="c", reached="scenarios", assessed_by="key", use={"program": use(1, 90)}))
    report = reported(tally)
    assert report.use["program"] == ModelUse(calls=6, input_tokens=470, output_tokens=30, cost_usd=None)
    assert report.per_accepted["program"].model_dump() == {"calls": 3.0, "tokens": 250.0, "cost_usd": None}
    assert report.per_accepted["discover"].model_dump() == {"calls": 0.5, "tokens": 50.0, "cost_usd": 0.25}
    assert report.per_designed["program"].tokens == pytest.approx(500 / 3, abs=0.1)
    assert [(one.env_id, one.accepted) for one in report.uses] == [("a", True), ("b", False), ("c", True)]


def test_nothing_accepted_has_no_average() -> None:
    tally = Tally()
    tally.built(Unit(env_id="b", reached="design", failed="x", use={"design": use(3, 90)}))
    assert (reported(tally).per_accepted, reported(tally).per_designed) == ({}, {})


def test_unusable_replies_are_added_up_over_units() -> None:
    def cut(count: int, *examples: str) -> Unusable:
        return Unusable(stage="program", role="write_method", kind="cut off", count=count, examples=examples)

    tally = Tally()
    tally.built(Unit(env_id="a", reached="program", replies=(cut(2, "b", "d"),)))
    tally.built(Unit(env_id="b", reached="program", replies=(cut(3, "a", "c"),)))
    assert reported(tally).unusable == (cut(5, "a", "b", "c"),)


def test_mended_replies_are_added_up_over_tasks_and_units() -> None:
    def fence(count: int, stage: str = "program", role: str = "write_method") -> MendedReplies:
        return MendedReplies(stage=stage, role=role, mending="no fence", count=count)

    tally = Tally()
    tally.discovered(
        "x", Discovered(outcome="no usable reply", mended=(fence(1, "discover", "filter_task"),)), useful=False
    )
    tally.built(Unit(env_id="a", reached="program", mended=(fence(2),)))
    tally.built(Unit(env_id="b", reached="program", mended=(fence(3),)))
    assert reported(tally).mended == (fence(5), fence(1, "discover", "filter_task"))


def test_a_record_made_before_mended_replies_were_counted_has_none() -> None:
    assert Unit.model_validate({"env_id": "a", "reached": "program"}).mended == ()
    assert Discovered.model_validate({"outcome": "not stateful"}).mended == ()
    assert SynthReport.model_validate({"library": "L", "environments": [], "funnel": {}}).mended == ()
    assert RoleUse.model_validate({"unusable": 1}).mended == {}
