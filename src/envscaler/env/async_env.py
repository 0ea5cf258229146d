"""`AsyncToolEnv`: one episode after another of one scenario, in the manner of Gymnasium, for event loops.

Rollouts use only this shell; `ToolEnv` is its blocking twin. What both decide stands in `env.core`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from envscaler.env.core import EnvCore, EnvInfo, EnvSnapshot, StepResult, tool_call
from envscaler.env.observation import ObservationStyle
from envscaler.env.verdict import ResetChecks, verdict_of
from envscaler.messages import ToolCall, ToolMessage
from envscaler.sandbox import CheckOutcome, Judge, Program, Sandbox, Session, Snapshot
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import JsonValue, State
from envscaler.trajectory import RewardMode, Verdict


class AsyncToolEnv:
    """An environment with a task.

    Every episode runs in a session of its own and starts from the scenario, never from what an earlier one left.
    """

    def __init__(
        self,
        skeleton: EnvSkeleton,
        scenario: Scenario,
        sandbox: Sandbox,
        *,
        reward: RewardMode = "fraction",
        max_steps: int | None = None,
        observations: ObservationStyle = "json",
        coerce: bool = False,
        seed: int | None = None,
        reset_checks: ResetChecks | None = None,
    ) -> None:
        """
        Args:
            sandbox: an entered sandbox; it stays the caller's.
            reward: the mode in which `step` gives the reward at the end.
            max_steps: steps after which an episode is truncated; None: no limit.
            coerce: put arguments into the types that the tool asks for where nothing is lost (`"3"` for an integer).
            seed: seed of the first episode; None: the scenario's.
            reset_checks: shared by environments of the same scenario, so that its checks run once on the reset state.

        Raises:
            UsageError: if the scenario belongs to another environment.
        """
        self._core = EnvCore(
            skeleton,
            scenario,
            reward=reward,
            max_steps=max_steps,
            observations=observations,
            coerce=coerce,
            seed=seed,
        )
        self._sandbox = sandbox
        self._program = Program(source=skeleton.source, class_name=skeleton.class_name)
        self._reset_checks = reset_checks if reset_checks is not None else ResetChecks()
        self._session: Session | None = None
        self._reset: Snapshot | None = None
        self._reset_digest = ""

    @property
    def skeleton(self) -> EnvSkeleton:
        """The environment that is played."""
        return self._core.skeleton

    @property
    def scenario(self) -> Scenario:
        """The scenario that is played."""
        return self._core.scenario

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools that the agent may call."""
        return self._core.tools

    @property
    def digest(self) -> str:
        """Digest of the current state."""
        return self._require_session().digest

    async def reset(self, seed: int | None = None) -> tuple[str, EnvInfo]:
        """Start an episode; the observation is the task.

        Raises:
            ProgramError: if the program cannot be loaded or built from the initial state.
            SandboxError: if the machinery fails.
        """
        seed = self._core.seed_of(seed)
        await self._end_session()
        scenario = self.scenario
        session = await self._sandbox.open(self._program, scenario.initial_state, seed=seed, clock=scenario.clock)
        self._core.begin(seed)
        self._session = session
        self._reset = await session.snapshot()
        self._reset_digest = session.digest
        return scenario.task, self._core.reset_info(session.digest)

    async def step(self, action: ToolCall | str) -> StepResult:
        """Carry out a tool call, or end the episode with a final message.

        The reward is 0.0 until the episode is terminated (final message) or truncated (`max_steps`), then that of
        the final state in the chosen mode.

        Raises:
            UsageError: before reset and after the end.
            SandboxError: if the machinery fails.
        """
        self._core.require_open_end(action)
        if isinstance(action, str):
            return self._core.after_final(action, self.digest, await self.verify())
        message = await self.carry_out(action)
        verdict = await self.verify() if self._core.count_step() else None
        return self._core.after_call(message, self.digest, verdict)

    async def call(self, name: str, arguments: dict[str, JsonValue]) -> ToolMessage:
        """Call a tool without counting a step. Whatever goes wrong in it is an observation, not an exception."""
        return await self.carry_out(tool_call(name, arguments))

    async def carry_out(self, call: ToolCall) -> ToolMessage:
        """`call` for a call as an agent made it: with its id, and perhaps malformed."""
        session = self._require_session()
        call = self._core.numbered(call)
        admitted = self._core.admitted(call)
        if isinstance(admitted, ToolMessage):
            return admitted
        return self._core.observation(call, admitted, await session.call(admitted.name, admitted.arguments))

    async def state(self) -> State:
        """The current state, as JSON that shares nothing with the program."""
        return await self._require_session().state()

    async def verify(self) -> Verdict:
        """Run the scenario's checks on the current state; the episode goes on."""
        checks = self.scenario.checks
        if not checks:
            return Verdict(checks=())
        now = await self._require_session().snapshot()
        reset = self._reset
        assert reset is not None
        async with self._sandbox.borrow_judge() as judge:
            final = await self._run_checks(judge, now)
            at_reset = await self._reset_checks.found(
                self.scenario, self._reset_digest, lambda: self._run_checks(judge, reset)
            )
        return verdict_of(checks, final, at_reset)

    async def snapshot(self) -> EnvSnapshot:
        """The moment to come back to with `restore`."""
        return self._core.snapshot(await self._require_session().snapshot())

    async def restore(self, snapshot: EnvSnapshot) -> None:
        """Go back to a snapshot of this scenario: state, clock, streams and counts."""
        session = self._require_session()
        self._core.require_own(snapshot)
        await session.restore(snapshot.session)
        self._core.restore(snapshot)

    async def fork(self) -> AsyncToolEnv:
        """An environment of its own that goes on from the current moment."""
        session = await self._require_session().fork()
        twin = AsyncToolEnv(self.skeleton, self.scenario, self._sandbox, reset_checks=self._reset_checks)
        twin._core = self._core.fork()
        twin._session, twin._reset, twin._reset_digest = session, self._reset, self._reset_digest
        return twin

    async def close(self) -> None:
        """End the episode; idempotent. The sandbox stays open."""
        await self._end_session()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def _run_checks(self, judge: Judge, moment: Snapshot) -> tuple[CheckOutcome, ...]:
        assert self._reset is not None
        return await judge.check(
            [check.source for check in self.scenario.checks],
            initial_state=self._reset.state,  # the whole state at reset, as the authors bind it
            final_state=moment.state,
            clock=moment.clock,
        )

    def _require_session(self) -> Session:
        self._core.require_running()
        assert self._session is not None
        return self._session

    async def _end_session(self) -> None:
        self._core.running = False
        session, self._session = self._session, None
        if session is not None:
            await session.close()
