"""Finds the JSON in a model's reply. A repair keeps every word of what was written and adds none, or is no repair.

What of it is the reply is decided by whoever knows its type (`fitting`).
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from envscaler.errors import NotJson, ReplyError
from envscaler.llm.chat import Mending
from envscaler.roles.code import CUT, beginning
from envscaler.roles.fences import plain
from envscaler.state import JsonValue, canonical

_START = re.compile(r"\{(?=\s*(?:[\"'“]|//|/\*|[A-Za-z_]\w*\s*:))|\[(?=\s*[\"'{])")
_STRINGS = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\\n])*'"
_STRING = re.compile(_STRINGS, re.DOTALL)
_CALL = re.compile(r"\w\(")
_NOTE = re.compile(rf"({_STRINGS})|//[^\n]*|/\*.*?\*/|#[^\n]*", re.DOTALL)
_ELLIPSIS = re.compile(rf"({_STRINGS})|\.\.\.|…", re.DOTALL)
_VALUE = re.compile(r"[\"']\s*:\s*\Z")
_MARK = re.compile(r"^[ \t]*(?:`{3,}|~{3,})", re.MULTILINE)
_MORE = re.compile(r"[\s}\]]*,\s*\"(?:[^\"\\\n]|\\.)*\"\s*:")
_SURPLUS = re.compile(r"[\s}\]]*")
_CLOSERS = re.compile(r"\s*[}\]]")
_ESCAPE = re.compile(
    r"\\(?:(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|U(000[0-9a-fA-F]{5}|0010[0-9a-fA-F]{4}))|(.))", re.DOTALL
)
_BEGUN = re.compile(r"[:,\[]\s*(?!(?:true|false|null|None|True|False)\s*\Z)[^\W\d]\w*\s*\Z")
_WORD = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.])|[^\W\d]\w*|\w+")
_EMPTY = re.compile(r"\"\"|''|“”|\{\s*\}|\[[\s,]*\]")
_MOST_GROUPS = 200
"""Groups in brackets that are looked at of one reply; a model that repeats itself writes any number."""
_MOST_EXTRA = 4
"""Brackets too many that are taken out of one object at most."""
_MOST_DEEP = 60
"""Brackets that are open at once in what is mended at most."""


@dataclass(frozen=True)
class Found:
    """An object or a list that stands in a reply."""

    value: JsonValue
    mendings: tuple[Mending, ...] = ()


def json_in(text: str, *, cut: bool = False) -> list[Found]:
    """The objects and lists that stand in a reply and in no other one, the longest first; one at least.

    Args:
        cut: the reply ended at the token limit; then what lacks its end is not used.

    Raises:
        ReplyError: if there is none, or it holds what JSON cannot (NaN, huge integers).
    """
    text = plain(text).strip()
    if (quoted := _quoted(text)) is not None:
        return [Found(found.value, ("unwrapped", *found.mendings)) for found in json_in(quoted, cut=cut)]
    groups = sorted(_groups(text), key=lambda group: -len(group.text))
    lost = cut and any(group.unclosed for group in groups)
    found: list[Found] = []
    fault = ""
    for group in groups:
        if group.unclosed and cut:
            continue
        try:
            read = _read(group)
        except NotJson as error:
            fault = fault or f"its JSON cannot be stored: {error}"
            continue
        if read is None:
            fault = fault or f"its JSON does not parse: {group.fault}"
        else:
            found.append(Found(read.value, (*read.mendings, "cut tail")) if lost else read)
    if found:
        return found
    if cut and (lost or not fault):
        raise ReplyError(CUT, "cut off")
    raise ReplyError(fault or f"it holds no JSON object, but {beginning(text)}")


def _mended(found: Found, mending: Mending) -> Found:
    return Found(found.value, tuple(dict.fromkeys((*found.mendings, mending))))


@dataclass(frozen=True)
class _Group:
    """What stands between two brackets."""

    text: str
    fault: str
    """What is wrong with it as JSON."""
    read: Found | None = None
    """What it says as it is, or without brackets too many."""
    unclosed: bool = False
    deepest: int = 0
    """How many brackets are open at once at most."""


def _quoted(text: str) -> str | None:
    """The text in a reply that is a JSON string with an object in it."""
    if not text.startswith('"') or "{" not in text:
        return None
    try:
        value = json.loads(text)
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _groups(text: str) -> Iterator[_Group]:
    """The outermost groups; one within a group that does not parse is none: it would pass for the whole reply."""
    position = lists = 0
    for _ in range(_MOST_GROUPS):
        start = _START.search(text, position)
        if start is None:
            return
        at = start.start()
        if _VALUE.search(text, max(0, at - 20), at):
            # A field of an object that has lost its beginning would pass for the whole reply.
            yield _Group(text, "it begins with a field and no bracket before it")
            return
        read, fault = _decoded(text, at)
        if read is not None:
            found, end = read
            if text[at] == "{" and _MORE.match(text, end):
                whole = _without_extra(text, at, end)
                if whole is None:
                    yield _Group(text[at:], "brackets are closed before the last fields")
                    return
                found, end = whole
            elif text[at] == "{" and (_CLOSERS.match(text, end) or text.count("}", end) > text.count("{", end)):
                found = _mended(found, "JSON syntax")
            yield _Group(text[at:end], fault, found)
        else:
            end, closed, deepest = _end_of(text, at)
            mark = _MARK.search(text, at, end)
            if mark is not None:
                end, closed = mark.start(), False
            if not closed and text[at] == "[":
                # It is a bracket of prose; looking for the end of each would take no end.
                position, lists = at + 1, lists + 1
                if lists == _MOST_EXTRA:
                    return
                continue
            yield _Group(text[at:end], fault, unclosed=not closed, deepest=deepest)
        position = end


def _decoded(text: str, at: int) -> tuple[tuple[Found, int] | None, str]:
    """What stands at a place and where it ends; or None, and why it does not parse."""
    repeated = False

    def made(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        nonlocal repeated
        value = dict(pairs)
        repeated = repeated or any(value[name] != part for name, part in pairs)
        return value

    fault = ""
    for strict in (True, False):
        repeated = False
        try:
            value, end = json.JSONDecoder(object_pairs_hook=made, strict=strict).raw_decode(text, at)
        except json.JSONDecodeError as error:
            fault = fault or f"{error.msg} (line {error.lineno} column {error.colno})"
            continue
        except (ValueError, RecursionError) as error:
            return None, str(error)
        mendings: list[Mending] = [] if strict else ["JSON syntax"]
        return (Found(value, (*mendings, "repeated key") if repeated else tuple(mendings)), end), fault
    return None, fault


def _without_extra(text: str, at: int, end: int) -> tuple[Found, int] | None:
    """An object that is closed before its last fields, without the brackets that are too many; and where it ends."""
    surplus = _SURPLUS.match(text, end)
    tail = text[surplus.end() if surplus is not None else end :]
    head = text[at:end]
    for _ in range(_MOST_EXTRA):
        head = head.rstrip()
        if not head.endswith(("}", "]")):
            return None
        head = head[:-1]
        read, _ = _decoded(head + tail, 0)
        if read is None:
            return None
        found, length = read
        # Further brackets too many would mean that the fields belong further in.
        if not _CLOSERS.match(head + tail, length) and not _MORE.match(head + tail, length):
            return _mended(found, "JSON syntax"), len(text) - len(head + tail) + length
    return None


def _end_of(text: str, at: int) -> tuple[int, bool, int]:
    """Where a group that does not parse ends, whether it is closed there, and how deep it goes."""
    depth, deepest, quote, escaped, before = 0, 0, "", False, ""
    for position in range(at, len(text)):
        character = text[position]
        if escaped:
            escaped = False
        elif quote:
            escaped = character == "\\"
            quote = "" if character == quote else quote
        elif character == '"' or (character == "'" and before in "{[(,:"):
            quote = character
        elif character in "{[":
            depth += 1
            deepest = max(deepest, depth)
        elif character in "}]":
            depth -= 1
            if depth == 0:
                return position + 1, True, deepest
        if not character.isspace():
            before = character
    return len(text), False, deepest


def _read(group: _Group) -> Found | None:
    """What a group says; None: it cannot be made good without leaving out or adding something.

    Raises:
        NotJson: if it says what JSON cannot.
    """
    if group.read is not None:
        return Found(canonical(group.read.value), group.read.mendings)
    text = _NOTE.sub(_kept, group.text)
    bare = _STRING.sub(" ", text)
    if group.deepest > _MOST_DEEP or _CALL.search(bare) or (group.unclosed and _BEGUN.search(bare)):
        return None  # what a call gives, or how a word would have ended, is not known
    shorter = _ELLIPSIS.sub(_kept, text)
    mendings: tuple[Mending, ...] = ("unclosed JSON",) if group.unclosed else ("JSON syntax",)
    if shorter != text:
        mendings = (*mendings, "ellipsis")
    for read in (_as_python, _by_repair):
        value = read(shorter)
        if isinstance(value, dict | list) and value and _says_the_same(value, shorter):
            return Found(value, mendings)
    return None


def _kept(match: re.Match[str]) -> str:
    """A string as it is; in place of anything else a blank."""
    return match[1] or " "


def _as_python(text: str) -> JsonValue:
    """The value of a literal of Python; None: it is none. Texts side by side lack a comma: Python would join them."""
    strings = list(_STRING.finditer(text))
    if any(not text[one.end() : other.start()].strip() for one, other in pairwise(strings)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no fault of the reply
            return canonical(ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError, NotJson):
        return None


def _by_repair(text: str) -> JsonValue:
    """What a library makes of it, which knows of more mistakes than we would; None: nothing."""
    from json_repair import repair_json

    try:
        return canonical(repair_json(text, return_objects=True, skip_json_loads=True))
    except (ValueError, RecursionError, NotJson):
        return None


def _says_the_same(value: JsonValue, text: str) -> bool:
    """Whether a value has the words of a text in their order, and no more empty values than it."""
    said: list[str] = []
    empty = _flatten(value, said)
    text = _ESCAPE.sub(_unescaped, text)
    return _words(" ".join(said)) == _words(text) and empty <= len(_EMPTY.findall(text))


def _flatten(value: JsonValue, said: list[str]) -> int:
    """Put the keys and values in a value at the end of a list, and say how many of them are empty."""
    if isinstance(value, dict):
        return (not value) + sum(_flatten(part, said) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return (not value) + sum(_flatten(part, said) for part in value)
    said.append(value if isinstance(value, str) else json.dumps(value))
    return int(value == "")


def _words(text: str) -> list[str | float]:
    return [_word(word) for word in _WORD.findall(text.lower())]


def _word(word: str) -> str | float:
    """A word by what it says: 1.50 is 1.5, None is null."""
    if word == "none":
        return "null"
    if not word[0].isdecimal() or (word[0] == "0" and word[1:2].isdecimal()):
        return word
    try:
        return float(word)
    except ValueError:
        return word


def _unescaped(match: re.Match[str]) -> str:
    code = match[1] or match[2] or match[3]
    if code:
        return chr(int(code, 16))
    return " " if match[4] in "nrtbf\"\\/'" else f" {match[4]}"
