"""Reads calls that an endpoint gave as calls: their names and arguments can be as wrong as those in text."""

from __future__ import annotations

from envscaler.agents.dialects.lenient_json import Incomplete, Unreadable, read_json
from envscaler.agents.dialects.shape import Attempt, Tools, take_arguments
from envscaler.messages import ToolCall


def made_call(call: ToolCall, tools: Tools) -> Attempt:
    """The call that an endpoint gave as a call; its arguments may be broken all the same."""
    attempt = Attempt(text=call.malformed if call.malformed is not None else call.name, name=call.name)
    bare = call.name.rsplit(".", 1)[-1].removesuffix("()").strip()
    if call.name not in tools and bare in tools:
        attempt.name = bare
        attempt.slips.append("other_form")
    if not call.name.strip():
        attempt.fault = "nameless_call"
        attempt.text = call.malformed if call.malformed is not None else str(call.arguments)
        return attempt
    if call.malformed is None:
        attempt.arguments = call.arguments
        return attempt
    text = call.malformed.strip()
    try:
        read = read_json(text, 0)
    except Incomplete:
        attempt.fault = "cut_call"
        return attempt
    except Unreadable:
        take_arguments(attempt, text, tools.get(attempt.name))
        return attempt
    rest = text[read.end :].strip()
    if rest and set(rest) <= {"}", "]"}:
        attempt.slips.append("extra_brace")
    elif rest:
        attempt.fault = "unreadable_arguments"
        return attempt
    attempt.slips += read.slips
    take_arguments(attempt, read.value, tools.get(attempt.name))
    return attempt
