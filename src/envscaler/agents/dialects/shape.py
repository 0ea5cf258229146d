"""Turns a JSON value into the call that it stands for, in any of the shapes that models give it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from envscaler.agents.dialects.lenient_json import Unreadable, read_json
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue

Tools = Mapping[str, ToolSpec]
"""The tools on offer by name."""

_NAME_KEYS = ("name", "tool", "tool_name", "function", "function_name", "action", "call")
_ARGUMENT_KEYS = ("arguments", "parameters", "args", "params", "input", "action_input", "tool_input", "kwargs")
_SILENT_KEYS = frozenset({"id", "type", "tool_call_id", "call_id", "index"})


@dataclass
class Attempt:
    """One call that a reply makes or tries to make."""

    text: str
    """As it stands in the reply, with what encloses it."""
    name: str = ""
    arguments: dict[str, JsonValue] = field(default_factory=dict)
    slips: list[str] = field(default_factory=list)
    fault: str | None = None
    """Why nothing can be carried out; None when it can."""


@dataclass
class Found:
    """A stretch of a reply that makes calls."""

    start: int
    end: int
    attempts: list[Attempt]


@dataclass(frozen=True)
class Keys:
    """Under what a dialect writes a call's name and arguments."""

    name: str = "name"
    arguments: str = "arguments"
    silent: Collection[str] = frozenset()
    """Further keys that are no slip."""


def shaped(value: JsonValue, text: str, tools: Tools, keys: Keys, slips: Sequence[str] = ()) -> Attempt:
    """The call in `value`.

    Args:
        text: where it was read.
        slips: what had to be put right already.
    """
    attempt = Attempt(text=text, slips=list(slips))
    if not isinstance(value, dict):
        attempt.fault = "unreadable_call"
        return attempt
    members = dict(value)
    inner = members.get("function")
    if isinstance(inner, dict):
        members = {**{key: part for key, part in members.items() if key != "function"}, **inner}
        attempt.slips.append("other_keys")
    if not _name(members, attempt, tools, keys):
        attempt.fault = "nameless_call"
        return attempt
    if _is_definition(members, tools.get(attempt.name)):
        attempt.fault = "echoed_tool"
    else:
        _arguments(members, attempt, tools.get(attempt.name), keys)
    attempt.slips = list(dict.fromkeys(attempt.slips))
    return attempt


def take_arguments(attempt: Attempt, given: JsonValue, tool: ToolSpec | None) -> None:
    """Put what was given as arguments into the attempt."""
    if isinstance(given, dict):
        attempt.arguments = given
    elif given is None or given == [] or (isinstance(given, str) and given.strip() in ("", "null", "None")):
        attempt.slips.append("null_arguments")
    elif isinstance(given, str):
        _read_arguments(attempt, given, tool)
    else:
        _bare(attempt, given, tool)


def parameters_of(tool: ToolSpec | None) -> dict[str, JsonValue]:
    """The parameters of a tool by name; none when it is not known."""
    properties = tool.parameters.get("properties") if tool is not None else None
    return properties if isinstance(properties, dict) else {}


def _name(members: dict[str, JsonValue], attempt: Attempt, tools: Tools, keys: Keys) -> bool:
    """Take the name out of the members; False when there is none."""
    for key in (keys.name, *_NAME_KEYS):
        name = members.get(key)
        if isinstance(name, str) and name.strip():
            del members[key]
            if key != keys.name:
                attempt.slips.append("other_keys")
            attempt.name = _undressed(name.strip(), attempt, tools)
            return True
    if len(members) == 1:
        (name, given), *_ = members.items()
        if name in tools and (given is None or isinstance(given, dict | str)):
            attempt.name = name
            attempt.slips.append("other_keys")
            members[keys.arguments] = members.pop(name)
            return True
    return False


def _undressed(name: str, attempt: Attempt, tools: Tools) -> str:
    """The name without a namespace (`functions.look_up`) or brackets, where that makes it a tool's."""
    if name in tools:
        return name
    bare = name.removesuffix("()").rsplit(".", 1)[-1].strip("<>`'\" ")
    if bare in tools:
        attempt.slips.append("other_form")
        return bare
    return name


def _is_definition(members: dict[str, JsonValue], tool: ToolSpec | None) -> bool:
    """Whether this is a tool as it is offered and no call of it: small models repeat what they were told."""
    if "description" in members and "description" not in parameters_of(tool):
        return True
    given = next((members[key] for key in _ARGUMENT_KEYS if key in members), None)
    return isinstance(given, dict) and given.get("type") == "object" and isinstance(given.get("properties"), dict)


def _arguments(members: dict[str, JsonValue], attempt: Attempt, tool: ToolSpec | None, keys: Keys) -> None:
    rest = {key: part for key, part in members.items() if key not in _SILENT_KEYS and key not in keys.silent}
    if members.get("type") not in (None, "function", "tool_call") and "type" in parameters_of(tool):
        rest["type"] = members["type"]
    if keys.arguments in rest:
        given = rest.pop(keys.arguments)
    elif rest and set(rest) <= set(parameters_of(tool)):
        attempt.slips.append("flat_arguments")
        attempt.arguments = rest
        return
    else:
        other = next((key for key in _ARGUMENT_KEYS if key in rest), None)
        if other is not None:
            attempt.slips.append("other_keys")
        given = rest.pop(other) if other is not None else None
    # Some of the arguments in their object and some beside it: which were meant is not known.
    if set(rest) & set(parameters_of(tool)):
        attempt.fault = "unreadable_arguments"
        return
    if rest or "type" in members:
        attempt.slips.append("other_keys")
    take_arguments(attempt, given, tool)


def _read_arguments(attempt: Attempt, given: str, tool: ToolSpec | None) -> None:
    text = given.strip()
    try:
        read = read_json(text, 0)
    except Unreadable:
        _bare(attempt, given, tool)
        return
    if text[read.end :].strip() or not isinstance(read.value, dict):
        _bare(attempt, given, tool)
        return
    attempt.slips += ["arguments_as_text", *read.slips]
    attempt.arguments = read.value


def _bare(attempt: Attempt, given: JsonValue, tool: ToolSpec | None) -> None:
    """Take a value without a name for the only parameter that there is."""
    names = list(parameters_of(tool))
    looks_broken = isinstance(given, str) and given.lstrip().startswith(("{", "["))
    if len(names) != 1 or looks_broken:
        attempt.fault = "unreadable_arguments"
        return
    attempt.slips.append("bare_argument")
    attempt.arguments = {names[0]: given}
