"""Finds calls in the form of ReAct: a line `Action:` and a line `Action Input:`."""

from __future__ import annotations

import re

from envscaler.agents.dialects.lenient_json import Incomplete, Unreadable, read_json
from envscaler.agents.dialects.python_calls import python_attempts
from envscaler.agents.dialects.shape import Attempt, Found, Keys, Tools, parameters_of, shaped, take_arguments

LINE = re.compile(
    r"^[ \t]*(?P<before>[*_#>-]*[ \t]*)(?P<key>Thought|Action[ _]Input|Action|Observation|Final[ _]Answer)"
    r"[ \t]*(?P<number>\d*)[ \t]*(?P<after>\*\*|__)?[ \t]*(?P<colon>[:：])(?:\*\*|__)?[ \t]*",
    re.MULTILINE | re.IGNORECASE,
)
KEYS = Keys("action", "action_input")
_FENCE = re.compile(r"\s*```[a-z]*\s*")
_FENCE_END = re.compile(r"\s*```")
_INLINE = re.compile(r"(?P<name>[\w.]+)\s*(?:\[(?P<brackets>.*)\]|\((?P<parens>.*)\))\s*\Z", re.DOTALL)
_NONE = frozenset({"none", "n/a", "null", "nothing", "no action", "final answer", "finish"})


def key_of(line: re.Match[str]) -> str:
    """Which line it is: `thought`, `action`, `action input`, `observation`, `final answer`."""
    return " ".join(line["key"].lower().replace("_", " ").split())


def is_plain(line: re.Match[str]) -> bool:
    """Whether the line is written as it was asked for."""
    return not (line["before"].strip() or line["after"] or line["number"]) and line["colon"] == ":"


def react_calls(text: str, tools: Tools) -> list[Found]:
    """All calls, in their order. `Action: None` is none."""
    found: list[Found] = []
    position = 0
    while line := LINE.search(text, position):
        position = line.end()
        key = key_of(line)
        if key == "final answer":
            # What it says may look like anything.
            break
        if key == "action":
            attempt, position = _action(text, line, tools)
            if attempt is not None:
                attempt.text = text[line.start() : position].strip()
                attempt.slips = list(dict.fromkeys(attempt.slips))
                found.append(Found(line.start(), position, [attempt]))
    return found


def _action(text: str, line: re.Match[str], tools: Tools) -> tuple[Attempt | None, int]:
    fence = _FENCE.match(text, line.end())
    begin = fence.end() if fence else line.end()
    if text[begin : begin + 1] == "{":
        return _json_action(text, begin, tools, fenced=fence is not None)
    stop = _next_line(text, line.end())
    name = text[line.end() : stop.start() if stop else len(text)].strip()
    attempt = Attempt(text="", name=name.strip("`*\"' "))
    if not is_plain(line) or attempt.name != name:
        attempt.slips.append("other_form")
    if stop is None or key_of(stop) != "action input":
        end = stop.start() if stop else len(text)
        return _without_input(attempt, tools, end)
    if attempt.name.lower() in _NONE:
        return None, _next_start(text, stop.end())
    _shorten(attempt, tools)
    if not is_plain(stop):
        attempt.slips.append("other_form")
    return _with_input(text, stop.end(), attempt, tools)


def _with_input(text: str, begin: int, attempt: Attempt, tools: Tools) -> tuple[Attempt, int]:
    fence = _FENCE.match(text, begin)
    start = fence.end() if fence else begin
    while start < len(text) and text[start] in " \t\n":
        start += 1
    stop = _next_line(text, begin)
    end = stop.start() if stop else len(text)
    tool = tools.get(attempt.name)
    if not attempt.name:
        attempt.fault = "nameless_call"
        return attempt, end
    if text[start : start + 1] not in ("{", "["):
        given = text[begin:end].strip()
        if not given and parameters_of(tool):
            attempt.fault = "cut_call"
            return attempt, end
        if fence:
            attempt.slips.append("fenced_call")
            given = given.strip("`").removeprefix("json").strip()
        take_arguments(attempt, _unquoted(given), tool)
        return attempt, end
    if fence:
        attempt.slips.append("fenced_call")
    try:
        read = read_json(text, start, ("\nObservation", "\nThought", "\nFinal Answer", "\n```"))
    except Incomplete:
        attempt.fault = "cut_call"
        return attempt, len(text)
    except Unreadable:
        attempt.fault = "unreadable_arguments"
        return attempt, end
    attempt.slips += read.slips
    take_arguments(attempt, read.value, tool)
    end = read.end
    while braces := re.compile(r"[ \t]*[}\]]").match(text, end):
        attempt.slips.append("extra_brace")
        end = braces.end()
    closing = _FENCE_END.match(text, end) if fence else None
    return attempt, closing.end() if closing else end


def _without_input(attempt: Attempt, tools: Tools, end: int) -> tuple[Attempt | None, int]:
    """`Action: look_up(title="Emma")`, `Action: look_up[Emma]`, or a name alone."""
    if attempt.name.lower() in _NONE:
        return None, end
    if calls := python_attempts(attempt.name, tools):
        calls[0].slips = [*attempt.slips, *calls[0].slips]
        return calls[0], end
    inline = _INLINE.match(attempt.name)
    if inline is not None and inline["name"] in tools:
        attempt.name = inline["name"]
        attempt.slips.append("other_form")
        given = inline["brackets"] if inline["brackets"] is not None else inline["parens"]
        take_arguments(attempt, given.strip(), tools[attempt.name])
        return attempt, end
    _shorten(attempt, tools)
    if not attempt.name:
        attempt.fault = "nameless_call"
    elif attempt.name in tools and parameters_of(tools[attempt.name]):
        # Whether an input was to come is not known.
        attempt.fault = "cut_call"
    elif attempt.name in tools:
        attempt.slips.append("null_arguments")
    else:
        attempt.fault = "unreadable_call"
    return attempt, end


def _json_action(text: str, begin: int, tools: Tools, *, fenced: bool) -> tuple[Attempt, int]:
    """The call as one JSON object after `Action:`."""
    attempt = Attempt(text="")
    try:
        read = read_json(text, begin, ("\n```", "\nObservation"))
    except Incomplete:
        attempt.fault = "cut_call"
        return attempt, len(text)
    except Unreadable:
        attempt.fault = "unreadable_call"
        return attempt, _next_start(text, begin)
    attempt = shaped(read.value, text[begin : read.end], tools, KEYS, read.slips)
    attempt.slips = ["other_form", *(kind for kind in attempt.slips if kind != "other_keys")]
    if fenced:
        attempt.slips.append("fenced_call")
    closing = _FENCE_END.match(text, read.end) if fenced else None
    return attempt, closing.end() if closing else read.end


def _unquoted(given: str) -> str:
    """A text without the quotation marks that it stands in."""
    if len(given) < 2 or given[0] != given[-1] or given[0] not in "\"'":
        return given
    try:
        value = read_json(given, 0)
    except Unreadable:
        return given[1:-1]
    return value.value if isinstance(value.value, str) and value.end == len(given) else given[1:-1]


def _shorten(attempt: Attempt, tools: Tools) -> None:
    """Take the name out of what else stands on its line."""
    if attempt.name in tools:
        return
    bare = re.sub(r"\(\s*\)\Z", "", attempt.name).rsplit(".", 1)[-1].strip("`*\"'. ")
    if bare in tools:
        attempt.name = bare
        attempt.slips.append("other_form")
    elif "\n" in attempt.name:
        attempt.fault = "unreadable_call"


def _next_line(text: str, position: int) -> re.Match[str] | None:
    return LINE.search(text, position)


def _next_start(text: str, position: int) -> int:
    line = LINE.search(text, position)
    return line.start() if line else len(text)
