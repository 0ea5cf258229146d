"""Several tries at one task, grouped by the final state that they come to, and what follows: solution and rivals.

The tries are the plan that the task was written with and runs of a model that plays it as an agent. Never is the
shortest run that passes the checks the solution: that would select what exploits them. Checks are not known here.

Source: ours; the paper has no recorded solutions.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from envscaler.agents import ModelAgent
from envscaler.env.oracles import reports_failure
from envscaler.errors import ReplyError
from envscaler.models.settings import OFFLINE
from envscaler.probe import planned
from envscaler.proof.fields import Fields
from envscaler.proof.playing import Played, play
from envscaler.proof.sameness import Place, Sameness
from envscaler.proof.ways import Ways
from envscaler.rollout import STEP_LIMITS, Episode, ScenarioWorld, play_episode
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, ModelUse
from envscaler.state import JsonValue, State, encode
from envscaler.synth.plan import Executed
from envscaler.synth.shortening import bound, shortened
from envscaler.trajectory import StopReason, Trajectory

if TYPE_CHECKING:
    from envscaler.models import Models

_ALTERNATIVES = 3
"""Other runs that are kept at most."""


@dataclass(frozen=True)
class Solved:
    """What the tries at a task came to."""

    solution: tuple[SolutionCall, ...]
    played: Played
    alternatives: tuple[tuple[SolutionCall, ...], ...] = ()
    rivals: tuple[State, ...] = ()
    """Other final states that runs came to."""


@dataclass
class _Run:
    """One try."""

    calls: tuple[SolutionCall, ...]
    """Those that succeeded, with bindings."""
    played: Played
    is_plan: bool = False
    finished: bool = True
    """False for an agent that was cut off."""


@dataclass(frozen=True)
class SolverRuns:
    """Who plays a task, and how often."""

    agent: ModelAgent | None = None
    count: int = 0

    @classmethod
    def of(cls, models: Models, count: int | None) -> SolverRuns:
        """The builder's model as an agent with tools.

        Args:
            count: None: two runs. The embedded offline model plays none: it could only repeat the plan of the writer.
        """
        model = models.chat("builder")
        wanted = 2 if count is None else count
        return cls(ModelAgent(model), wanted) if wanted and model.name != OFFLINE else NO_RUNS


NO_RUNS = SolverRuns()


@dataclass
class Solver:
    """Tries one task."""

    skeleton: EnvSkeleton
    sandbox: Sandbox
    solver_runs: SolverRuns = NO_RUNS
    told: list[str] = field(default_factory=list)
    """Why a run was no use, one clause each."""
    use: list[ModelUse] = field(default_factory=list)
    """What each run cost."""

    async def solve(self, scenario: Scenario, plan: Executed | None) -> Solved | str:
        """The solution of a scenario, or why there is none.

        Args:
            scenario: without checks.
            plan: what the plan of its writer came to; None: there is none.

        Raises:
            ProgramError: if the program cannot be built from the initial state.
            SandboxError, BudgetExhausted, EndpointUnavailable: infrastructure.
        """
        runs = await self._planned(scenario, plan)
        for sample in range(self.solver_runs.count):
            run = await self._played(scenario, sample)
            if run is not None:
                runs.append(run)
        if len(runs) == 1 and runs[0].is_plan:
            return Solved(runs[0].calls, runs[0].played)
        fault = "the writer of the task gave no plan" if plan is None else plan.fault
        if not runs:
            return fault or "no run came to an end"
        sameness = await self._sameness(scenario, runs)
        chosen = _chosen(runs, sameness)
        if not chosen:
            return f"{fault}, and runs do not agree on what the task comes to"
        target = sameness.text(chosen[0].played.final)
        rivals = {sameness.text(run.played.final): run.played.final for run in runs if any(run.played.changed)}
        rivals.pop(target, None)
        ways = [await self._way(scenario, run, sameness) for run in chosen]
        # The plan stays as it was written, and before others of its length.
        (solution, played), *others = sorted(ways, key=lambda way: len(way[0]))
        distinct = {way_text(calls): calls for calls, _ in others if way_text(calls) != way_text(solution)}
        alternatives = tuple(distinct.values())[:_ALTERNATIVES]
        return Solved(solution, played, alternatives, tuple(rivals.values()))

    async def _planned(self, scenario: Scenario, plan: Executed | None) -> list[_Run]:
        if plan is None or plan.fault is not None:
            return []
        played = await play(self.skeleton, scenario, planned(plan.solution), self.sandbox)
        return [_Run(plan.solution, played, is_plan=True)]

    async def _played(self, scenario: Scenario, sample: int) -> _Run | None:
        """One run of the agent, and what its calls do without those that failed."""
        assert self.solver_runs.agent is not None
        world = ScenarioWorld(self.skeleton, scenario, self.sandbox, sample=sample, observations="json")
        episode = await play_episode(world, self.solver_runs.agent, step_limit=STEP_LIMITS["non-conversation"])
        self.use += episode.trajectory.use.values()
        if episode.failure is not None:
            self._require_own_fault(episode, sample)
            return None
        calls = bound(*_successful(episode.trajectory), scenario.initial_state, scenario.task)
        played = await play(self.skeleton, scenario, planned(calls), self.sandbox)
        if not played.succeeded:
            self.told.append(f"run {sample + 1}: played again, its calls do not succeed")
            return None
        return _Run(calls, played, finished=episode.trajectory.stop == StopReason.FINISHED)

    def _require_own_fault(self, episode: Episode, sample: int) -> None:
        if not isinstance(episode.failure, ReplyError):
            assert episode.failure is not None
            raise episode.failure
        self.told.append(f"run {sample + 1}: {episode.failure}")

    async def _sameness(self, scenario: Scenario, runs: Sequence[_Run]) -> Sameness:
        """What counts when the runs' final states are compared: what no run leaves to chance or clock."""
        exempt: set[Place] = set()
        for run in runs:
            whole = scenario.model_copy(update={"solution": run.calls})
            ways = Ways(self.skeleton, whole, run.played, Fields(self.skeleton, run.played.reset))
            otherwise = [
                await play(self.skeleton, scenario, way.calls, self.sandbox, seed=way.seed, clock=way.clock)
                for way in ways.otherwise()
            ]
            alike = [one.final for one in otherwise if one.succeeded]
            exempt |= Sameness.of(run.played.reset, run.played.final, alike).exempt
        return Sameness(runs[0].played.reset, exempt)

    async def _way(self, scenario: Scenario, run: _Run, sameness: Sameness) -> tuple[tuple[SolutionCall, ...], Played]:
        if run.is_plan:
            return run.calls, run.played
        return await shortened(run.calls, run.played, self.skeleton, scenario, self.sandbox, sameness)


def _chosen(runs: Sequence[_Run], sameness: Sameness) -> list[_Run]:
    """The runs that are right: those that agree with the plan; without one the largest group, none where two are."""
    groups: dict[str, list[_Run]] = {}
    for run in runs:
        groups.setdefault(sameness.text(run.played.final), []).append(run)
    of_plan = next((group for group in groups.values() if group[0].is_plan), None)
    if of_plan is not None:
        return of_plan
    reset = sameness.text(sameness.initial)
    able = {text: [run for run in group if run.finished] for text, group in groups.items() if text != reset}
    sizes = sorted((len(group) for group in able.values()), reverse=True)
    if not sizes or not sizes[0] or sizes[1:2] == sizes[:1]:
        return []
    return max(able.values(), key=len)


def _successful(trajectory: Trajectory) -> tuple[list[SolutionCall], list[JsonValue]]:
    """The calls of an episode that were carried out and reported no failure, and what they returned."""
    calls: list[SolutionCall] = []
    results: list[JsonValue] = []
    for step in trajectory.steps:
        for call, observation in zip(step.assistant.tool_calls, step.observations, strict=False):
            try:
                outcome = json.loads(observation.content)
            except ValueError:
                outcome = None
            if not (observation.is_error or reports_failure(outcome)):
                calls.append(SolutionCall(name=call.name, arguments=call.arguments))
                results.append(outcome)
    return calls, results


def way_text(calls: Sequence[SolutionCall]) -> bytes:
    """What tells calls from others: names and values, not where the values came from."""
    return encode([[call.name, call.arguments] for call in calls])
