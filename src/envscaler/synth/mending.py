"""`Mender`: makes the checks of a scenario better where its proof shows that they are weak, and never worse.

Guards are derived by program; single checks go back to their writer with what they did wrong. How checks are asked for
is the caller's business.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from envscaler.evidence import Proof
from envscaler.proof import Examined, examine
from envscaler.proof.fields import Fields
from envscaler.sandbox import Judge, Sandbox
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State
from envscaler.synth.complaints import complaints
from envscaler.synth.guards import guards

Complaint = tuple[int, Check, str]
"""Index of a check, the check, and what is wrong with it."""
Rewrite = Callable[[Sequence[Complaint], int], Awaitable[Sequence[Check | None]]]
"""Asks for checks anew, in some round; for each the new one, None where there is no other."""


@dataclass(frozen=True)
class Mended:
    """A scenario, its proof, and what its checks accept although it is wrong."""

    scenario: Scenario
    examined: Examined
    accepted: tuple[State, ...] = ()
    """Final states of runs that came to something else than the solution, and that every check accepts."""

    @property
    def proof(self) -> Proof:
        return self.examined.proof

    def is_better_than(self, other: Mended) -> bool:
        """Whether something is better and nothing is worse."""
        ours, theirs = self._standing(), other._standing()
        return ours != theirs and all(one >= two for one, two in zip(ours, theirs, strict=True))

    def _standing(self) -> tuple[float, ...]:
        proof = self.proof
        shares = (proof.variants_passed, proof.mutation_score, proof.over_edits_caught)
        counts = (proof.faults, proof.true_at_reset, proof.hidden, self.accepted)
        return (
            proof.solved,
            *(1.0 if share is None else share for share in shares),
            *(-len(list_) for list_ in counts),
        )


class Mender:
    """Mends scenarios of one environment."""

    def __init__(self, skeleton: EnvSkeleton, sandbox: Sandbox, judge: Judge) -> None:
        self._skeleton = skeleton
        self._sandbox = sandbox
        self._judge = judge

    async def mend(
        self, scenario: Scenario, *, rivals: Sequence[State], rewrite: Rewrite | None, rounds: int
    ) -> Mended:
        """The scenario with the best checks that could be had.

        Args:
            rivals: final states that runs came to and that differ from the solution's.
            rewrite: None: the writer would say the same again.
            rounds: how often checks go back at most.

        Raises:
            ProgramError: if the program cannot be built from the initial state.
            SandboxError: if the machinery fails.
        """
        best = await self._tried(scenario, rivals)
        if not best.examined.right:
            return best
        best = await self._guarded(best, rivals)
        written = {check.source for check in scenario.checks}
        for number in range(rounds if rewrite is not None else 0):
            assert rewrite is not None
            found = complaints(best.scenario, best.examined, best.accepted)
            checks = best.scenario.checks
            asked = [(index, checks[index], fault) for index, fault in found.items() if index < len(scenario.checks)]
            replies = await rewrite(asked, number) if asked else ()
            new = [
                (index, reply)
                for (index, *_), reply in zip(asked, replies, strict=True)
                if reply is not None and reply.source not in written
            ]
            if not new:
                break
            written.update(reply.source for _, reply in new)
            for index, reply in new:
                checks = best.scenario.checks
                changed = (*checks[:index], reply, *checks[index + 1 :])
                tried = await self._tried(best.scenario.model_copy(update={"checks": changed}), rivals)
                best = tried if tried.is_better_than(best) else best
        return best

    async def _tried(self, scenario: Scenario, rivals: Sequence[State]) -> Mended:
        examined = await examine(self._skeleton, scenario, self._sandbox, self._judge)
        accepted = []
        sameness = examined.sameness
        right = {sameness.text(final) for final in examined.right} if sameness is not None else set()
        for rival in rivals if sameness is not None else ():
            if sameness is not None and sameness.text(rival) in right:
                continue
            outcomes = await self._judge.check(
                [check.source for check in scenario.checks],
                initial_state=examined.played.reset,
                final_state=rival,
                clock=examined.played.clock,
            )
            if all(outcome.value is True for outcome in outcomes):
                accepted.append(rival)
        return Mended(scenario, examined, tuple(accepted))

    async def _guarded(self, best: Mended, rivals: Sequence[State]) -> Mended:
        """With a guard for each part of the state in which an edit too many goes unnoticed by all guards."""
        proof, played = best.proof, best.examined.played
        own = {index for index, kind in enumerate(proof.kinds) if kind == "guard"}
        open_parts = dict.fromkeys(
            str(mutant.edits[0][0][0])
            for mutant, failed in best.examined.wrong
            if mutant.kind == "over_edit" and not own.intersection(failed)
        )
        fields, sameness = Fields(self._skeleton, played.reset), best.examined.sameness
        assert sameness is not None

        def exempt(path: Sequence[str]) -> bool:
            value = played.reset
            for token in path:
                value = value[token]
            return fields.is_kept(path, value) or sameness.is_exempt(path, played.reset)

        language = self._skeleton.origin.language
        derived = guards(played.reset, best.examined.right, open_parts, exempt=exempt, language=language)
        # One by one only where they do not go together: each trial is a proof.
        for added in ([derived] if derived else []) + [(guard,) for guard in derived if len(derived) > 1]:
            checks = (*best.scenario.checks, *added)
            tried = await self._tried(best.scenario.model_copy(update={"checks": checks}), rivals)
            if tried.is_better_than(best):
                best = tried
                if added is derived:
                    break
        return best
