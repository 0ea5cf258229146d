"""`TextEnv`: episodes played with text, in Gymnasium's manner: what a model wrote goes in, what it is shown comes out.

It needs no trainer's package; `gem`, `gymnasium` and `roll` put it into the classes that theirs want. What a reply
comes to is the dialect's business, what a call does the environment's.
"""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self, get_args

from envscaler.adapters.sources import Source, leave
from envscaler.agents import AgentReply, SystemPrompts
from envscaler.agents.dialects import DialectName, NativeDialect, Reading, text_dialect_of
from envscaler.env import ToolEnv
from envscaler.errors import SandboxError, UsageError, exception_text, require_integer, require_one_of
from envscaler.llm.wire import completion_from
from envscaler.messages import AssistantMessage, ToolMessage
from envscaler.rollout import STEP_LIMITS
from envscaler.rollout.slip_policy import CallPolicy, OnSlip, Ruling
from envscaler.sandbox import Isolation
from envscaler.trajectory import RewardMode, StopReason, Usage, Verdict

log = logging.getLogger(__name__)

Form = Literal["text", "messages"]
"""How observations are given. `text`: only what is new, in the dialect's words; the first one tells of the tools.
`messages`: the whole conversation so far; tools stand in `info["tools"]`, for a chat template to tell."""

OnFailure = Literal["raise", "truncate"]

TextStep = tuple[Any, float, bool, bool, dict[str, Any]]
"""Observation, reward, terminated, truncated, info."""


class TextEnv:
    """Plays the scenarios of an environment, or of a whole library, one episode after another.

    A reply without a call is the final message and terminates the episode. A reply that goes wrong, in form or in what
    it calls, is answered by a text and ends nothing.
    """

    def __init__(
        self,
        library: str | os.PathLike[str],
        env_ids: str | Iterable[str] | None = None,
        *,
        scenario: int | str | None = None,
        seed: int | None = None,
        reward: RewardMode = "fraction",
        max_steps: int | None = STEP_LIMITS["non-conversation"],
        dialect: DialectName = "hermes",
        on_slip: OnSlip = "repair",
        observations: Form = "text",
        on_failure: OnFailure = "raise",
        coerce: bool = False,
        held_out: bool = False,
        isolation: Isolation = "default",
    ) -> None:
        """
        Args:
            library: its folder, or a name that stands for it.
            env_ids: one environment, or several; None: all that have scenarios and may be trained on.
            scenario: index or id of the scenario that every episode plays; None: `reset` goes through all of them.
            seed: which one `reset` without a seed begins with, see `reset`.
            reward: how the final state is rewarded, see `Verdict.reward`.
            max_steps: replies after which an episode is truncated; None: no limit.
            dialect: how calls are written in replies that are text; messages with `tool_calls` are taken in any.
            on_slip: what follows of replies whose form is wrong, as in rollouts: `repair` puts right what is certain
                and answers the rest by an error, `error` answers all, `stop` truncates the episode.
            on_failure: what a failure of the machinery does. It is never a reward of 0. `raise`: raises SandboxError.
                `truncate`: the episode is truncated with a reward of NaN and the reason in `info["infrastructure"]`;
                at reset, `env_reset_failed` is set instead, and the reset after it tries again.
            coerce: put arguments into the types that a tool asks for where nothing is lost (`"3"` for an integer).
            held_out: play environments that are held out from training too, to measure on them.
            isolation: how far apart episodes are kept.

        Raises:
            UsageError: if one of these is not what it should be or not there.
        """
        require_one_of("reward", reward, get_args(RewardMode))
        require_one_of("observations", observations, get_args(Form))
        require_one_of("on_slip", on_slip, get_args(OnSlip))
        require_one_of("on_failure", on_failure, get_args(OnFailure))
        chosen = (env_ids,) if isinstance(env_ids, str) else None if env_ids is None else tuple(env_ids)
        self._source = Source.of(library, chosen, held_out=held_out, isolation=isolation)
        self._choice = self._source.choice()
        self._scenario = scenario
        if scenario is not None:
            if len(self._choice) > 1:
                raise UsageError("scenario names one of a single environment; give its id in env_ids")
            self._source.open().scenario(self._choice[0], scenario)
        self._place = 0 if seed is None else require_integer("seed", seed)
        self._reward: RewardMode = reward
        self._max_steps = None if max_steps is None else require_integer("max_steps", max_steps, low=1)
        self._dialect = text_dialect_of(dialect)
        self._policy = CallPolicy(on_slip=on_slip)
        self._form: Form = observations
        self._on_failure: OnFailure = on_failure
        self._coerce = coerce
        self._settings: dict[str, Any] = {
            "library": self._source.library,
            "env_ids": chosen,
            "scenario": scenario,
            "seed": seed,
            "reward": reward,
            "max_steps": max_steps,
            "dialect": dialect,
            "on_slip": on_slip,
            "observations": observations,
            "on_failure": on_failure,
            "coerce": coerce,
            "held_out": held_out,
            "isolation": isolation,
        }
        self._env: ToolEnv | None = None
        self._messages: list[dict[str, Any]] = []
        self._steps = 0
        self._over = True
        self.env_reset_failed = False
        """Whether the last reset failed, under `on_failure="truncate"`."""

    @property
    def env(self) -> ToolEnv:
        """The environment that is played; each reset may make another.

        Raises:
            UsageError: before the first reset.
        """
        if self._env is None:
            raise UsageError("reset begins an episode, and was not called")
        return self._env

    def reset(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode.

        The same seed always gives the same scenario, and seeds that follow each other go through all environments and
        then through their scenarios. Without a seed it is the one after the last. Sessions have the scenarios' own
        seeds, as in rollouts; where the scenario is fixed, a seed becomes that of the session.

        Args:
            options: `scenario` (index or id) and `environment` choose the scenario of this episode.

        Raises:
            UsageError: if the options name nothing that can be played here.
            SandboxError: if the machinery fails, under `on_failure="raise"`.
        """
        place = self._place if seed is None else require_integer("seed", seed)
        env_id, which = self._chosen(place, options or {})
        self._place = place + 1
        self._leave()
        self.env_reset_failed = False
        library = self._source.open()
        self._env = env = library.make(env_id, scenario=which, reward=self._reward, coerce=self._coerce)
        fixed = self._scenario is not None or (options or {}).get("scenario") is not None
        try:
            _, known = env.reset(seed if fixed else None)
        except SandboxError as error:
            if self._on_failure == "raise":
                raise
            return self._unopened(error)
        self._steps, self._over = 0, False
        prompt = SystemPrompts().text(env.skeleton, "non-conversation")
        task = env.scenario.task
        self._messages = [{"role": "system", "content": prompt}, {"role": "user", "content": task}]
        info: dict[str, Any] = {**known, **self.env_info, "system_prompt": prompt, "task": task}
        if self._form == "messages":
            return list(self._messages), info
        return f"{self._dialect.system_text(prompt, env.tools)}\n\n{task}", info

    def step(self, action: Any) -> TextStep:
        """Take a reply of the model.

        Args:
            action: its text, or a message in OpenAI's form with `tool_calls`. Anything else says that there is none
                (a trainer that ran out of tokens): the episode is truncated and judged as it stands.

        Raises:
            UsageError: before reset and after the end of the episode.
            SandboxError: if the machinery fails, under `on_failure="raise"`.
        """
        env = self.env
        if self._over:
            raise UsageError("the episode is over; reset begins another one")
        self._steps += 1
        try:
            return self._stepped(env, action)
        except SandboxError as error:
            self._leave()
            if self._on_failure == "raise":
                raise
            reason = exception_text(type(error).__name__, str(error))
            log.warning("%s: an episode is lost and has no reward: %s", env.skeleton.id, reason)
            info = self._info(env, StopReason.INFRASTRUCTURE) | {"infrastructure": reason}
            return self._observation(()), math.nan, False, True, info

    def close(self) -> None:
        """End the episode; idempotent. Another reset begins a new one."""
        self._leave()

    def spawn(self, same_state: bool = False, **settings: Any) -> Self:
        """Another one with the same settings but for those given.

        Args:
            same_state: whether it goes on from the present moment of this episode.
        """
        twin = type(self)(**{**self._settings, "seed": self._place, **settings})
        if same_state:
            twin._env = self.env.fork()
            twin._messages, twin._steps, twin._over = list(self._messages), self._steps, self._over
        return twin

    @property
    def env_info(self) -> dict[str, Any]:
        """What is played, for records."""
        if self._env is None:
            return {}
        scenario = self._env.scenario
        return {"environment": scenario.env_id, "scenario_id": scenario.id, "steps": self._steps}

    # -- the course of an episode ---------------------------------------------------------------------------

    def _stepped(self, env: ToolEnv, action: Any) -> TextStep:
        if not isinstance(action, str | Mapping):
            return self._ended(env, StopReason.TOKEN_LIMIT)
        reading = self._reading(env, action)
        self._messages.append(_as_written(action, reading.message))
        if not reading.message.tool_calls:
            return self._ended(env, StopReason.FINISHED)
        ruling = self._ruling(reading)
        if ruling.stop is not None:
            return self._ended(env, StopReason.INVALID_ACTION, (), reading)
        calls = zip(reading.message.tool_calls, ruling.refusals, strict=True)
        results = [refusal if refusal is not None else env.carry_out(call) for call, refusal in calls]
        self._messages += [_told(result) for result in results]
        if self._max_steps is not None and self._steps >= self._max_steps:
            return self._ended(env, StopReason.STEP_LIMIT, results, reading)
        info = self._info(env, None, results, reading)
        return self._observation(results), 0.0, False, False, info

    def _reading(self, env: ToolEnv, action: str | Mapping[str, Any]) -> Reading:
        if isinstance(action, str):
            return self._dialect.parse(action, env.tools)
        completion = completion_from({"choices": [{"message": dict(action)}]}, model="")
        called = bool(completion.message.tool_calls)
        return (NativeDialect() if called else self._dialect).read(completion, env.tools)

    def _ruling(self, reading: Reading) -> Ruling:
        reply = AgentReply(
            message=reading.message,
            usage=Usage(),
            model="",
            slips=reading.slips,
            fault=reading.fault,
            form=self._dialect.form,
        )
        return self._policy.ruling(reading.message, reply)

    def _ended(
        self,
        env: ToolEnv,
        stop: StopReason,
        results: Iterable[ToolMessage] = (),
        reading: Reading | None = None,
    ) -> TextStep:
        results = tuple(results)
        verdict = env.verify()
        info = self._info(env, stop, results, reading, verdict)
        self._leave()
        reward = verdict.reward(self._reward)
        finished = stop is StopReason.FINISHED
        # Without a check that says anything there is no reward, and 0 would be a lie.
        return self._observation(results), math.nan if reward is None else reward, finished, not finished, info

    def _observation(self, results: Iterable[ToolMessage]) -> Any:
        if self._form == "messages":
            return list(self._messages)
        results = tuple(results)
        return self._dialect.results_text(results) if results else ""

    def _info(
        self,
        env: ToolEnv,
        stop: StopReason | None,
        results: Iterable[ToolMessage] = (),
        reading: Reading | None = None,
        verdict: Verdict | None = None,
    ) -> dict[str, Any]:
        info: dict[str, Any] = {**self.env_info, "stop_reason": stop.value if stop is not None else None}
        if stop is not StopReason.INFRASTRUCTURE:
            info["state_digest"] = env.digest
        info["is_error"] = any(result.is_error for result in results)
        info["slips"] = [slip.kind for slip in reading.slips] if reading is not None else []
        if verdict is not None:
            info |= {"verdict": verdict, "solved": verdict.solved}
        return info

    def _chosen(self, place: int, options: Mapping[str, Any]) -> tuple[str, int | str]:
        """The environment and scenario at a place: first through the environments, then through their scenarios."""
        rounds, index = divmod(place, len(self._choice))
        env_id = options.get("environment")
        if env_id is None:
            env_id = self._choice[index]
        elif env_id not in self._choice:
            raise UsageError(f"{env_id!r} is none of the environments played here; give one of {_few(self._choice)}")
        else:
            rounds = place
        which = options.get("scenario", self._scenario)
        return env_id, rounds % len(self._source.open().scenarios(env_id)) if which is None else which

    def _unopened(self, error: SandboxError) -> tuple[Any, dict[str, Any]]:
        reason = exception_text(type(error).__name__, str(error))
        log.warning("%s: an episode could not be opened: %s", self.env.skeleton.id, reason)
        self.env_reset_failed = True
        self._messages = []
        info = {**self.env_info, "tools": [], "infrastructure": reason}
        return ([] if self._form == "messages" else ""), info

    def _leave(self) -> None:
        self._over = True
        leave(self._env)


def _as_written(action: str | Mapping[str, Any], message: AssistantMessage) -> dict[str, Any]:
    """The model's message as it is put into the conversation: the text that it wrote, to the letter."""
    if isinstance(action, str):
        return {"role": "assistant", "content": action}
    calls = action.get("tool_calls")
    return {"role": "assistant", "content": message.content} | ({"tool_calls": calls} if calls else {})


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", …" if len(names) > 5 else "")


def _told(result: ToolMessage) -> dict[str, Any]:
    told = {"role": "tool", "content": result.content, "name": result.name}
    return told | ({"tool_call_id": result.tool_call_id} if result.tool_call_id else {})
