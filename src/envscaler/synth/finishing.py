"""`Finishing`: from a state and a task in it to a scenario with checks, a solution and a proof.

States and tasks are `scenarios`' business, what weak checks become `mending`'s.

Source: paper 4; that every scenario is solved and proved is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.errors import ReplyError
from envscaler.evidence import Proof, Thresholds
from envscaler.proof import prove
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import Judge, Sandbox
from envscaler.scenario import Check, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, Origin
from envscaler.state import State, diff, edits_of
from envscaler.synth.asking import Asking
from envscaler.synth.check_functions import CheckFunctions
from envscaler.synth.checks import WrittenChecks, write_checks
from envscaler.synth.clock import clock_of
from envscaler.synth.complaints import in_words
from envscaler.synth.difficulty import difficulty
from envscaler.synth.mending import Complaint, Mended, Mender
from envscaler.synth.plan import Executed, execute
from envscaler.synth.solving import Solved, Solver, SolverRuns, way_text

SOLVE = "solve"
"""Stage that the runs of solvers are counted for."""
_TOLD = 3
"""Reasons why a scenario is not accepted that its sentence names at most."""


@dataclass(frozen=True)
class Drafted:
    """A state and a task in it, before there are checks."""

    id: str
    index: int
    state: State
    task: t.WriteTaskReply
    executed: Executed | None
    """None when the writer gave no plan."""
    asking: Asking
    task_seed: int
    """One seed for task, checklist and checks: a model that draws makes the same draft again from it."""
    episode_seed: int
    wanted: t.Wanted | None = None
    """What it is a harder or easier version of."""


@dataclass(frozen=True)
class Proved:
    """A scenario, its proof, and what the proof lacks."""

    scenario: Scenario
    proof: Proof
    shortfalls: tuple[str, ...] = ()

    @property
    def accepted(self) -> bool:
        """Whether the proof reaches the thresholds."""
        return not self.shortfalls

    @property
    def reason(self) -> str:
        """Why it is not accepted, with the scenario's id."""
        more = f"; and {len(self.shortfalls) - _TOLD} more reasons" if len(self.shortfalls) > _TOLD else ""
        return f"{self.scenario.id}: {'; '.join(self.shortfalls[:_TOLD])}{more}"


class Finishing:
    """Finishes the scenarios of one environment."""

    def __init__(
        self,
        skeleton: EnvSkeleton,
        *,
        known: t.EnvironmentInputs,
        sandbox: Sandbox,
        origin: Origin,
        thresholds: Thresholds,
        solver_runs: SolverRuns,
        checks_per_call: int,
    ) -> None:
        self._skeleton = skeleton
        self._known = known
        self._sandbox = sandbox
        self._origin = origin
        self._thresholds = thresholds
        self._solver_runs = solver_runs
        self._checks_per_call = checks_per_call

    async def finish(self, drafted: Drafted, judge: Judge) -> Proved | str:
        """The scenario with its proof; or why there is none."""
        bare = self._bare(drafted)
        solver = Solver(self._skeleton, self._sandbox, self._solver_runs)
        solved = await solver.solve(bare, drafted.executed)
        drafted.asking.count(SOLVE, solver.use)
        try:
            written = await self._checks(drafted, solved, judge)
        except ReplyError as fault:
            return f"{drafted.id}: {fault}"
        if all(check.kind == "guard" for check in written.checks):
            why = f" ({'; '.join(written.dropped)})" if written.dropped else ""
            return f"{drafted.id}: no check asks for a change: all that can be run hold before anything is done{why}"
        dropped = [*written.dropped, *solver.told]
        scenario = bare.model_copy(update={"checks": written.checks})
        accepted: tuple[State, ...] = ()
        proof: Proof | None = None
        if isinstance(solved, str):
            dropped.append(f"solution: {solved}")
        else:
            scenario, mended = await self._mended(drafted, scenario, solved, dropped, judge)
            accepted, proof = mended.accepted, mended.proof
            dropped += [f"checks: {_rivalry(rival, mended)}" for rival in accepted]
        origin = self._origin.model_copy(update={"use": drafted.asking.use, "dropped": tuple(dropped)})
        scenario = scenario.model_copy(update={"origin": origin})
        if proof is None or scenario.solution is None:
            proof = await prove(self._skeleton, scenario, self._sandbox, judge)
        return Proved(scenario, proof, shortfalls(scenario, proof, self._thresholds))

    def _bare(self, drafted: Drafted) -> Scenario:
        """The scenario as an agent sees it: without checks and solution."""
        return Scenario(
            id=drafted.id,
            env_id=self._skeleton.id,
            env_digest=self._skeleton.digest,
            initial_state=drafted.state,
            task=drafted.task.task.strip(),
            clock=clock_of(drafted.state),
            seed=drafted.episode_seed,
            user_profile=drafted.task.user_profile.told if drafted.task.user_profile is not None else None,
        )

    async def _checks(self, drafted: Drafted, solved: Solved | str, judge: Judge) -> WrittenChecks:
        other = solved.played.final if isinstance(solved, Solved) else None
        if other is None and drafted.executed is not None:
            other = drafted.executed.final_state
        return await write_checks(
            self._inputs(drafted),
            other_state=other,
            per_call=self._checks_per_call,
            asking=drafted.asking,
            judge=judge,
        )

    def _inputs(self, drafted: Drafted) -> t.WriteChecklistInputs:
        return t.WriteChecklistInputs(
            **dict(self._known),
            state=drafted.state,
            clock=clock_of(drafted.state),
            task=drafted.task.task,
            index=drafted.index,
            seed=drafted.task_seed,
            wanted=drafted.wanted,
        )

    async def _mended(
        self, drafted: Drafted, scenario: Scenario, solved: Solved, dropped: list[str], judge: Judge
    ) -> tuple[Scenario, Mended]:
        """The scenario with its solution and the best checks that can be had, and their proof."""
        scenario = scenario.model_copy(update={"solution": solved.solution})
        if not await _missed(scenario.checks, drafted.state, solved.played.final, judge):
            others = await self._alternatives(drafted, scenario.checks, dropped, judge)
            ways = {way_text(calls): calls for calls in (*others, *solved.alternatives)}
            scenario = scenario.model_copy(update={"alternatives": tuple(ways.values())})

        functions = CheckFunctions(
            self._inputs(drafted).model_copy(update={"task": scenario.task}),
            other_state=solved.played.final,
            per_call=self._checks_per_call,
            asking=drafted.asking,
            judge=judge,
        )

        async def rewrite(asked: Sequence[Complaint], number: int) -> Sequence[Check | None]:
            questions = [
                t.CheckQuestion(item=check.description, position=index, fault=fault, previous=check.source)
                for index, check, fault in asked
            ]
            # Another sample in each round, or a cache would repeat what did not help.
            made = await functions.write(questions, sample=drafted.index + 1000 * (number + 1))
            return [reply if isinstance(reply, Check) else None for reply in made]

        mended = await Mender(self._skeleton, self._sandbox, judge).mend(
            scenario,
            rivals=solved.rivals,
            # What the embedded model says follows from task and state; a fault does not change it.
            rewrite=None if drafted.asking.is_offline(roles.WRITE_CHECK) else rewrite,
            rounds=drafted.asking.attempts,
        )
        scenario = mended.scenario
        if not mended.proof.solved:
            failed = {index for probe in mended.proof.of("solution") for index in probe.failed}
            missed = [check.description for index, check in enumerate(scenario.checks) if index in failed]
            why = "; ".join(missed or mended.proof.unproved)
            dropped.append(f"solution: after it these checks do not hold: {why}")
            return scenario.model_copy(update={"solution": None, "alternatives": ()}), mended
        measured = await difficulty(
            scenario, solved.played.final, sum(solved.played.changed), self._skeleton, self._sandbox
        )
        return scenario.model_copy(update={"difficulty": measured}), mended

    async def _alternatives(
        self, drafted: Drafted, checks: Sequence[Check], dropped: list[str], judge: Judge
    ) -> tuple[tuple[SolutionCall, ...], ...]:
        """The writer's other plans that run and after which every check holds; what is wrong with the rest is noted."""
        kept: list[tuple[SolutionCall, ...]] = []
        for number, plan in enumerate(drafted.task.alternatives):
            executed = await execute(
                plan,
                self._skeleton,
                drafted.state,
                seed=drafted.episode_seed,
                clock=clock_of(drafted.state),
                sandbox=self._sandbox,
            )
            fault = executed.fault
            if fault is None and (missed := await _missed(checks, drafted.state, executed.final_state, judge)):
                fault = f"after it these checks do not hold: {'; '.join(missed)}"
            if fault is None:
                kept.append(executed.solution)
            else:
                dropped.append(f"alternative {number}: {fault}")
        return tuple(kept)


def shortfalls(scenario: Scenario, proof: Proof, thresholds: Thresholds) -> tuple[str, ...]:
    """Why a scenario is not accepted, one clause each: what was seen when it was made, and what its proof lacks."""
    told = [reason for reason in scenario.origin.dropped if reason.startswith(("solution: ", "checks: "))]
    lacking = [reason for reason in thresholds.shortfalls(proof) if not told or reason not in proof.unproved]
    return (*told, *lacking)


def _rivalry(rival: State, mended: Mended) -> str:
    edits = edits_of(diff(mended.examined.played.final, rival))
    return (
        "a run that comes to something else satisfies them all, so that they, or the task, leave open what is right; "
        f"it differs from the solution in that {in_words(edits, mended.examined)}"
    )


async def _missed(checks: Sequence[Check], initial: State, final: State, judge: Judge) -> list[str]:
    """Descriptions of the checks that do not hold of a final state."""
    outcomes = await judge.check(
        [check.source for check in checks], initial_state=initial, final_state=final, clock=clock_of(initial)
    )
    return [check.description for check, outcome in zip(checks, outcomes, strict=True) if outcome.value is not True]
