"""Finds calls without what should enclose them: JSON in a fence or in the open, and Python. Only those that name a tool
are calls; any other JSON is text."""

from __future__ import annotations

import re
from collections.abc import Iterable

from envscaler.agents.dialects.lenient_json import Unreadable, read_json
from envscaler.agents.dialects.python_calls import python_attempts
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools
from envscaler.agents.dialects.tags import json_attempts

_FENCE = re.compile(r"(?:^|(?<=\n))[ \t]*```[ \t]*[\w+-]*[ \t]*\n?|```[a-z_]*[ \t]*\n?")
_FENCE_END = re.compile(r"\s*```")
_NAMED = re.compile(
    r"[\[{\s]*(?:[\"']?(?:function|tool_call|type)[\"']?\s*:\s*(?:[\"']function[\"']\s*,\s*|\{\s*))*"
    r"[\"']?(?:name|tool|tool_name|function|function_name|action)[\"']?\s*:\s*[\"'](?P<name>[\w.\-]+)[\"']"
)
_CLOSERS = ("\n```", "</tool_call>", "<|eot_id|>", "<|im_end|>")
_STRAY_CLOSE = re.compile(r"\s*</(?:tool_call|function|tool_calls|tools)>")


def bare_calls(text: str, tools: Tools, keys: Keys) -> list[Found]:
    """The calls in a reply in which none has its proper form, with the slips that they are."""
    if not any(name in text for name in tools):
        return []
    found = _fenced(text, tools, keys) or _open(text, tools, keys) or _python(text, tools)
    if found and not _whole(text, found):
        for stretch in found:
            for attempt in stretch.attempts:
                attempt.slips.append("call_in_prose")
    return found


def _whole(text: str, found: Iterable[Found]) -> bool:
    """Whether the reply is these calls and nothing else."""
    position = 0
    for stretch in found:
        if text[position : stretch.start].strip(" \t\n,;"):
            return False
        position = stretch.end
    return not text[position:].strip(" \t\n,;")


def _fenced(text: str, tools: Tools, keys: Keys) -> list[Found]:
    found: list[Found] = []
    position = 0
    while fence := _FENCE.search(text, position):
        position = fence.end()
        if text[position : position + 1] in ("{", "["):
            attempts, end = json_attempts(text, position, tools, keys, ("\n```", "```"))
        else:
            stop = text.find("```", position)
            attempts, end = python_attempts(text[position:stop] if stop >= 0 else "", tools), stop
        if not attempts or not _names_a_tool(attempts, text[fence.end() :], tools):
            # Past this block, so that its end is not taken for the beginning of the next one.
            stop = text.find("```", position)
            position = len(text) if stop < 0 else stop + 3
            continue
        closing = _FENCE_END.match(text, end)
        end = closing.end() if closing else end
        _mark(attempts, text[fence.start() : end], "fenced_call")
        found.append(Found(fence.start(), end, attempts))
        position = max(end, fence.end())
    return found


def _open(text: str, tools: Tools, keys: Keys) -> list[Found]:
    found: list[Found] = []
    position = 0
    while (start := _next_bracket(text, position)) >= 0:
        # Most brackets open no call: only what looks like one is read as leniently as a call is.
        if not _may_be_call(text, start, tools):
            try:
                position = read_json(text, start).end if text[start] == "{" else start + 1
            except Unreadable:
                position = start + 1
            position = max(position, start + 1)
            continue
        attempts, end = json_attempts(text, start, tools, keys, _CLOSERS)
        position = max(end, start + 1)
        if not _names_a_tool(attempts, text[start:], tools):
            position = start + 1
            continue
        closing = _STRAY_CLOSE.match(text, end)
        end = closing.end() if closing else end
        _mark(attempts, text[start:end], "missing_wrapper")
        found.append(Found(start, end, attempts))
        position = end
    return found


def _python(text: str, tools: Tools) -> list[Found]:
    attempts = python_attempts(text, tools)
    return [Found(0, len(text), attempts)] if attempts else []


def _next_bracket(text: str, position: int) -> int:
    places = [place for bracket in "{[" if (place := text.find(bracket, position)) >= 0]
    return min(places, default=-1)


def _may_be_call(text: str, start: int, tools: Tools) -> bool:
    head = text[start : start + 2000]
    return any(re.search(rf"[\"'.]{re.escape(name)}[\"']", head) for name in tools)


def _names_a_tool(attempts: list[Attempt], rest: str, tools: Tools) -> bool:
    for attempt in attempts:
        if attempt.name in tools:
            return True
        named = _NAMED.match(rest) if attempt.fault in ("cut_call", "unreadable_call") else None
        if named is not None and named["name"] in tools:
            attempt.name = named["name"]
            return True
    return False


def _mark(attempts: list[Attempt], text: str, kind: str) -> None:
    if len(attempts) == 1:
        attempts[0].text = text.strip()
    for attempt in attempts:
        attempt.slips.append(kind)
