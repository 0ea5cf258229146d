"""Scenarios of one environment: initial states, tasks, checks, solutions that were executed, and proofs.

A scenario that cannot be made costs nothing but itself. From a draft to a proved scenario is `finishing`'s business.

Source: paper 4, ScenGenerator.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from envscaler.engine import bounded_map
from envscaler.errors import ReplyError
from envscaler.evidence import Thresholds
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.sandbox import Judge, Program, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, Origin
from envscaler.state import State
from envscaler.synth.asking import Asking
from envscaler.synth.clock import clock_of
from envscaler.synth.finishing import Drafted, Finishing, Proved
from envscaler.synth.plan import Executed, execute
from envscaler.synth.seeds import derived_seed
from envscaler.synth.settings import CHECKS_PER_CALL
from envscaler.synth.solving import NO_RUNS, SolverRuns
from envscaler.synth.states import known_of, write_state

_AT_ONCE = 4
_EARLIER = 20
"""Earlier tasks that the writer is shown."""


def scenario_id(env_id: str, index: int) -> str:
    """The id of the scenario with that index, from 0."""
    return f"{env_id}-s{index + 1:03d}"


@dataclass(frozen=True)
class Order:
    """A scenario that is to be written."""

    id: str
    index: int
    """Which of the scenarios of the environment it is, or of which it is a version."""
    label: int | str
    """What its seeds are derived from."""
    wanted: t.Wanted | None = None
    """What it is a harder or easier version of."""


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
        min_state_distance: float = 0.02,
        thresholds: Thresholds | None = None,
        solver_runs: SolverRuns = NO_RUNS,
        checks_per_call: int = CHECKS_PER_CALL,
    ) -> None:
        """
        Args:
            asking: asked apart for each scenario, so that each one's use is its own.
            origin: what the origin of every scenario says beside its use.
            thresholds: what a proof has to reach; those that are usual if None.
            solver_runs: who plays each task, beside the plan of its writer.
            checks_per_call: check functions asked for at once.
        """
        self._skeleton = skeleton
        self._known = known_of(skeleton)
        self._seed = seed
        self._asking = asking
        self._sandbox = sandbox
        self._min_state_distance = min_state_distance
        self._finishing = Finishing(
            skeleton,
            known=self._known,
            sandbox=sandbox,
            origin=origin,
            thresholds=thresholds or Thresholds(),
            solver_runs=solver_runs,
            checks_per_call=checks_per_call,
        )

    async def write(self, indices: Sequence[int], earlier: Sequence[Scenario] = ()) -> list[Proved | str]:
        """Make the scenarios with these indices: for each the scenario with its proof, or why there is none.

        Args:
            earlier: scenarios that are there; states and tasks differ from theirs.
        """
        return await self.fulfil([Order(scenario_id(self._skeleton.id, one), one, one) for one in indices], earlier)

    async def fulfil(self, orders: Sequence[Order], earlier: Sequence[Scenario] = ()) -> list[Proved | str]:
        """As `write`, for scenarios that are told more about."""
        async with self._sandbox.judge() as judge:

            async def finished(drafted: Drafted | str) -> Proved | str:
                return drafted if isinstance(drafted, str) else await self._finishing.finish(drafted, judge)

            outcomes = bounded_map(finished, self._drafts(orders, earlier, judge), limit=_AT_ONCE)
            return [outcome async for outcome in outcomes]

    async def _drafts(
        self, orders: Sequence[Order], earlier: Sequence[Scenario], judge: Judge
    ) -> AsyncIterator[Drafted | str]:
        # One after the other: each state and task has to differ from those before it.
        states = [scenario.initial_state for scenario in earlier]
        tasks = [scenario.task for scenario in earlier]
        for order in orders:
            try:
                drafted = await self._draft(order, states, tasks, judge)
            except ReplyError as fault:
                yield f"{order.id}: {fault}"
                continue
            states.append(drafted.state)
            tasks.append(drafted.task.task)
            yield drafted

    async def _draft(self, order: Order, states: Sequence[State], tasks: Sequence[str], judge: Judge) -> Drafted:
        asking = self._asking.apart()
        skeleton, index = self._skeleton, order.index
        # One seed for task, checklist and checks: a model that draws makes the same draft again from it.
        task_seed = derived_seed(self._seed, "task", order.label)
        episode_seed = derived_seed(self._seed, "episode", order.label) % 2**31
        written = await write_state(
            self._known,
            Program(skeleton.source, skeleton.class_name),
            purpose="scenario",
            index=index,
            seed=derived_seed(self._seed, "state", order.label),
            wanted=order.wanted,
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
                    seed=episode_seed,
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
                seed=task_seed,
                earlier=tuple(tasks[-_EARLIER:]),
                wanted=order.wanted,
            ),
            doubt=doubt,
            sample=index,
        )
        return Drafted(
            id=order.id,
            index=index,
            state=written.state,
            task=task,
            executed=executions[-1],
            asking=asking,
            task_seed=task_seed,
            episode_seed=episode_seed,
            wanted=order.wanted,
        )


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
