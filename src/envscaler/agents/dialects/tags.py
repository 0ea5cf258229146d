"""Finds calls in tags: `<tool_call>` around JSON (Hermes, Qwen) and `<function=…>` with `<parameter=…>` (Qwen 3.5)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from envscaler.agents.dialects.lenient_json import Incomplete, Unreadable, read_json
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools, parameters_of, shaped, take_arguments
from envscaler.agents.dialects.typed_text import decoded

CALL_OPEN, CALL_CLOSE = "<tool_call>", "</tool_call>"
_CLOSERS = (CALL_CLOSE, "<tool_call>", "\n```", "</function>", "</tools>", "</tool_calls>", "</function_call>")
_OPENING = re.compile(
    r"<(?P<tag>tool_calls?|toolcall|tools?|function_calls?|functioncall)>"
    r"|<function(?:=(?P<name>[^>\n]*)|\s+name\s*=\s*(?P<quote>[\"'])(?P<attribute>[^\"'\n]*)(?P=quote)\s*)>"
)
_CLOSING = re.compile(r"\s*</(?:tool_calls?|toolcall|tools?|function_calls?|functioncall)>")
_FENCE_OPEN = re.compile(r"\s*```[a-z]*\s*")
_FENCE_CLOSE = re.compile(r"\s*```")
_BRACES = re.compile(r"(?:\s*[}\]])+")
_PARAMETER = re.compile(r"\s*<parameter(?:=(?P<name>[^>\n]*)|\s+name\s*=\s*[\"'](?P<attribute>[^\"'\n]*)[\"']\s*)>")
_VALUE_END = re.compile(r"</parameter>(?=\s*(?:<parameter[= ]|</function>|</?tool_call>|<function[= ]|\Z))")
_VALUE_BREAK = re.compile(r"\n\s*(?:<parameter=|</function>|</tool_call>)")
_FUNCTION_CLOSE = re.compile(r"\s*</function>")


def tagged_calls(text: str, tools: Tools) -> list[Found]:
    """All calls in tags, in their order. Tags in strings of calls are no tags."""
    found: list[Found] = []
    position = 0
    while opening := _OPENING.search(text, position):
        stretch = _stretch(text, opening, tools)
        position = opening.end()
        if stretch is not None:
            found.append(stretch)
            position = max(position, stretch.end)
    return found


def _stretch(text: str, opening: re.Match[str], tools: Tools) -> Found | None:
    start = opening.start()
    if opening["tag"] is None:
        attempt, end = _function(text, opening, tools)
        attempt.slips.append("missing_wrapper")
        closing = _CLOSING.match(text, end)
        end = closing.end() if closing else end
        return _done(text, start, end, [attempt])
    inner = _skipped(text, opening.end())
    fence = _FENCE_OPEN.match(text, opening.end())
    inner = fence.end() if fence else inner
    wrapped = opening.group() == CALL_OPEN
    function = _OPENING.match(text, inner)
    if function is not None and function["tag"] is None:
        attempts, end = _functions(text, function, tools)
    elif text[inner : inner + 1] in ("{", "["):
        attempts, end = _json_calls(text, inner, tools)
    elif wrapped:
        attempts, end = _unreadable(text, opening.end())
    else:
        return None
    known = any(attempt.name in tools for attempt in attempts)
    if not wrapped and not known:
        return None
    fenced = _FENCE_CLOSE.match(text, end) if fence else None
    end = fenced.end() if fenced else end
    closing = _CLOSING.match(text, end)
    for attempt in attempts:
        if fence:
            attempt.slips.append("fenced_call")
        if not wrapped:
            attempt.slips.append("missing_wrapper")
        if closing is None and "missing_wrapper" not in attempt.slips and attempt.fault is None:
            attempt.slips.append("unclosed_tag")
    if closing is not None:
        end = closing.end()
    elif text.startswith(CALL_OPEN, _skipped(text, end)) and not text[_skipped(text, end) + len(CALL_OPEN) :].strip():
        end = len(text)  # the opening tag again, where the closing one was meant
    return _done(text, start, end, attempts)


def _done(text: str, start: int, end: int, attempts: list[Attempt]) -> Found:
    """The stretch; the first attempt has all of its text, so that what cannot be read is kept as it was written."""
    whole = text[start:end].strip()
    if len(attempts) == 1:
        attempts[0].text = whole
    for attempt in attempts:
        attempt.slips = list(dict.fromkeys(attempt.slips))
    return Found(start, end, attempts)


def _skipped(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


def _unreadable(text: str, start: int) -> tuple[list[Attempt], int]:
    ends = [place for mark in (CALL_CLOSE, CALL_OPEN) if (place := text.find(mark, start)) >= 0]
    end = min(ends, default=len(text))
    cut = not ends and not text[start:].strip()
    return [Attempt(text=text[start:end].strip(), fault="cut_call" if cut else "unreadable_call")], end


def _json_calls(text: str, start: int, tools: Tools) -> tuple[list[Attempt], int]:
    """The calls in one wrapper: most often one, sometimes several objects or a list."""
    attempts: list[Attempt] = []
    position = start
    while True:
        made, position = json_attempts(text, position, tools, Keys(), _CLOSERS)
        if attempts:
            for attempt in made:
                attempt.slips.append("call_list")
        attempts += made
        if made[0].fault in ("cut_call", "unreadable_call"):
            closing = text.find(CALL_CLOSE, position)
            return attempts, position if closing < 0 else closing
        following = _skipped(text, position)
        following = _skipped(text, following + 1) if text[following : following + 1] in (",", ";") else following
        if text[following : following + 1] != "{":
            return attempts, position
        position = following


def json_attempts(text: str, start: int, tools: Tools, keys: Keys, closers: Sequence[str]) -> tuple[list[Attempt], int]:
    """The call, or the list of calls, in the JSON at `start`, and where the text goes on."""
    try:
        read = read_json(text, start, closers)
    except Incomplete:
        return [Attempt(text=text[start:], fault="cut_call")], len(text)
    except Unreadable:
        ends = [place for closer in closers if (place := text.find(closer, start)) >= 0]
        end = min(ends, default=len(text))
        return [Attempt(text=text[start:end], fault="unreadable_call")], end
    slips, end = list(read.slips), read.end
    braces = _BRACES.match(text, end)
    if braces is not None:
        slips.append("extra_brace")
        end = braces.end()
    values = read.value if isinstance(read.value, list) else [read.value]
    if isinstance(read.value, list):
        slips.append("call_list")
    elif isinstance(read.value, dict) and len(read.value) == 1 and isinstance(read.value.get("tool_calls"), list):
        # The message of the interface, written out.
        slips.append("other_keys")
        values = read.value["tool_calls"]
    if not values:
        return [Attempt(text=text[start:end], fault="nameless_call")], end
    return [shaped(value, text[start:end], tools, keys, slips) for value in values], end


def _functions(text: str, function: re.Match[str], tools: Tools) -> tuple[list[Attempt], int]:
    attempts: list[Attempt] = []
    following: re.Match[str] | None = function
    end = function.start()
    while following is not None and following["tag"] is None:
        attempt, end = _function(text, following, tools)
        if attempts:
            attempt.slips.append("call_list")
        attempts.append(attempt)
        following = _OPENING.match(text, _skipped(text, end))
    return attempts, end


def _function(text: str, opening: re.Match[str], tools: Tools) -> tuple[Attempt, int]:
    """The call whose `<function=…>` was found, and where it ends."""
    name = (opening["name"] if opening["name"] is not None else opening["attribute"]).strip().strip("\"'")
    attempt = Attempt(text=text[opening.start() :], name=name)
    if opening["name"] is None:
        attempt.slips.append("other_form")
    tool = tools.get(name)
    schemas = parameters_of(tool)
    position = opening.end()
    if not name:
        attempt.fault = "nameless_call"
    inner = _skipped(text, position)
    if text[inner : inner + 1] == "{":
        return _json_body(text, inner, attempt, tools)
    while parameter := _PARAMETER.match(text, position):
        key = (parameter["name"] if parameter["name"] is not None else parameter["attribute"]).strip().strip("\"'")
        if parameter["name"] is None:
            attempt.slips.append("other_form")
        begin = parameter.end()
        ending = _VALUE_END.search(text, begin)
        broken = _VALUE_BREAK.search(text, begin)
        if broken is not None and (ending is None or "<parameter=" in text[begin : ending.start()]):
            value, position = text[begin : broken.start() + 1], broken.start()
            attempt.slips.append("unclosed_tag")
        elif ending is not None:
            value, position = text[begin : ending.start()], ending.end()
        else:
            attempt.fault = "cut_call"
            return attempt, len(text)
        made = decoded(_unpadded(value), schemas.get(key))
        if key in attempt.arguments and attempt.arguments[key] != made:
            attempt.slips.append("duplicate_key")
        attempt.arguments[key] = made
    closing = _FUNCTION_CLOSE.match(text, position)
    if closing is not None:
        return attempt, closing.end()
    rest = text[position:].lstrip()
    if rest.startswith(CALL_CLOSE):
        attempt.slips.append("unclosed_tag")
    elif not rest:
        # Whether more parameters were to come is not known.
        attempt.fault = attempt.fault or "cut_call"
    else:
        attempt.fault = "unreadable_call"
        ends = [place for mark in ("</function>", CALL_CLOSE) if (place := text.find(mark, position)) >= 0]
        position = min(ends, default=len(text))
        closing = _FUNCTION_CLOSE.match(text, position)
        position = closing.end() if closing else position
    return attempt, position


def _json_body(text: str, inner: int, attempt: Attempt, tools: Tools) -> tuple[Attempt, int]:
    """The arguments as JSON between the tags, as Llama 3.1 writes its own functions."""
    attempt.slips.append("other_form")
    try:
        read = read_json(text, inner, ("</function>", CALL_CLOSE))
    except Incomplete:
        attempt.fault = "cut_call"
        return attempt, len(text)
    except Unreadable:
        attempt.fault = "unreadable_arguments"
        end = text.find("</function>", inner)
        return attempt, len(text) if end < 0 else end + len("</function>")
    attempt.slips += read.slips
    take_arguments(attempt, read.value, tools.get(attempt.name))
    closing = _FUNCTION_CLOSE.match(text, read.end)
    if closing is None:
        attempt.slips.append("unclosed_tag")
    return attempt, closing.end() if closing else read.end


def _unpadded(value: str) -> str:
    """The value without the line breaks that set it apart from its tags."""
    value = value.removeprefix("\n")
    return re.sub(r"\n[ \t]*\Z", "", value)
