"""`Episode`: a published episode as it can be played again, whichever of the two published forms it has.

One form is what the authors' runner writes (`task_info`, `messages`, `trajectory` …), the other a flat one with its
own state and checks (`init_config`, `steps` …). Playing is `rollout`'s business.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from envscaler.errors import StoreError
from envscaler.messages import ToolCall
from envscaler.released.fields import Published, entry_of, folder_name, identifier, kind_of, rows, text
from envscaler.released.scenarios import checks_of, initial_state_of
from envscaler.scenario import Check
from envscaler.state import JsonValue, State

CHAT = "chat_with_user"
"""The action that talks to the user; without a simulated user it ends the episode."""
EXCEPTION = "Error: <Exception>"
"""Beginning of the observation that a call which raised left: the recorder's traceback follows."""
_NOT_CALLED = ("Error: Invalid action", "Error: Failed to parse response")
_ENCODED = ("task_info", "tools", "messages", "user_messages", "trajectory", "steps", "init_config")
_ENCODED_CHECKS = ("checklist_with_func",)
_OVER = ("Task finished", "###STOP###")

Ending = Literal["finished", "ended_by_exception", "cut_at_limit"]
"""How the authors' rule sees an end: only what was finished is judged, everything else gets a reward of 0."""


@dataclass(frozen=True, slots=True)
class PlayedStep:
    """One action of the agent and what it saw."""

    call: ToolCall | None
    """The call that the action was; None when it was none."""
    called: bool
    """Whether a tool was really called: not where the recorder refused the action."""
    said: str
    """What the agent said to the user, or its reply where that was no action; "" with a call."""
    observation: str
    raised: bool
    """Whether the call raised, which ended the episode."""
    reasoning: str | None = None
    """Reasoning that the recorder kept with a reply that it could make no action of."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One published episode."""

    env_id: str
    task_id: str
    task: str
    model: str | None
    initial_state: State | None
    """None: that of the scenario of its id."""
    checks: tuple[Check, ...] | None
    """None: those of the scenario of its id."""
    steps: tuple[PlayedStep, ...]
    reward: float | None
    """As recorded."""
    ending: Ending

    @property
    def calls(self) -> int:
        """Steps that called a tool."""
        return sum(step.called for step in self.steps)


def published_episode(value: JsonValue, where: str) -> Published:
    """A published episode as plain data, JSON strings in it decoded.

    Raises:
        StoreError: naming the field that is wrong.
    """
    return entry_of(value, where, (*_ENCODED, *_ENCODED_CHECKS))


def is_flat(published: Published) -> bool:
    """Whether an episode has the form that brings its own state: no `task_info`."""
    return "task_info" not in published


def episode_of(published: Published, where: str) -> Episode:
    """The episode in a published entry that `published_episode` gave.

    Raises:
        StoreError: naming the field that is missing or wrong.
    """
    task = published if is_flat(published) else published["task_info"]
    if not isinstance(task, dict):
        raise StoreError(f"{where}: field `task_info` holds {kind_of(task)}; an object is needed")
    name = "steps" if isinstance(published.get("steps"), list) else "trajectory"
    if published.get(name) is None:
        raise StoreError(f"{where}: field `{name}` is missing")
    played = [
        _step(part)
        for part in rows(published, name, where)
        # The runner's first row is what the agent was told.
        if "action" in part
    ]
    model = published.get("model")
    return Episode(
        env_id=folder_name(identifier(task, "env_id", where)),
        task_id=identifier(task, "task_id", where),
        task=text(task, "task", where) if "task" in task else "",
        model=model if isinstance(model, str) else None,
        initial_state=initial_state_of(published, where) if "init_config" in published else None,
        checks=checks_of(published, where) if "checklist_with_func" in published else None,
        steps=tuple(played),
        reward=_reward(published, where),
        ending=_ending(published, played),
    )


def ends_talk(observation: str) -> bool:
    """Whether an observation says that the episode is over, and is nobody's word."""
    return any(observation.strip() == word for word in _OVER)


def _step(part: Published) -> PlayedStep:
    action, seen = part["action"], part.get("observation")
    kind, content = ("user", seen) if not isinstance(seen, dict) else (seen.get("type"), seen.get("content"))
    observation = content if isinstance(content, str) else "" if content is None else json.dumps(content)
    if isinstance(action, dict) and isinstance(action.get("name"), str):
        arguments = _arguments(action.get("arguments"))
        if action["name"] == CHAT:
            said = arguments.get("content") if arguments is not None else None
            return PlayedStep(None, False, said if isinstance(said, str) else "", observation, False)
        raised = kind != "tool" and observation.startswith(EXCEPTION)
        refused = kind != "tool" and observation.startswith(_NOT_CALLED)
        malformed = None if arguments is not None else json.dumps(action.get("arguments"), ensure_ascii=False)
        call = ToolCall(name=action["name"], arguments=arguments or {}, malformed=malformed)
        return PlayedStep(call, not refused and malformed is None, "", observation, raised)
    reasoning = action.get("reasoning_content") if isinstance(action, dict) else None
    return PlayedStep(
        None, False, _reply(action), observation, False, reasoning if isinstance(reasoning, str) else None
    )


def _reply(action: JsonValue) -> str:
    """The text of a reply that the recorder could make no action of."""
    if isinstance(action, str):
        return action
    if isinstance(action, dict) and isinstance(action.get("content"), str):
        return str(action["content"])
    return "" if action is None else json.dumps(action, ensure_ascii=False)


def _arguments(value: JsonValue) -> dict[str, JsonValue] | None:
    """The arguments of an action; None when they are no object, which the recorder refused."""
    if value is None:
        return {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _reward(published: Published, where: str) -> float | None:
    value = published.get("total_reward")
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise StoreError(f"{where}: field `total_reward` holds {kind_of(value)}; a number is needed")
    return float(value)


def _ending(published: Published, steps: list[PlayedStep]) -> Ending:
    if steps and steps[-1].raised:
        return "ended_by_exception"
    terminated = published.get("terminated")
    if terminated is None:
        # Only a final answer ends an episode of its own accord.
        return "finished" if steps and steps[-1].call is None else "cut_at_limit"
    return "finished" if terminated and not published.get("truncated") else "cut_at_limit"
