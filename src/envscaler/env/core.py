"""The core of an environment without input or output: admits calls, words observations, counts steps.

`ToolEnv` and `AsyncToolEnv` are thin shells around it; running programs and checks is the sandbox's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypedDict, get_args

from envscaler.env.observation import ObservationStyle, error_text, observe, unknown_tool_text
from envscaler.errors import UsageError, require_integer, require_one_of
from envscaler.messages import ToolCall, ToolMessage
from envscaler.program import argument_faults, coerced, tool_schemas
from envscaler.record import JsonSchema
from envscaler.sandbox import Outcome, Snapshot
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.trajectory import RewardMode, Verdict


class EnvInfo(TypedDict, total=False):
    """The `info` of Gymnasium: what is known beside the observation."""

    env_id: str
    scenario_id: str
    seed: int
    doc: str
    """E_doc, at reset: what the agent may read of the environment."""
    tools: list[dict[str, Any]]
    """The tools in OpenAI's form, at reset."""
    steps: int
    state_digest: str
    message: ToolMessage
    """The observation as a message, after a tool call."""
    is_error: bool
    final_message: str
    verdict: Verdict
    """Once the episode is over."""


StepResult = tuple[str, float | None, bool, bool, EnvInfo]
"""Observation, reward, terminated, truncated, info. The reward is None where the scenario has no checks (or, in the
`gained` modes, no goal to gain), because a zero would be a lie."""


@dataclass(frozen=True)
class EnvSnapshot:
    """Everything needed to go on from one moment of an episode."""

    env_id: str
    scenario_id: str
    session: Snapshot
    steps: int
    calls: int
    over: bool


def tool_call(name: str, arguments: object) -> ToolCall:
    """The call; arguments that are no object are malformed, as a model's can be."""
    if isinstance(arguments, dict) and all(isinstance(key, str) for key in arguments):
        return ToolCall(name=str(name), arguments=arguments)
    return ToolCall(name=str(name), arguments={}, malformed=repr(arguments))


class EnvCore:
    """What both shells share."""

    def __init__(
        self,
        skeleton: EnvSkeleton,
        scenario: Scenario,
        *,
        reward: RewardMode = "fraction",
        max_steps: int | None = None,
        observations: ObservationStyle = "json",
        coerce: bool = False,
        seed: int | None = None,
    ) -> None:
        if scenario.env_id != skeleton.id:
            raise UsageError(f"scenario {scenario.id} belongs to environment {scenario.env_id}, not to {skeleton.id}")
        require_one_of("reward", reward, get_args(RewardMode))
        require_one_of("observations", observations, get_args(ObservationStyle))
        if not isinstance(coerce, bool):
            raise UsageError(f"coerce is True or False, not {coerce!r}")
        self.skeleton = skeleton
        self.scenario = scenario
        self.reward_mode: RewardMode = reward
        self.max_steps = None if max_steps is None else require_integer("max_steps", max_steps, low=1)
        self.observations: ObservationStyle = observations
        self.seed = scenario.seed if seed is None else require_integer("seed", seed)
        self.tools = tuple(tool for tool in skeleton.tools if scenario.tools is None or tool.name in scenario.tools)
        self.coerce = coerce
        self._schemas = {tool.name: _enforced(skeleton, tool) for tool in self.tools}
        self.steps = 0
        self.calls = 0
        self.running = False
        self.over = False

    def seed_of(self, given: int | None) -> int:
        """The seed of the next episode.

        Raises:
            UsageError: if the one given is no integer of 64 bits.
        """
        return self.seed if given is None else require_integer("seed", given)

    def begin(self, seed: int) -> None:
        """Start a new episode; without another seed given, the next one has the same."""
        self.seed = seed
        self.steps = 0
        self.calls = 0
        self.running = True
        self.over = False

    def reset_info(self, digest: str) -> EnvInfo:
        """The `info` of a reset."""
        return EnvInfo(
            env_id=self.skeleton.id,
            scenario_id=self.scenario.id,
            seed=self.seed,
            doc=self.skeleton.doc,
            tools=[tool.to_openai() for tool in self.tools],
            steps=0,
            state_digest=digest,
        )

    def require_running(self) -> None:
        """
        Raises:
            UsageError: before the first reset and after `close`.
        """
        if not self.running:
            raise UsageError("the environment has no episode; call reset() first")

    def require_open_end(self, action: object) -> None:
        """
        Raises:
            UsageError: also when the episode is over, or the action is none.
        """
        self.require_running()
        if not isinstance(action, ToolCall | str):
            raise UsageError(f"an action is a ToolCall or the text of a final message, not {action!r}")
        if self.over:
            raise UsageError("the episode is over; call reset() to start another")

    def numbered(self, call: ToolCall) -> ToolCall:
        """The call with an id, so that its observation can name it.

        Raises:
            UsageError: if it is no call.
        """
        if not isinstance(call, ToolCall):
            raise UsageError(f"a call to carry out is a ToolCall, not {call!r}")
        self.calls += 1
        return call if call.id is not None else call.model_copy(update={"id": f"call_{self.calls}"})

    def admitted(self, call: ToolCall) -> ToolCall | ToolMessage:
        """The call as it is to be carried out, or as an observation why it cannot be.

        Tools are looked up in Σ_tool; what a model typed never reaches the program as a name.
        """
        schema = self._schemas.get(call.name)
        if schema is None:
            return self._refused(call, unknown_tool_text(call.name, self._schemas))
        if call.malformed is not None:
            return self._refused(call, f"the arguments of {call.name} are not a JSON object: {_short(call.malformed)}")
        # What has the types asked for has the names that are enforced, and is looked at once.
        asked = _typed(self.skeleton, call.name, schema) if self.coerce else schema
        faults = argument_faults(asked, call.arguments)
        if faults and self.coerce:
            made = coerced(asked, call.arguments)
            if made is not None:
                return call.model_copy(update={"arguments": made})
            if asked is not schema:
                faults = argument_faults(schema, call.arguments)
        return self._refused(call, f"{call.name} was not called: {'; '.join(faults)}") if faults else call

    def observation(self, call: ToolCall, carried_out: ToolCall, outcome: Outcome) -> ToolMessage:
        """What the agent sees of its call, which was carried out as `carried_out`."""
        return ToolMessage(
            content=observe(outcome, self.observations),
            tool_call_id=call.id or "",
            name=call.name,
            is_error=outcome.fault is not None,
            fault=outcome.fault.kind if outcome.fault is not None else None,
            arguments=carried_out.arguments if carried_out.arguments is not call.arguments else None,
        )

    def count_step(self) -> bool:
        """Count one step; True when it was the last one allowed."""
        self.steps += 1
        self.over = self.max_steps is not None and self.steps >= self.max_steps
        return self.over

    def after_call(self, message: ToolMessage, digest: str, verdict: Verdict | None) -> StepResult:
        """The result of a step that was a tool call; with a verdict when it was the last one allowed."""
        info = EnvInfo(steps=self.steps, state_digest=digest, message=message, is_error=message.is_error)
        if verdict is None:
            return message.content, 0.0, False, False, info
        info["verdict"] = verdict
        return message.content, verdict.reward(self.reward_mode), False, True, info

    def after_final(self, text: str, digest: str, verdict: Verdict) -> StepResult:
        """The result of a step that was the agent's final message."""
        self.steps += 1
        self.over = True
        info = EnvInfo(steps=self.steps, state_digest=digest, final_message=text, verdict=verdict)
        return "", verdict.reward(self.reward_mode), True, False, info

    def snapshot(self, session: Snapshot) -> EnvSnapshot:
        """The snapshot of an episode whose session's snapshot is given."""
        return EnvSnapshot(
            env_id=self.skeleton.id,
            scenario_id=self.scenario.id,
            session=session,
            steps=self.steps,
            calls=self.calls,
            over=self.over,
        )

    def require_own(self, snapshot: EnvSnapshot) -> None:
        """
        Raises:
            UsageError: for a snapshot of another scenario, or for something else.
        """
        if not isinstance(snapshot, EnvSnapshot):
            raise UsageError(f"restore takes what snapshot gave, not {snapshot!r}")
        if (snapshot.env_id, snapshot.scenario_id) != (self.skeleton.id, self.scenario.id):
            raise UsageError(
                f"the snapshot is of {snapshot.env_id}/{snapshot.scenario_id}, not of "
                f"{self.skeleton.id}/{self.scenario.id}"
            )

    def restore(self, snapshot: EnvSnapshot) -> None:
        """Go back to the counts of a snapshot."""
        self.steps, self.calls, self.over = snapshot.steps, snapshot.calls, snapshot.over

    def fork(self) -> EnvCore:
        """A core with the same counts, for a forked episode."""
        twin = EnvCore(
            self.skeleton,
            self.scenario,
            reward=self.reward_mode,
            max_steps=self.max_steps,
            observations=self.observations,
            coerce=self.coerce,
            seed=self.seed,
        )
        twin.steps, twin.calls, twin.running, twin.over = self.steps, self.calls, self.running, self.over
        return twin

    def _refused(self, call: ToolCall, reason: str) -> ToolMessage:
        return ToolMessage(content=error_text(reason), tool_call_id=call.id or "", name=call.name, is_error=True)


def _enforced(skeleton: EnvSkeleton, tool: ToolSpec) -> JsonSchema:
    """The schema that a call is held to: the tool's own, or the method's signature for an imported environment.

    Published schemas are wrong in places; there, only the parameters' names are enforced.
    """
    if skeleton.origin.source is None:
        return tool.parameters
    return _signatures(skeleton.source, skeleton.class_name).get(tool.name, tool.parameters)


def _typed(skeleton: EnvSkeleton, name: str, enforced: JsonSchema) -> JsonSchema:
    """The schema whose types arguments are put into: that which is enforced, or that of an imported method's
    annotations."""
    if skeleton.origin.source is None:
        return enforced
    return _annotated(skeleton.source, skeleton.class_name).get(name, enforced)


@lru_cache(maxsize=512)
def _annotated(source: str, class_name: str) -> dict[str, JsonSchema]:
    return tool_schemas(source, class_name)


@lru_cache(maxsize=512)
def _signatures(source: str, class_name: str) -> dict[str, JsonSchema]:
    return {
        name: {
            "type": "object",
            "properties": {parameter: {} for parameter in schema.get("properties", {})},
            "required": schema.get("required", []),
            "additionalProperties": schema.get("additionalProperties", False),
        }
        for name, schema in _annotated(source, class_name).items()
    }


def _short(text: str, limit: int = 200) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
