"""Environments for TRL's `environment_factory`: for each a class whose methods are its tools.

    trainer = GRPOTrainer(..., train_dataset=rows, environment_factory=environment_factories("library"))

The rows are those of `envscaler export rl --format trl`. TRL itself is not imported here: it asks nothing of an
environment but its methods. How rows are written is `export`'s business.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from envscaler.adapters.methods import attribute_name, tool_method
from envscaler.adapters.sources import Source, leave
from envscaler.agents import SystemPrompts
from envscaler.env import ToolEnv
from envscaler.errors import SandboxError, UsageError, exception_text, require_one_of
from envscaler.sandbox import Isolation
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State
from envscaler.trajectory import Mode, RewardMode, Verdict

log = logging.getLogger(__name__)

SCENARIO_COLUMN = "scenario_id"
"""The column of a row that names its scenario, by id or by index."""

_MODE: Mode = "non-conversation"

_classes: dict[EnvironmentFactory, type[PooledEnvironment]] = {}
_making = threading.Lock()

_OWN_METHODS = frozenset({"reset", "get_reward"})
_OVER = "Error: the episode is over; nothing was changed"
_LOST = "Error: the environment failed, through no fault of yours; this episode does not count"


def environment_factories(
    library: str | os.PathLike[str],
    env_ids: Iterable[str] | None = None,
    *,
    reward: RewardMode = "fraction",
    coerce: bool = False,
    held_out: bool = False,
    isolation: Isolation = "default",
) -> dict[str, EnvironmentFactory]:
    """A factory for each environment, under its id, for `GRPOTrainer(environment_factory=...)`.

    Args:
        library: its folder, or a name that stands for it.
        env_ids: None: all that have scenarios and may be trained on.
        reward: how final states are rewarded, see `Verdict.reward`.
        coerce: put arguments into the types that a tool asks for where nothing is lost (`"3"` for an integer).
        held_out: give environments that are held out from training too, to measure on them.
        isolation: how far apart episodes are kept.

    Raises:
        UsageError: if the library or an environment is not there, or must not be trained on.
    """
    chosen = None if env_ids is None else tuple(env_ids)
    source = Source.of(library, chosen, held_out=held_out, isolation=isolation)
    return {env_id: EnvironmentFactory(source, env_id, reward, coerce) for env_id in source.choice()}


@dataclass(frozen=True)
class EnvironmentFactory:
    """Makes instances of one environment, all of one class. Can be pickled, for workers in other processes."""

    source: Source
    env_id: str
    reward: RewardMode = "fraction"
    coerce: bool = False

    def __post_init__(self) -> None:
        require_one_of("reward", self.reward, get_args(RewardMode))

    def __call__(self) -> PooledEnvironment:
        return environment_class(self)()


def environment_class(factory: EnvironmentFactory) -> type[PooledEnvironment]:
    """The class of a factory's instances: TRL scores an instance by its class, so there is only one.

    All tools of the environment are its methods; a scenario that hides some refuses them.
    """
    with _making:
        if factory not in _classes:
            _classes[factory] = _made(factory)
        return _classes[factory]


def _made(factory: EnvironmentFactory) -> type[PooledEnvironment]:
    skeleton = factory.source.open().skeleton(factory.env_id)
    members: dict[str, Any] = {"__doc__": skeleton.doc, "__module__": __name__, "_factory": factory}
    for tool in skeleton.tools:
        members[attribute_name(tool.name, _OWN_METHODS | members.keys())] = tool_method(tool, PooledEnvironment._called)
    return type(_class_name(skeleton), (PooledEnvironment,), members)


class PooledEnvironment:
    """One episode after another, of whatever scenarios of its environment the rows name.

    TRL keeps instances in pools and resets them for the next row, whether or not the last episode came to its end.
    """

    _factory: ClassVar[EnvironmentFactory]

    def __init__(self) -> None:
        self._env: ToolEnv | None = None
        self._verdict: Verdict | None = None
        self._failure: str | None = None
        """Why the episode was lost; None while it is not."""
        self._over = False

    def reset(self, **row: Any) -> str | None:
        """Begin the episode of a row; what its prompt lacks is given back, and put behind it by TRL.

        Raises:
            UsageError: if the row names no scenario of this environment, or another version of it.
            SandboxError: if the machinery fails twice in a row: there is no episode to lose yet.
        """
        self._leave()
        factory = self._factory
        for column in ("environment", "env_id"):
            if row.get(column, factory.env_id) != factory.env_id:
                raise UsageError(f"the row is of environment {row[column]}, not of {factory.env_id}")
        if row.get("mode", _MODE) != _MODE:
            raise UsageError(f"the row is of mode {row['mode']}: TRL has nobody who would play the user")
        which = row.get(SCENARIO_COLUMN)
        if which is None:
            raise UsageError(
                f"the row names no scenario of {factory.env_id} in a column {SCENARIO_COLUMN}; episodes of a group "
                "must all be of one scenario, so none is drawn here"
            )
        library = factory.source.open()
        env = library.make(factory.env_id, scenario=which, reward=factory.reward, coerce=factory.coerce)
        _require_pinned(row, env)
        try:
            env.reset()
        except SandboxError as error:
            log.warning("%s: an episode could not be opened and is opened again: %s", factory.env_id, error)
            env.reset()
        self._env, self._verdict, self._failure, self._over = env, None, None, False
        return _lacking(row.get("prompt"), env)

    def get_reward(self) -> float | None:
        """End the episode; the reward of its final state, or None where there is none to speak of.

        TRL leaves an episode out of everything for which it is told None: one that the machinery cut short, or of a
        scenario whose checks say nothing in the reward mode.
        """
        verdict = self._judged()
        return verdict.reward(self._factory.reward) if verdict is not None else None

    def _judged(self) -> Verdict | None:
        """The verdict on the state in which the episode ended or is ended now; None if it was lost."""
        env = self._begun()
        if not self._over:
            if self._failure is None:
                try:
                    self._verdict = env.verify()
                except SandboxError as error:
                    self._lose(error)
            # A pool keeps instances of all environments; only those at work are to hold a session.
            self._leave()
        return self._verdict

    def _state(self) -> State:
        """The state of the running episode, for reward functions of your own."""
        return self._begun().state()

    def _called(self, tool: str, arguments: dict[str, JsonValue]) -> str:
        env = self._begun()
        if self._failure is not None:
            return _LOST
        if self._over:
            return _OVER
        try:
            return env.call(tool, arguments).content
        except SandboxError as error:
            # TRL would show it to the model and go on to the reward.
            self._lose(error)
            return _LOST

    def _lose(self, error: SandboxError) -> None:
        self._failure = exception_text(type(error).__name__, str(error))
        log.warning("%s: an episode is lost and will not be rewarded: %s", self._factory.env_id, self._failure)

    def _leave(self) -> None:
        self._over = True
        leave(self._env)

    def _begun(self) -> ToolEnv:
        if self._env is None:
            raise UsageError("reset begins an episode, and was not called")
        return self._env


def _require_pinned(row: dict[str, Any], env: ToolEnv) -> None:
    """
    Raises:
        UsageError: if a row tells digests, and they are not those of what is there now.
    """
    now = {"env_digest": env.skeleton.digest, "scenario_digest": env.scenario.digest}
    for column, digest in now.items():
        if row.get(column, digest) != digest:
            raise UsageError(
                f"scenario {env.scenario.id} is another one than the row was written for ({column} differs); "
                "export the rows again"
            )


def _lacking(prompt: Any, env: ToolEnv) -> str | None:
    """What an episode's prompt lacks: nothing, the task, or the task and the system prompt."""
    messages = prompt if isinstance(prompt, list) else [{"role": "user", "content": prompt or ""}]
    told = [text for message in messages if (text := _text(message.get("content")))]
    task = env.scenario.task
    if any(task in text for text in told):
        return None
    if any(message.get("role") == "system" for message in messages):
        parts = [task]
    else:
        parts = [SystemPrompts().text(env.skeleton, _MODE), task]
    behind = _text(messages[-1].get("content")) if messages else ""
    return "\n\n".join(["", *parts] if behind else parts)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _class_name(skeleton: EnvSkeleton) -> str:
    """What TRL names the reward after: the environment's id, as a class is named."""
    words = re.split(r"[\W_]+", skeleton.id)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"Environment{name}"
