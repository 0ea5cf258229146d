"""Every kind of finding has a rank and a meaning, and what a proof counts follows from its probes."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from envscaler.evidence import RIGHT, SEVERITY, WRONG, AuditKind, AuditSummary, Probe, ProbeKind, Proof, Thresholds
from envscaler.report.audit_page import MEANINGS

KINDS = ("goal", "goal", "guard")
PROBE_KINDS = tuple(kind for part in get_args(ProbeKind) for kind in get_args(part))
PROBES = st.builds(
    Probe,
    kind=st.sampled_from(PROBE_KINDS),
    what=st.just("done"),
    failed=st.sets(st.integers(0, 2)).map(lambda indices: tuple(sorted(indices))),
)


def proof(probes: tuple[Probe, ...]) -> Proof:
    return Proof(
        env_id="desk",
        scenario_id="s",
        env_digest="e",
        scenario_digest="s",
        solution_digest="x",
        method=1,
        kinds=KINDS,
        probes=probes,
    )


def test_every_kind_of_finding_has_a_rank_and_a_meaning() -> None:
    assert set(SEVERITY) == set(MEANINGS) == set(get_args(AuditKind))


def test_every_probe_is_of_what_is_right_or_wrong_or_of_doing_nothing() -> None:
    assert RIGHT | WRONG | {"noop"} == set(PROBE_KINDS)
    assert not RIGHT & WRONG


@given(st.lists(PROBES, max_size=8).map(tuple), PROBES)
def test_a_wrong_state_that_nobody_notices_raises_no_score(probes: tuple[Probe, ...], more: Probe) -> None:
    before, unnoticed = proof(probes), more.model_copy(update={"failed": ()})
    after = proof((*probes, unnoticed))
    for name in ("mutation_score", "over_edits_caught"):
        one, other = getattr(before, name), getattr(after, name)
        if unnoticed.kind in WRONG and one is not None and other is not None:
            assert other <= one
    for score in (after.mutation_score, after.over_edits_caught, after.variants_passed):
        assert score is None or 0 <= score <= 1
    assert (unnoticed in after.survivors) == (unnoticed.kind in WRONG)


def test_without_a_solution_that_was_played_no_proof_is_accepted() -> None:
    assert Thresholds(mutation_score=0, over_edits_caught=0, variants_passed=0).shortfalls(proof(())) != ()


@given(st.integers(0, 9), st.integers(0, 9))
def test_counts_add_up(one: int, other: int) -> None:
    total = AuditSummary(checks=one, raises=other) + AuditSummary(checks=other)
    assert (total.checks, total.raises, total.scenarios) == (one + other, other, 0)
