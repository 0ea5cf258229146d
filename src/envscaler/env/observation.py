"""Words what an agent sees of a tool call: the result as JSON text (or as the authors wrote it), or a readable error.

Whether a call is carried out, and how, is not this module's business.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Literal

import msgspec

from envscaler.errors import exception_text
from envscaler.sandbox import Outcome, ToolFault
from envscaler.state import JsonValue

ObservationStyle = Literal["json", "released"]
"""`json`: the result as compact JSON text, characters as they are. `released`: `str()` of the result, as the authors
published it."""

_ENCODE = msgspec.json.Encoder().encode

_FAULTS = {
    "raised": "the tool raised {exception}",
    "timeout": "the tool did not finish in time ({message})",
    "killed": "the tool took its process down ({message})",
    "not_json": "the tool returned something that is not JSON ({message})",
    "too_large": "the tool returned too much ({message})",
    "unknown_tool": "{message}",
}


def observe(outcome: Outcome, style: ObservationStyle = "json") -> str:
    """The text of the observation for what a tool did."""
    if outcome.fault is not None:
        return error_text(fault_text(outcome.fault))
    return result_text(outcome.result, style)


def result_text(result: JsonValue, style: ObservationStyle = "json") -> str:
    """A tool's result as text."""
    if style == "released":
        return str(result)
    try:
        return _ENCODE(result).decode()
    except UnicodeEncodeError:
        # A lone surrogate has no UTF-8 form; only then is it written as an escape.
        return json.dumps(result, ensure_ascii=True, separators=(",", ":"))


def fault_text(fault: ToolFault) -> str:
    """Why a tool gave no result, and that it left no trace."""
    exception = exception_text(fault.type, fault.message)
    reason = _FAULTS[fault.kind].format(exception=exception, message=fault.message or fault.type)
    return f"{reason}; nothing was changed"


def error_text(reason: str) -> str:
    """The observation of a call that was refused or failed."""
    return f"Error: {reason}"


def unknown_tool_text(name: str, known: Iterable[str]) -> str:
    """Why a call to a tool that does not exist is refused."""
    names = sorted(known)
    near = get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]}?" if near else f"the tools are: {', '.join(names)}"
    return f"there is no tool named {name!r}; {hint}"
