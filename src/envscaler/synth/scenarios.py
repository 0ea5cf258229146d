"""Scenarios of one environment: initial states, tasks, checks, and solutions that were executed.

A scenario that cannot be made costs nothing but itself.

Source: paper 4, ScenGenerator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from envscaler.engine import bounded_map
from envscaler.errors import ReplyError
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import Judge, Program, Sandbox
from envscaler.scenario import Check, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, Origin
from envscaler.state import State
from envscaler.synth.asking import Asking
from envscaler.synth.checks import write_checks
from envscaler.synth.clock import clock_of
from envscaler.synth.plan import Executed, difficulty, execute
from envscaler.synth.seeds import derived_seed
from envscaler.synth.states import known_of, write_state

_AT_ONCE = 4
_EARLIER = 20
"""Earlier tasks that the writer is shown."""


@dataclass(frozen=True)
class Drafted:
    """A state and a task in it, before there are checks."""

    index: int
    state: State
    task: t.WriteTaskReply
    executed: Executed | None
    """None when the writer gave no plan."""
    asking: Asking


def scenario_id(env_id: str, index: int) -> str:
    """The id of the scenario with that index, from 0."""
    return f"{env_id}-s{index + 1:03d}"


class ScenarioWriter:
    """Makes scenarios of one environment."""

    def __init__(
        self,
        skeleton: EnvSkeleton,
        *,
        seed: int,
        asking: Asking,
        sandbox: Sandbox,
        origin: Origin,
        min_state_distance: float,
    ) -> None:
        """
        Args:
            asking: asked apart for each scenario, so that each one's use is its own.
            origin: what the origin of every scenario says beside its use.
        """
        self._skeleton = skeleton
        self._known = known_of(skeleton)
        self._seed = seed
        self._asking = asking
        self._sandbox = sandbox
        self._origin = origin
        self._min_state_distance = min_state_distance

    async def write(self, indices: Sequence[int], earlier: Sequence[Scenario] = ()) -> list[Scenario | str]:
        """Make the scenarios with these indices: for each the scenario, or why there is none.

        Args:
            earlier: scenarios that are there; states and tasks differ from theirs.
        """
        async with self._sandbox.judge() as judge:
            outcomes = bounded_map(self._finished, self._drafts(indices, earlier, judge), limit=_AT_ONCE)
            return [outcome async for outcome in outcomes]

    async def _drafts(
        self, indices: Sequence[int], earlier: Sequence[Scenario], judge: Judge
    ) -> AsyncIterator[Drafted | str]:
        # One after the other: each state and task has to differ from those before it.
        states = [scenario.initial_state for scenario in earlier]
        tasks = [scenario.task for scenario in earlier]
        for index in indices:
            try:
                drafted = await self._draft(index, states, tasks, judge)
            except ReplyError as fault:
                yield f"{scenario_id(self._skeleton.id, index)}: {fault}"
                continue
            states.append(drafted.state)
            tasks.append(drafted.task.task)
            yield drafted

    async def _draft(self, index: int, states: Sequence[State], tasks: Sequence[str], judge: Judge) -> Drafted:
        asking = self._asking.apart()
        skeleton = self._skeleton
        written = await write_state(
            self._known,
            Program(skeleton.source, skeleton.class_name),
            purpose="scenario",
            index=index,
            seed=derived_seed(self._seed, "state", index),
            asking=asking,
            sandbox=self._sandbox,
            judge=judge,
            others=states,
            min_distance=self._min_state_distance,
        )
        executions: list[Executed | None] = []

        async def doubt(reply: t.WriteTaskReply) -> str | None:
            fault = _task_fault(reply, skeleton, tasks)
            if fault is not None:
                return fault
            executed = None
            if reply.plan:
                executed = await execute(
                    reply.plan,
                    skeleton,
                    written.state,
                    seed=self._episode_seed(index),
                    clock=clock_of(written.state),
                    sandbox=self._sandbox,
                )
            executions.append(executed)
            # A task can be good although its plan is not: only the first such plan goes back.
            return executed.fault if executed is not None and len(executions) == 1 else None

        task = await asking(
            roles.WRITE_TASK,
            t.WriteTaskInputs(
                **dict(self._known),
                state=written.state,
                clock=clock_of(written.state),
                index=index,
                seed=self._task_seed(index),
                earlier=tuple(tasks[-_EARLIER:]),
            ),
            doubt=doubt,
            sample=index,
        )
        return Drafted(index=index, state=written.state, task=task, executed=executions[-1], asking=asking)

    async def _finished(self, drafted: Drafted | str) -> Scenario | str:
        if isinstance(drafted, str):
            return drafted
        async with self._sandbox.judge() as judge:
            return await self._checked(drafted, judge)

    async def _checked(self, drafted: Drafted, judge: Judge) -> Scenario | str:
        skeleton, index, executed = self._skeleton, drafted.index, drafted.executed
        own_id = scenario_id(skeleton.id, index)
        runs = executed is not None and executed.fault is None
        try:
            written = await write_checks(
                self._known,
                state=drafted.state,
                other_state=executed.final_state if executed is not None else None,
                clock=clock_of(drafted.state),
                task=drafted.task.task,
                index=index,
                # The seed of its task: a model without memory makes the same draft again and finds its checks by it.
                seed=self._task_seed(index),
                asking=drafted.asking,
                judge=judge,
            )
        except ReplyError as fault:
            return f"{own_id}: {fault}"
        if all(check.kind == "guard" for check in written.checks):
            why = f" ({'; '.join(written.dropped)})" if written.dropped else ""
            return f"{own_id}: no check asks for a change: all that can be run hold before anything is done{why}"
        dropped = list(written.dropped)
        solved = False
        alternatives: tuple[tuple[SolutionCall, ...], ...] = ()
        if executed is None:
            dropped.append("solution: the writer of the task gave no plan")
        elif not runs:
            dropped.append(f"solution: {executed.fault}")
        else:
            missed = await _missed(written.checks, drafted.state, executed.final_state, judge)
            solved = not missed
            if missed:
                dropped.append(f"solution: after the plan these checks do not hold: {'; '.join(missed)}")
            if solved:
                alternatives = await self._alternatives(drafted, written.checks, dropped, judge)
        return Scenario(
            id=own_id,
            env_id=skeleton.id,
            env_digest=skeleton.digest,
            initial_state=drafted.state,
            task=drafted.task.task.strip(),
            checks=written.checks,
            solution=executed.solution if executed is not None and solved else None,
            alternatives=alternatives,
            clock=clock_of(drafted.state),
            seed=self._episode_seed(index),
            difficulty=difficulty(executed, skeleton, drafted.state) if executed is not None and solved else None,
            user_profile=drafted.task.user_profile,
            origin=self._origin.model_copy(update={"use": drafted.asking.use, "dropped": tuple(dropped)}),
        )

    async def _alternatives(
        self, drafted: Drafted, checks: Sequence[Check], dropped: list[str], judge: Judge
    ) -> tuple[tuple[SolutionCall, ...], ...]:
        """The other plans that run and after which every check holds; of each of the rest it is noted what is wrong."""
        kept: list[tuple[SolutionCall, ...]] = []
        for number, plan in enumerate(drafted.task.alternatives):
            executed = await execute(
                plan,
                self._skeleton,
                drafted.state,
                seed=self._episode_seed(drafted.index),
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

    def _task_seed(self, index: int) -> int:
        """One seed for task, checklist and checks: a model that draws makes the same draft again from it."""
        return derived_seed(self._seed, "task", index)

    def _episode_seed(self, index: int) -> int:
        return derived_seed(self._seed, "episode", index) % 2**31


def _task_fault(reply: t.WriteTaskReply, skeleton: EnvSkeleton, earlier: Sequence[str]) -> str | None:
    text = reply.task.strip()
    if not text:
        return "task: it is empty"
    if " ".join(text.casefold().split()) in {" ".join(task.casefold().split()) for task in earlier}:
        return "task: it was written before for this environment; write another one"
    words = set(text.replace("`", " ").replace("(", " ").split())
    # A name of one word, such as `cancel`, is a word of the language as well.
    told = sorted(tool.name for tool in skeleton.tools if "_" in tool.name and tool.name in words)
    return f"task: it names the tools {', '.join(told)}; a person does not know them" if told else None


async def _missed(checks: Sequence[Check], initial: State, final: State, judge: Judge) -> list[str]:
    """Descriptions of the checks that do not hold of a final state."""
    outcomes = await judge.check(
        [check.source for check in checks], initial_state=initial, final_state=final, clock=clock_of(initial)
    )
    return [check.description for check, outcome in zip(checks, outcomes, strict=True) if outcome.value is not True]
