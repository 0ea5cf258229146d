"""Words values for people: calls, arguments, JSON, shares. Shared by the page and the terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from envscaler.assessment import Examined, Repair
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue

_COMPACT = 300
_LINE = 110
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Control characters but tabs and ends of lines, and those that begin lines or turn the order of a line around."""


def compact(value: JsonValue, limit: int = _COMPACT) -> str:
    """JSON on one line, cut where it grows long."""
    return shortened(json.dumps(value, ensure_ascii=False), limit)


def pretty(value: JsonValue) -> str:
    """JSON over several lines, characters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def observed(text: str) -> str:
    """An observation, laid out when it is JSON too long for a line."""
    try:
        value = json.loads(text)
    except ValueError:
        return text
    if not isinstance(value, dict | list):
        return text
    line = json.dumps(value, ensure_ascii=False)
    return line if len(line) <= _LINE else pretty(value)


def arguments_text(arguments: Mapping[str, JsonValue]) -> str:
    """`name="x", count=2` as Python readers know it, with JSON values."""
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items())


def signature(tool: ToolSpec) -> str:
    """The parameters of a tool with their types, optional ones marked."""
    properties: dict[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", [])
    parts = []
    for name, schema in properties.items():
        text = f"{name}: {type_text(schema)}"
        if name not in required:
            given = isinstance(schema, Mapping) and "default" in schema
            text += f" = {json.dumps(schema['default'], ensure_ascii=False)}" if given else " = …"
        parts.append(text)
    return ", ".join(parts)


def type_text(schema: Any) -> str:
    """A JSON Schema as a short type."""
    if not isinstance(schema, Mapping):
        return "any"
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " | ".join(type_text(part) for part in schema[union])
    kind = schema.get("type", "any")
    if isinstance(kind, list):
        return " | ".join(map(str, kind))
    if kind == "array":
        return f"array of {type_text(schema['items'])}" if schema.get("items") else "array"
    return str(kind)


def shortened(text: str, limit: int) -> str:
    """The text on one line, cut at `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def decimal(value: float | None) -> str:
    """A reward; a dash where it is not defined."""
    return "–" if value is None else f"{value:.3f}"


def percent(share: float | None) -> str:
    """A share; a dash where it is not known. Only a whole is called 100%."""
    if share is None:
        return "–"
    return "99.9%" if 0.9995 <= share < 1 else f"{100 * share:.1f}%".replace(".0%", "%")


def interval_text(ends: tuple[float, float] | None) -> str:
    """An interval of a share; a dash where nothing is known."""
    return "–" if ends is None else f"{percent(ends[0])} to {percent(ends[1])}"


def rate_text(share: float | None, ends: tuple[float, float] | None) -> str:
    """A share with its interval."""
    return percent(share) if ends is None else f"{percent(share)} ({interval_text(ends)})"


def repair_text(repair: Repair) -> str:
    """What became of the repair of one tool, in a sentence."""
    asked = count(repair.attempts, "version")
    if repair.dropped is not None:
        return f"{repair.tool} was given up after {asked}: {repair.dropped}"
    if repair.accepted:
        failed = sum(case.verdict == "fail" for case in repair.before)
        why = f"{failed} of {count(len(repair.before), 'earlier call')} failed"
        if not repair.before and repair.found:
            why = repair.found[0].detail
        return f"{repair.tool} was repaired ({why}, {asked})"
    return f"{repair.tool} was not repaired after {asked}: {'; '.join(repair.refused)}"


def examined_text(examined: Sequence[Examined]) -> str:
    """What was found of the tools without a model, in a sentence."""
    verdicts = [one.verdict for one in examined]
    return (
        f"Tried without a model: {count(len(verdicts), 'tool')}, {verdicts.count('pass')} in order, "
        f"{verdicts.count(None)} left to a judge, {verdicts.count('fail')} at fault."
    )


def visible(text: str) -> str:
    """The text with control characters written out, so that no tool's words can drive a terminal or turn the order of
    what is read around."""

    def written_out(found: re.Match[str]) -> str:
        code = ord(found[0])
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"

    return _CONTROL.sub(written_out, text)


def count(number: int, singular: str, plural: str | None = None) -> str:
    """`1 tool`, `3 tools`."""
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
