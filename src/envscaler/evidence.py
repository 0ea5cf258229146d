"""`Proof` and `AuditReport`: what was seen when a scenario's checks, and a library, were tried.

How they are tried is `proof`'s and `audit`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, get_args

from envscaler.record import Record
from envscaler.scenario import CheckKind
from envscaler.skeleton import ModelUse
from envscaler.state import JsonValue

# -- proof --------------------------------------------------------------------------------------------------

MutantKind = Literal["undone", "altered", "near_miss", "swapped", "left_out", "misdirected"]
"""A final state that is wrong. `undone`: a change of the solution taken back; `altered`: a changed value replaced by
another one; `near_miss`: by one that looks like it (`unverified`, another case, one more or less); `swapped`: a change
made to a neighbour instead; `left_out`: the solution without one of its calls; `misdirected`: one call made with a
neighbour's id."""
ProbeKind = Literal["noop", "solution", "alternative", "variant", "over_edit"] | MutantKind
"""`noop`: nothing was done; `solution`, `alternative`: a recorded one was played; `variant`: an equally right way;
`over_edit`: the solved state with a change nobody asked for."""
WRONG: frozenset[str] = frozenset({"over_edit", *get_args(MutantKind)})
"""Kinds of probes that some check has to notice."""
RIGHT: frozenset[str] = frozenset({"solution", "alternative", "variant"})
"""Kinds after which every check has to hold."""


class Probe(Record):
    """One final state, made in a named way, and which checks do not hold of it."""

    kind: ProbeKind
    what: str
    """What was done, in a few words: a place with its value before and after, or calls."""
    failed: tuple[int, ...] = ()
    """Indices of the checks that are not True of it."""


class CheckFault(Record):
    """What a check does that none may do, on whatever state."""

    check: int
    kind: Literal["raises", "not_bool", "mutates", "nondeterministic"]
    detail: str


class Proof(Record):
    """What the checks of one scenario say of doing nothing, its solution, equally right ways and wrong final states."""

    env_id: str
    scenario_id: str
    env_digest: str
    scenario_digest: str
    solution_digest: str
    """Of solution and alternatives. With the two others it says whether the proof is stale."""
    method: int
    """Version of the probing; proofs by an older one are stale."""
    kinds: tuple[CheckKind, ...]
    """Of each check: as it counts for the reward."""
    probes: tuple[Probe, ...]
    faults: tuple[CheckFault, ...] = ()
    hidden: tuple[str, ...] = ()
    """Values that a check demands and that stand nowhere an agent can find them, one sentence each."""
    leaks: tuple[str, ...] = ()
    """What the task gives away: tool names, ids that a query would give; one sentence each."""
    unproved: tuple[str, ...] = ()
    """What could not be tried, with the reason (no solution …)."""

    def of(self, *kinds: ProbeKind) -> tuple[Probe, ...]:
        """The probes of these kinds."""
        return tuple(probe for probe in self.probes if probe.kind in kinds)

    @property
    def solved(self) -> bool:
        """Whether the recorded solution ran and every check holds after it."""
        return any(not probe.failed for probe in self.of("solution"))

    @property
    def true_at_reset(self) -> tuple[int, ...]:
        """Indices of goal checks that hold before anything is done."""
        failed = {index for probe in self.of("noop") for index in probe.failed}
        return tuple(index for index, kind in enumerate(self.kinds) if kind == "goal" and index not in failed)

    @property
    def mutants(self) -> tuple[Probe, ...]:
        """The wrong final states, over-edits left aside."""
        return tuple(probe for probe in self.probes if probe.kind in get_args(MutantKind))

    @property
    def survivors(self) -> tuple[Probe, ...]:
        """The wrong final states that no check notices."""
        return tuple(probe for probe in self.probes if probe.kind in WRONG and not probe.failed)

    @property
    def mutation_score(self) -> float | None:
        """Share of the mutants that some check notices; None without mutants."""
        return _share(bool(probe.failed) for probe in self.mutants)

    def check_score(self, check: int) -> float | None:
        """Share of the wrong final states that this check notices; None without any."""
        return _share(check in probe.failed for probe in self.probes if probe.kind in WRONG)

    @property
    def over_edits_caught(self) -> float | None:
        """Share of the over-edits that a guard notices; None without any."""
        guards = {index for index, kind in enumerate(self.kinds) if kind == "guard"}
        return _share(bool(guards.intersection(probe.failed)) for probe in self.of("over_edit"))

    @property
    def variants_passed(self) -> float | None:
        """Share of the equally right ways after which every check holds; None without any."""
        return _share(not probe.failed for probe in self.of("variant", "alternative"))


class Thresholds(Record):
    """What a proof has to reach for its scenario to be accepted."""

    mutation_score: float = 0.8
    over_edits_caught: float = 0.8
    variants_passed: float = 1.0
    max_leaks: int | None = None
    """None: what a task gives away is told and does not count."""

    def shortfalls(self, proof: Proof) -> tuple[str, ...]:
        """Why a scenario is not accepted, one clause each; empty when it is."""
        out = [f"check {fault.check + 1} {_FAULTS[fault.kind]}: {fault.detail}" for fault in proof.faults]
        out += [f"goal check {index + 1} holds before anything is done" for index in proof.true_at_reset]
        out += proof.unproved
        if not proof.unproved and not proof.solved:
            out.append("not every check holds after the solution")
        for what, reached, wanted in (
            ("of the wrong final states are noticed", proof.mutation_score, self.mutation_score),
            ("of the edits too many are noticed by a guard", proof.over_edits_caught, self.over_edits_caught),
            ("of the equally right ways pass", proof.variants_passed, self.variants_passed),
        ):
            if reached is not None and reached < wanted:
                out.append(f"{reached:.0%} {what}, {wanted:.0%} are asked for")
        out += proof.hidden
        if self.max_leaks is not None and len(proof.leaks) > self.max_leaks:
            out += proof.leaks
        return tuple(out)


_FAULTS = {
    "raises": "raises",
    "not_bool": "gives no bool",
    "mutates": "changes the state that it looks at",
    "nondeterministic": "does not say the same twice",
}


def _share(holds: Iterable[bool]) -> float | None:
    values = list(holds)
    return sum(values) / len(values) if values else None


# -- audit --------------------------------------------------------------------------------------------------

AuditKind = Literal[
    # of a check
    "false_positive",
    "true_at_reset",
    "always_true",
    "never_true",
    "tautology",
    "raises",
    "not_bool",
    "nondeterministic",
    "mutates",
    "vacuous",
    "substring",
    "created_ids",
    "whole_state",
    "hidden_requirement",
    # of a scenario
    "solution_fails",
    "solved_at_reset",
    "weak_checks",
    "missing_guard",
    "variant_fails",
    "order_or_clock",
    "leaks_tool_name",
    "leaks_id",
    # of its state
    "state_type",
    "state_enum",
    "state_reference",
    "state_rule",
    "state_not_json",
    # of an environment
    "does_not_build",
    "tool_without_effect",
    "unreachable_tool",
    "rule_not_enforced",
    "schema_differs",
    "query_writes",
    "failure_writes",
    "program_nondeterministic",
    "reset_incomplete",
    "unbounded",
]
"""What can be wrong, the worst of each kind of thing first."""

SEVERITY: dict[str, int] = {
    **dict.fromkeys(("does_not_build", "solution_fails", "false_positive", "solved_at_reset", "never_true"), 0),
    **dict.fromkeys(("always_true", "tautology", "raises", "not_bool", "nondeterministic", "mutates"), 1),
    **dict.fromkeys(("program_nondeterministic", "state_not_json", "query_writes", "failure_writes"), 1),
    **dict.fromkeys(("reset_incomplete", "unbounded"), 1),
    **dict.fromkeys(("true_at_reset", "vacuous", "substring", "created_ids", "hidden_requirement", "whole_state"), 2),
    **dict.fromkeys(("weak_checks", "missing_guard", "variant_fails", "order_or_clock"), 2),
    **dict.fromkeys(("state_type", "state_enum", "state_reference", "state_rule"), 2),
    **dict.fromkeys(("tool_without_effect", "unreachable_tool", "rule_not_enforced", "schema_differs"), 3),
    **dict.fromkeys(("leaks_tool_name", "leaks_id"), 4),
}
"""0: rewards what is wrong, or cannot be solved; 4: a hint."""


class AuditFinding(Record):
    """One thing that is wrong, with the smallest example that shows it."""

    env_id: str
    scenario_id: str | None = None
    check: str | None = None
    """Sentence of the check."""
    kind: AuditKind
    evidence: dict[str, JsonValue]
    """`says`: one sentence. Beside it what shows it: `state` (edits of the initial state, pointer and value), `call`,
    `place`, `value` …"""
    suspected: bool = False
    """Whether it takes a judgement: then it is told and not counted."""
    place: str = ""
    """Tool, rule or JSON pointer that it is about, where it is not about a check."""


class AuditSummary(Record):
    """What an audit counted."""

    environments: int = 0
    scenarios: int = 0
    checks: int = 0
    true_at_reset: int = 0
    raises: int = 0
    not_bool: int = 0
    nondeterministic: int = 0
    never_true: int = 0
    false_positive: int = 0
    proved: int = 0
    """Scenarios whose solution ran and satisfies every check."""
    without_solution: int = 0

    def __add__(self, other: AuditSummary) -> AuditSummary:
        ours, theirs = self.model_dump(), other.model_dump()
        return AuditSummary(**{name: count + theirs[name] for name, count in ours.items()})


class EnvironmentAudit(Record):
    """The audit of one environment with its scenarios: audit.json of its folder."""

    env_id: str
    env_digest: str
    scenarios_digest: str
    """Of all its scenarios and their solutions; with the digest of the environment it says whether this is stale."""
    method: int
    summary: AuditSummary
    findings: tuple[AuditFinding, ...] = ()
    grades: dict[str, Any] = {}
    """Properties that hold or do not: isolation, determinism, oracle reaches the maximum …"""


class Solving(Record):
    """How a model was let play the scenarios that came without a solution, before they were audited."""

    model: str
    scenarios: int
    """Scenarios that came without a solution."""
    solved: int
    """Those of them that an episode in the library solves now."""
    run: str | None = None
    """Folder of the run that the model's episodes are in; None when nothing was left to solve."""
    played: int = 0
    """Episodes played now."""
    unfinished: int = 0
    """Episodes that the machinery cut short; the same command plays them again."""
    skipped: tuple[str, ...] = ()
    """Why some were not played, a sentence for each reason."""
    spent: ModelUse = ModelUse()
    """What was spent now."""


class AuditReport(Record):
    """An audit of a whole library."""

    summary: AuditSummary
    findings: tuple[AuditFinding, ...] = ()
    solving: Solving | None = None
    """None: no model was asked."""
