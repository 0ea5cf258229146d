"""Finds calls after a mark: Mistral's `[TOOL_CALLS]` and Llama's `<|python_tag|>`."""

from __future__ import annotations

import re

from envscaler.agents.dialects.lenient_json import Incomplete, Unreadable, read_json
from envscaler.agents.dialects.python_calls import python_attempts
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools, take_arguments
from envscaler.agents.dialects.tags import json_attempts

TOOL_CALLS = "[TOOL_CALLS]"
PYTHON_TAG = "<|python_tag|>"
MISTRAL_KEYS = Keys("name", "arguments")
LLAMA_KEYS = Keys("name", "parameters")

_NAME = re.compile(r"\s*(?P<name>[\w.\-]+)\s*(?:\[CALL_ID\]\s*\w+\s*)?(?P<mark>\[ARGS\])?\s*")
_MARK = re.compile(r"\[TOOL_CALLS?\]", re.IGNORECASE)
_FENCE = re.compile(r"\s*```[a-z]*\s*")
_FENCE_END = re.compile(r"\s*```")
_ENDS = re.compile(r"\s*\[/TOOL_CALLS?\]", re.IGNORECASE)
_CLOSERS = ("[/TOOL_CALLS]", TOOL_CALLS, "</s>", "\n```")


def marked_calls(text: str, tools: Tools) -> list[Found]:
    """All calls after `[TOOL_CALLS]`, in their order."""
    found: list[Found] = []
    position = 0
    while mark := _MARK.search(text, position):
        attempts, end = _after_mark(text, mark.end(), tools)
        if mark.group() != TOOL_CALLS:
            for attempt in attempts:
                attempt.slips.append("other_form")
        if len(attempts) == 1:
            attempts[0].text = text[mark.start() : end].strip()
        found.append(Found(mark.start(), end, attempts))
        position = max(end, mark.end())
    return found


def _after_mark(text: str, start: int, tools: Tools) -> tuple[list[Attempt], int]:
    fence = _FENCE.match(text, start)
    position = fence.end() if fence else start
    while position < len(text) and text[position].isspace():
        position += 1
    if text[position : position + 1] in ("[", "{"):
        listed = text[position] == "["
        attempts, end = json_attempts(text, position, tools, MISTRAL_KEYS, _CLOSERS)
        for attempt in attempts:
            # The list is this dialect's form; a call without one is the slip.
            if listed:
                attempt.slips = [slip for slip in attempt.slips if slip != "call_list"]
            elif attempt.fault is None:
                attempt.slips.append("other_form")
        if fence:
            closing = _FENCE_END.match(text, end)
            end = closing.end() if closing else end
            for attempt in attempts:
                attempt.slips.append("fenced_call")
    elif name := _NAME.match(text, position):
        attempt, end = _named(text, name, tools)
        attempts = [attempt]
    else:
        nothing = not text[position:].strip()
        attempts = [Attempt(text=text[start:], fault="cut_call" if nothing else "unreadable_call")]
        following = _MARK.search(text, start)
        end = following.start() if following else len(text)
    closing = _ENDS.match(text, end)
    return attempts, closing.end() if closing else end


def _named(text: str, name: re.Match[str], tools: Tools) -> tuple[Attempt, int]:
    """`name[ARGS]{…}`, also without the inner mark."""
    attempt = Attempt(text=text[name.start() :], name=name["name"])
    position = name.end()
    if text[position : position + 1] != "{":
        attempt.fault = "unreadable_call" if text[position:].strip() else "cut_call"
        following = _MARK.search(text, position)
        return attempt, following.start() if following else len(text)
    try:
        read = read_json(text, position, _CLOSERS)
    except Incomplete:
        attempt.fault = "cut_call"
        return attempt, len(text)
    except Unreadable:
        attempt.fault = "unreadable_arguments"
        following = _MARK.search(text, position)
        return attempt, following.start() if following else len(text)
    attempt.slips += read.slips
    take_arguments(attempt, read.value, tools.get(attempt.name))
    end = read.end
    while end < len(text) and text[end] in "}] " and text[end:].strip().startswith(("}", "]")):
        end += 1
        if "extra_brace" not in attempt.slips:
            attempt.slips.append("extra_brace")
    return attempt, end


def python_tagged_calls(text: str, tools: Tools) -> list[Found]:
    """All calls after `<|python_tag|>`, in their order."""
    found: list[Found] = []
    position = 0
    while (start := text.find(PYTHON_TAG, position)) >= 0:
        attempts, end = llama_attempts(text, start + len(PYTHON_TAG), tools)
        if len(attempts) == 1:
            attempts[0].text = text[start:end].strip()
        found.append(Found(start, end, attempts))
        position = end
    return found


def llama_attempts(text: str, start: int, tools: Tools) -> tuple[list[Attempt], int]:
    """The calls at `start`: JSON objects, several of them parted by semicolons, or Python."""
    position = start
    while position < len(text) and text[position].isspace():
        position += 1
    if text[position : position + 1] not in ("{", "["):
        return _python(text, position, tools)
    if text[position] == "[" and (calls := python_attempts(text[position:], tools)):
        return calls, len(text)
    attempts: list[Attempt] = []
    while True:
        made, end = json_attempts(text, position, tools, LLAMA_KEYS, (PYTHON_TAG, "<|eom_id|>", "<|eot_id|>"))
        attempts += made
        following = re.compile(r"\s*(?P<mark>;?)\s*(?=\{)").match(text, end)
        if following is None or made[0].fault == "cut_call":
            return attempts, end
        if not following["mark"]:
            # One after another without the semicolon.
            attempts[0].slips.append("other_form")
        position = following.end()


def _python(text: str, position: int, tools: Tools) -> tuple[list[Attempt], int]:
    stop = min(
        (place for mark in ("<|eom_id|>", "<|eot_id|>") if (place := text.find(mark, position)) >= 0), default=-1
    )
    end = len(text) if stop < 0 else stop
    code = text[position:end]
    if calls := python_attempts(code, tools):
        return calls, end
    return [Attempt(text=code, fault="unreadable_call" if code.strip() else "cut_call")], end
