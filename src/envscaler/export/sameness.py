"""Whether two episodes are the same: the same record in two runs, or the same calls but for created ids and times."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from envscaler.messages import all_as_carried_out
from envscaler.state import JsonValue, digest
from envscaler.trajectory import Trajectory

_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?")
_WORD = re.compile(r"[\w.+-]*\w")


def record_mark(trajectory: Trajectory) -> str:
    """What two copies of one episode have in common, whatever they are numbered as in their runs."""
    return digest(trajectory.model_dump(exclude={"id", "sample"}))


def calls_mark(trajectory: Trajectory) -> str:
    """What two episodes of one scenario have in common that make the same calls.

    An id that an update of the episode returned, and that nothing had shown before, stands as the place of its first
    appearance: it depends on chance alone. Times are left out of arguments for the same reason.
    """
    updates = {tool.name for tool in trajectory.tools if tool.effect == "update"}
    shown: set[str] = set()
    created: dict[str, str] = {}
    calls: list[JsonValue] = []
    for step in trajectory.steps:
        if step.user is not None:
            shown.update(_WORD.findall(step.user.content))
        for call in all_as_carried_out(step.assistant, step.observations).tool_calls:
            calls.append([call.name, _masked(call.arguments, created)])
            shown.update(_WORD.findall(str(call.arguments)))
        for number, observation in enumerate(step.observations):
            if observation.name in updates:
                texts = _texts(_read(observation.content))
                # Ids are single words.
                fresh = [text for text in texts if text not in shown and _WORD.fullmatch(text)]
                for place, text in enumerate(dict.fromkeys(fresh)):
                    created.setdefault(text, f"<{len(calls) - len(step.observations) + number}.{place}>")
            shown.update(_WORD.findall(observation.content))
    return digest([trajectory.env_id, trajectory.scenario_digest or trajectory.scenario_id, trajectory.mode, calls])


def _masked(value: JsonValue, created: dict[str, str]) -> JsonValue:
    if isinstance(value, str):
        return created.get(value) or _TIME.sub("<time>", value)
    if isinstance(value, list):
        return [_masked(part, created) for part in value]
    if isinstance(value, dict):
        return {created.get(key, key): _masked(part, created) for key, part in value.items()}
    return value


def _texts(value: JsonValue) -> Iterator[str]:
    """Every text in a JSON value, keys too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _texts(part)


def _read(content: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(content)
    except ValueError:
        return content
    return value
