"""`ToolEnv`: one episode after another of one scenario, in the manner of Gymnasium, blocking.

It needs no event loop and works inside a running one; `AsyncToolEnv` is its twin for event loops. What both decide
stands in `env.core`.
"""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from envscaler.env.core import EnvCore, EnvInfo, EnvSnapshot, StepResult, tool_call
from envscaler.env.observation import ObservationStyle
from envscaler.env.verdict import ResetChecks, verdict_of
from envscaler.errors import UsageError
from envscaler.messages import ToolCall, ToolMessage
from envscaler.sandbox import BlockingSandbox, BlockingSession, CheckOutcome, Program, Snapshot
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import JsonValue, State
from envscaler.trajectory import RewardMode, Verdict


class Owner(Protocol):
    """Who closes the sandbox in which an environment runs."""

    @property
    def closed(self) -> bool:
        """Whether it has."""


class ToolEnv:
    """An environment with a task.

    Every episode runs in a session of its own and starts from the scenario, never from what an earlier one left.
    """

    def __init__(
        self,
        skeleton: EnvSkeleton,
        scenario: Scenario,
        sandbox: BlockingSandbox | None = None,
        *,
        reward: RewardMode = "fraction",
        max_steps: int | None = None,
        observations: ObservationStyle = "json",
        coerce: bool = False,
        seed: int | None = None,
        reset_checks: ResetChecks | None = None,
        owner: Owner | None = None,
    ) -> None:
        """
        Args:
            sandbox: stays the caller's; None: the environment starts one of its own and closes it.
            reward: the mode in which `step` gives the reward at the end.
            max_steps: steps after which an episode is truncated; None: no limit.
            coerce: put arguments into the types that the tool asks for where nothing is lost (`"3"` for an integer).
            seed: seed of the first episode; None: the scenario's.
            reset_checks: shared by environments of the same scenario, so that its checks run once on the reset state.
            owner: who closes the sandbox when it is collected, and so must live as long as this environment.

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
        self._owner = owner
        self._owns_sandbox = sandbox is None
        self._sandbox = sandbox if sandbox is not None else BlockingSandbox()
        self._program = Program(source=skeleton.source, class_name=skeleton.class_name)
        self._closed = False
        self._reset_checks = reset_checks if reset_checks is not None else ResetChecks()
        self._session: BlockingSession | None = None
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
    def closed(self) -> bool:
        """Whether the sandbox that it runs in was closed, by it or by whoever made it: no episode can begin."""
        return (self._owns_sandbox and self._closed) or (self._owner is not None and self._owner.closed)

    @property
    def digest(self) -> str:
        """Digest of the current state."""
        return self._require_session().digest

    def reset(self, seed: int | None = None) -> tuple[str, EnvInfo]:
        """Start an episode; the observation is the task.

        Raises:
            UsageError: after the sandbox in which it runs was closed.
            ProgramError: if the program cannot be loaded or built from the initial state.
            SandboxError: if the machinery fails.
        """
        seed = self._core.seed_of(seed)
        if self.closed:
            raise UsageError("the environment was closed, or the library that made it; make another one")
        self._end_session()
        scenario = self.scenario
        session = self._sandbox.open(self._program, scenario.initial_state, seed=seed, clock=scenario.clock)
        self._core.begin(seed)
        self._session = session
        self._reset = session.snapshot()
        self._reset_digest = session.digest
        return scenario.task, self._core.reset_info(session.digest)

    def step(self, action: ToolCall | str) -> StepResult:
        """Carry out a tool call, or end the episode with a final message.

        The reward is 0.0 until the episode is terminated (final message) or truncated (`max_steps`), then that of
        the final state in the chosen mode.

        Raises:
            UsageError: before reset and after the end.
            SandboxError: if the machinery fails.
        """
        self._core.require_open_end(action)
        if isinstance(action, str):
            return self._core.after_final(action, self.digest, self.verify())
        message = self.carry_out(action)
        verdict = self.verify() if self._core.count_step() else None
        return self._core.after_call(message, self.digest, verdict)

    def call(self, name: str, arguments: dict[str, JsonValue]) -> ToolMessage:
        """Call a tool without counting a step. Whatever goes wrong in it is an observation, not an exception."""
        return self.carry_out(tool_call(name, arguments))

    def carry_out(self, call: ToolCall) -> ToolMessage:
        """`call` for a call as an agent made it: with its id, and perhaps malformed."""
        session = self._require_session()
        call = self._core.numbered(call)
        admitted = self._core.admitted(call)
        if isinstance(admitted, ToolMessage):
            return admitted
        return self._core.observation(call, admitted, session.call(admitted.name, admitted.arguments))

    def state(self) -> State:
        """The current state, as JSON that shares nothing with the program."""
        return self._require_session().state()

    def verify(self) -> Verdict:
        """Run the scenario's checks on the current state; the episode goes on."""
        checks = self.scenario.checks
        if not checks:
            return Verdict(checks=())
        now = self._require_session().snapshot()
        final = self._run_checks(now)
        at_reset = self._reset_checks.get(self.scenario, self._reset_digest)
        if at_reset is None:
            assert self._reset is not None
            at_reset = self._run_checks(self._reset)
            self._reset_checks.put(self.scenario, self._reset_digest, at_reset)
        return verdict_of(checks, final, at_reset)

    def snapshot(self) -> EnvSnapshot:
        """The moment to come back to with `restore`."""
        return self._core.snapshot(self._require_session().snapshot())

    def restore(self, snapshot: EnvSnapshot) -> None:
        """Go back to a snapshot of this scenario: state, clock, streams and counts."""
        session = self._require_session()
        self._core.require_own(snapshot)
        session.restore(snapshot.session)
        self._core.restore(snapshot)

    def fork(self) -> ToolEnv:
        """An environment of its own that goes on from the current moment."""
        session = self._require_session().fork()
        twin = ToolEnv(
            self.skeleton, self.scenario, self._sandbox, reset_checks=self._reset_checks, owner=self._owner or self
        )
        twin._core = self._core.fork()
        twin._session, twin._reset, twin._reset_digest = session, self._reset, self._reset_digest
        return twin

    def close(self) -> None:
        """End the episode and a sandbox of its own; idempotent."""
        self._end_session()
        self._closed = True
        if self._owns_sandbox:
            self._sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run_checks(self, moment: Snapshot) -> tuple[CheckOutcome, ...]:
        assert self._reset is not None
        return self._sandbox.check(
            [check.source for check in self.scenario.checks],
            initial_state=self._reset.state,  # the whole state at reset, as the authors bind it
            final_state=moment.state,
            clock=moment.clock,
        )

    def _require_session(self) -> BlockingSession:
        self._core.require_running()
        assert self._session is not None
        return self._session

    def _end_session(self) -> None:
        self._core.running = False
        session, self._session = self._session, None
        if session is not None:
            session.close()
