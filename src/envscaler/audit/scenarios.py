"""`audit_scenario`: what is wrong with one scenario: its state, its task, its solution, its checks.

Source: ours; what is looked for is what people found in published scenarios (`docs/audit.md`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from envscaler.audit.checks import CheckAudit
from envscaler.errors import NotJson, ProgramError
from envscaler.evidence import AuditFinding, AuditKind, AuditSummary, Probe, Proof
from envscaler.probe import planned
from envscaler.program import state_faults
from envscaler.proof import prove
from envscaler.proof.fields import Fields
from envscaler.proof.playing import play
from envscaler.sandbox import Judge, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, canonical

_MOST_FAULTS = 5
"""Faults of one state that are told."""
_HARMLESS = 0.95
"""Share of the wrong states that are noticed from which the rest is only suspected."""


@dataclass(frozen=True)
class ScenarioAudit:
    """The audit of one scenario."""

    summary: AuditSummary
    findings: tuple[AuditFinding, ...]
    proof: Proof | None
    """None where the program cannot be built from the state."""


async def audit_scenario(
    skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox, judge: Judge, proof: Proof | None = None
) -> ScenarioAudit:
    """Audit one scenario.

    Args:
        proof: a proof that is not stale; None: it is made.

    Raises:
        SandboxError: if the machinery fails.
    """
    return await _Auditing(skeleton, scenario, sandbox, judge).audit(proof)


class _Auditing:
    def __init__(self, skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox, judge: Judge) -> None:
        self._skeleton = skeleton
        self._scenario = scenario
        self._sandbox = sandbox
        self._judge = judge

    async def audit(self, proof: Proof | None) -> ScenarioAudit:
        skeleton, scenario = self._skeleton, self._scenario
        counts = {"scenarios": 1, "checks": len(scenario.checks), "without_solution": int(scenario.solution is None)}
        found = [*self._state_findings(), *await self._rule_findings()]
        try:
            proof = proof if proof is not None else await prove(skeleton, scenario, self._sandbox, self._judge)
            ran = scenario.solution is not None and not proof.unproved
            solution = planned(scenario.solution or ()) if ran else []
            played = await play(skeleton, scenario, solution, self._sandbox)
        except ProgramError as error:
            found.append(self._finding("does_not_build", str(error)))
            return ScenarioAudit(AuditSummary(**counts), tuple(found), None)
        fields = Fields(skeleton, played.reset)
        checks = CheckAudit(scenario, played, fields, self._judge, has_solution=ran)
        seen, of_checks = await checks.findings()
        found += self._proof_findings(proof)
        told = {(finding.kind, finding.check) for finding in of_checks}
        found = [*of_checks, *(one for one in found if (one.kind, one.check) not in told)]
        certain = [finding for finding in found if not finding.suspected]
        summary = AuditSummary(
            **counts,
            true_at_reset=sum(
                outcome.value is True and check.kind != "guard"
                for check, outcome in zip(scenario.checks, seen.reset, strict=True)
            ),
            raises=sum(outcome.value is None and not _is_type(outcome.error) for outcome in seen.reset),
            not_bool=sum(outcome.value is None and _is_type(outcome.error) for outcome in seen.reset),
            nondeterministic=_checks_with("nondeterministic", certain),
            never_true=_checks_with("never_true", certain),
            false_positive=_checks_with("false_positive", certain),
            proved=int(proof.solved),
        )
        return ScenarioAudit(summary, tuple(found), proof)

    # -- the state ------------------------------------------------------------------------------------------

    def _state_findings(self) -> Iterator[AuditFinding]:
        state = self._scenario.initial_state
        try:
            canonical(state)
        except NotJson as error:
            yield self._finding("state_not_json", str(error))
            return
        # The schema of an imported environment was read off prose; what differs from it proves nothing.
        imported = self._skeleton.origin.source is not None
        for fault in state_faults(state, self._skeleton.entities)[:_MOST_FAULTS]:
            place, _, says = fault.partition(": ")
            kind: AuditKind = "state_type"
            if "refer" in says or "no such" in says:
                kind = "state_reference"
            elif "one of" in says:
                kind = "state_enum"
            yield self._finding(kind, says, place=place, suspected=imported)

    async def _rule_findings(self) -> list[AuditFinding]:
        ruled = [rule for rule in self._skeleton.rules if rule.predicate]
        if not ruled:
            return []
        said = await self._judge.evaluate([rule.predicate or "" for rule in ruled], self._scenario.initial_state)
        return [
            self._finding("state_rule", f"the initial state breaks the rule ({rule.predicate})", place=rule.text)
            for rule, outcome in zip(ruled, said, strict=True)
            if outcome.value is False
        ]

    # -- what the proof shows -------------------------------------------------------------------------------

    def _proof_findings(self, proof: Proof) -> Iterator[AuditFinding]:
        scenario = self._scenario
        if any(not probe.failed for probe in proof.of("noop")) and scenario.checks:
            yield self._finding("solved_at_reset", "all checks hold before anything is done")
        if scenario.solution is not None and not proof.solved:
            missed = [probe.failed for probe in proof.of("solution")]
            says = "; ".join(proof.unproved)
            if missed:
                says = "after it these do not hold: " + "; ".join(scenario.checks[n].description for n in missed[0])
            yield self._finding("solution_fails", says)
        for fault in proof.faults:
            yield self._finding(fault.kind, fault.detail, check=scenario.checks[fault.check].description)
        for leak in proof.leaks:
            kind: AuditKind = "leaks_tool_name" if " tool " in leak else "leaks_id"
            yield self._finding(kind, leak, place=leak.rsplit(" ", 1)[-1])
        for hidden in proof.hidden:
            number = int(hidden.split()[1]) - 1
            yield self._finding("hidden_requirement", hidden, check=scenario.checks[number].description)
        if proof.solved:
            yield from self._weaknesses(proof)

    def _weaknesses(self, proof: Proof) -> Iterator[AuditFinding]:
        unnoticed = [probe for probe in proof.mutants if not probe.failed]
        if unnoticed:
            score = proof.mutation_score or 0.0
            says = f"{len(unnoticed)} of {len(proof.mutants)} wrong final states pass all checks"
            slight = score >= _HARMLESS or all(map(_is_spelling, unnoticed))
            yield self._finding("weak_checks", says, suspected=slight, examples=_told(unnoticed))
        guards = {index for index, kind in enumerate(proof.kinds) if kind == "guard"}
        edits = proof.of("over_edit")
        missed = [probe for probe in edits if not guards.intersection(probe.failed)]
        if missed:
            says = f"{len(missed)} of {len(edits)} edits that nobody asked for pass all guards"
            yield self._finding("missing_guard", says, examples=_told(missed))
        for probe in proof.of("variant", "alternative"):
            if probe.failed:
                timely = probe.what.startswith(("an hour later", "looking", "after "))
                kind: AuditKind = "order_or_clock" if timely or " before " in probe.what else "variant_fails"
                checks = [self._scenario.checks[index].description for index in probe.failed]
                says = f"an equally right way fails: {probe.what}"
                yield self._finding(kind, says, check=checks[0], examples=list(checks))

    def _finding(
        self,
        kind: AuditKind,
        says: str,
        *,
        check: str | None = None,
        place: str = "",
        suspected: bool = False,
        **evidence: JsonValue,
    ) -> AuditFinding:
        return AuditFinding(
            env_id=self._scenario.env_id,
            scenario_id=self._scenario.id,
            check=check,
            kind=kind,
            evidence={"says": says, **evidence},
            suspected=suspected,
            place=place,
        )


def _is_spelling(probe: Probe) -> bool:
    """Whether a near miss is the same word in another case."""
    other, _, value = probe.what.partition(": ")[2].partition(" instead of ")
    return probe.kind == "near_miss" and other.casefold() == value.casefold()


def _is_type(error: str | None) -> bool:
    return (error or "").startswith("TypeError: it returned ")


def _checks_with(kind: AuditKind, findings: Sequence[AuditFinding]) -> int:
    return len({finding.check for finding in findings if finding.kind == kind})


def _told(probes: Sequence[Probe]) -> list[JsonValue]:
    return [f"{probe.kind}: {probe.what}" for probe in probes[:_MOST_FAULTS]]
