"""`Trajectory` and `Verdict`: the record of one episode and what its final state was worth.

Rewards are derived from the verdict and never stored. How an episode is played is `rollout`'s business.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, get_args

from envscaler.errors import require_one_of
from envscaler.messages import NOT_MADE, AssistantMessage, ToolCall, ToolMessage, UserMessage
from envscaler.record import Record
from envscaler.scenario import CheckKind
from envscaler.skeleton import ModelUse, ToolSpec

RewardMode = Literal["fraction", "gained", "gained_soft", "solved"]
Mode = Literal["non-conversation", "conversation"]


class CheckResult(Record):
    """What one check said of the final state."""

    description: str
    kind: CheckKind | None = None
    passed: bool
    held_at_reset: bool | None = None
    """Whether it already held before the agent did anything; None when not tried."""
    error: str | None = None
    """Why it gave no boolean (raised, timed out, wrong type); then `passed` is False."""

    @property
    def is_guard(self) -> bool:
        """Whether it counts as guard: by its kind, else by whether it held at reset."""
        return self.kind == "guard" or (self.kind is None and self.held_at_reset is True)


class Verdict(Record):
    """The results of all checks on one final state."""

    checks: tuple[CheckResult, ...]

    @property
    def solved(self) -> bool | None:
        """Whether all checks hold; None without checks."""
        return all(check.passed for check in self.checks) if self.checks else None

    def reward(self, mode: RewardMode = "fraction") -> float | None:
        """The reward in one of four modes, in [0, 1]; None where the mode is undefined.

        `fraction` is the share of all checks that hold (paper section 4). `gained` is the share of the goals
        that did not hold at reset, and 0.0 as soon as a guard that held at reset is broken. `gained_soft` takes
        the share of broken guards off instead. `solved` is 1.0 when all checks hold.

        Source: paper section 4, equation of r(τ); the other three modes are ours, because many published checks
        hold before anything was done.
        """
        require_one_of("reward", mode, get_args(RewardMode))
        if not self.checks:
            return None
        if mode == "fraction":
            return sum(check.passed for check in self.checks) / len(self.checks)
        if mode == "solved":
            return 1.0 if self.solved else 0.0
        goals = [check for check in self.checks if not check.is_guard and not check.held_at_reset]
        if not goals:
            return None
        guards = [check for check in self.checks if check.is_guard and check.held_at_reset]
        broken = sum(not check.passed for check in guards)
        share = sum(check.passed for check in goals) / len(goals)
        if mode == "gained":
            return 0.0 if broken else share
        return max(0.0, share - broken / len(guards)) if guards else share


class StopReason(StrEnum):
    """Why an episode ended."""

    FINISHED = "finished"
    """The agent gave a final answer."""
    USER_STOPPED = "user_stopped"
    STEP_LIMIT = "step_limit"
    TOKEN_LIMIT = "token_limit"
    BUDGET = "budget"
    INVALID_ACTION = "invalid_action"
    ENVIRONMENT_TIMEOUT = "environment_timeout"
    INFRASTRUCTURE = "infrastructure"
    """Endpoint down or worker lost: no verdict, left out of every mean, retried on resume."""


class Usage(Record):
    """Tokens of one model call."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class Sampling(Record):
    """How a model is asked to sample; None leaves it to the endpoint."""

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    extra: dict[str, Any] = {}
    """Further fields of the request body, passed on as they are (`top_k`, `chat_template_kwargs` …)."""


class Slip(Record):
    """One thing that a model did not do as it was asked to, and what was made of it."""

    kind: str
    """Name of the kind: of an agent those of its dialect (`unclosed_tag` …), of a user those of `agents.user`."""
    detail: str = ""
    """The words it is about, shortened."""
    repaired: bool = False
    """Whether it was put right and played; else it was answered by an error, or only noted."""


class UserUtterance(Record):
    """One message of the simulated user as its model wrote it."""

    text: str
    """The reply before the stop token was taken out."""
    reasoning: str | None = None
    slips: tuple[Slip, ...] = ()
    observation: ToolMessage | None = None
    """What came of it, where it was a call of a tool of the user's own; the agent hears of neither."""


class UserRecord(Record):
    """What the simulated user of a conversation did."""

    model: str
    """Name of its model."""
    utterances: tuple[UserUtterance, ...] = ()
    """In their order, the one that ended the conversation included."""

    @property
    def slips(self) -> tuple[Slip, ...]:
        """All of them."""
        return tuple(slip for utterance in self.utterances for slip in utterance.slips)


class Step(Record):
    """One turn of the agent: what it was told, what it did, what it saw."""

    turn: int
    """Index of the user message that the agent is working on."""
    user: UserMessage | None = None
    """The user message that came right before, if one did."""
    assistant: AssistantMessage
    observations: tuple[ToolMessage, ...] = ()
    """One per tool call, in their order."""
    state_digest: str | None = None
    """Digest of the state after the step."""
    raw: str | None = None
    """The reply as the model wrote it, where a dialect had to read calls or reasoning out of its text."""
    slips: tuple[Slip, ...] = ()
    """What was wrong with the reply's form."""
    usage: Usage | None = None
    latency_s: float | None = None
    token_ids: tuple[int, ...] | None = None
    logprobs: tuple[float, ...] | None = None

    @property
    def calls_made(self) -> tuple[tuple[ToolCall, ToolMessage], ...]:
        """The calls that reached the environment, with what was seen of them; what a replay plays again.

        A reply that was cut off, or whose form was wrong, has calls that were never made.
        """
        pairs = zip(self.assistant.tool_calls, self.observations, strict=False)
        return tuple((call, seen) for call, seen in pairs if seen.fault != NOT_MADE)


class Trajectory(Record):
    """The record of one episode."""

    id: str
    """Unique in its run."""
    world: str = "scenario"
    """Which World was played: own scenarios or a benchmark."""
    env_id: str
    scenario_id: str
    env_digest: str
    scenario_digest: str
    agent: str
    """`model`, `oracle`, `random` or `noop`."""
    model: str | None = None
    mode: Mode = "non-conversation"
    sample: int = 0
    seed: int = 0
    sampling: Sampling = Sampling()
    dialect: str | None = None
    """How calls were written; None: the endpoint's own function calling, or no model."""
    user: UserRecord | None = None
    """The simulated user; None where there was none."""
    masked: str | None = None
    """Why the episode says nothing about the agent though it came to its end (its user gave the task away, say);
    None when it counts."""
    system_prompt: str = ""
    tools: tuple[ToolSpec, ...] = ()
    steps: tuple[Step, ...] = ()
    use: dict[str, ModelUse] = {}
    """Tokens and cost of the replies that were used, by role (`agent_turn`, `user_turn`, `play_user`)."""
    stop: StopReason
    verdict: Verdict | None = None
    """None when there is no final state to judge (infrastructure) or no scenario."""
    scores: dict[str, float] = {}
    """Official scores of a benchmark."""
    recorded_reward: float | None = None
    """Reward that came with an imported episode."""
    released: dict[str, Any] | None = None
    """Fields of the authors' published format that have no place here, kept for lossless export."""
    error: str | None = None
    """What went wrong, for stop reasons that are failures."""

    def reward(self, mode: RewardMode = "fraction") -> float | None:
        """The verdict's reward, or None without a verdict."""
        return self.verdict.reward(mode) if self.verdict is not None else None
