"""Task files and description files: the input of synthesis, read as people really have them.

JSONL, JSON or plain text; a line that cannot be used is named by its number and counted, and the rest goes on.
Whether a task is any good is `synth`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from envscaler.errors import StoreError
from envscaler.skeleton import EnvDescription
from envscaler.state import JsonValue
from envscaler.store.reading import json_value, read_bytes

_ONE = {"task", "text", "summary", "environment_summary"}
"""Keys by which an object is a single task or description, not a wrapper around a list."""
_ValueT = TypeVar("_ValueT")


@dataclass(frozen=True, slots=True)
class SourceTask:
    """One task text and where it stood."""

    text: str
    line: int
    """Line of the file, or position in a JSON list, from 1."""
    source: str | None = None
    """What the file says of its origin."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A line that could not be used."""

    line: int
    """Line of the file, or position in a JSON list, from 1."""
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class TaskFile:
    """What a task file holds."""

    tasks: tuple[SourceTask, ...]
    problems: tuple[Problem, ...] = ()
    duplicates: int = 0
    """Texts left out because an equal one came before."""


@dataclass(frozen=True, slots=True)
class DescriptionFile:
    """What a description file holds."""

    descriptions: tuple[EnvDescription, ...]
    problems: tuple[Problem, ...] = ()
    duplicates: int = 0
    """Descriptions left out because an equal one came before."""


def read_tasks(path: Path | str, limit: int | None = None) -> TaskFile:
    """The tasks of a file: JSON lines, a JSON list (or an object with one), or text with one task a line.

    A task is an object with `task` or `text` (and perhaps `source`), or a string. In text, blank lines and lines
    that begin with `#` and a space are left out. Equal texts are kept once.

    Args:
        limit: tasks at most; what comes after is not looked at.

    Raises:
        StoreError: if the file is missing, a folder, empty, not text, or holds no usable task.
    """
    tasks, problems, duplicates = _read(Path(path), "task", _task, lambda task: task.text, limit)
    return TaskFile(tuple(tasks), tuple(problems), duplicates)


def read_descriptions(path: Path | str, limit: int | None = None) -> DescriptionFile:
    """The environment descriptions of a file, in the same forms as tasks.

    A description is an object with `summary` and `introduction` (or the authors' `environment_summary` and
    `environment_introduction`), or a text `summary: introduction`.

    Raises:
        StoreError: as `read_tasks`.
    """
    found, problems, duplicates = _read(Path(path), "description", _description, lambda value: value, limit)
    return DescriptionFile(tuple(found), tuple(problems), duplicates)


class _Unusable(Exception):
    """Why one line cannot be used."""


def _task(value: JsonValue, line: int) -> SourceTask:
    if isinstance(value, str):
        return SourceTask(_text(value, "the task"), line)
    if not isinstance(value, dict):
        raise _Unusable(f"a task is an object with `task` or `text`, or a string, not {type(value).__name__}")
    for key in ("task", "text"):
        if value.get(key) is not None:
            source = value.get("source")
            return SourceTask(_text(value[key], f"`{key}`"), line, source if isinstance(source, str) else None)
    raise _Unusable(f"it has neither `task` nor `text`{_keys(value)}")


def _description(value: JsonValue, line: int) -> EnvDescription:
    if isinstance(value, str):
        summary, colon, introduction = _text(value, "the description").partition(":")
        if not colon or not summary.strip() or not introduction.strip():
            raise _Unusable("a description in plain text is `summary: introduction`")
        return EnvDescription(summary=summary.strip(), introduction=introduction.strip())
    if not isinstance(value, dict):
        raise _Unusable("a description is an object with `summary` and `introduction`")
    texts = []
    for key in ("summary", "introduction"):
        text = value.get(key, value.get(f"environment_{key}"))
        if text is None:
            raise _Unusable(f"it has no `{key}`{_keys(value)}")
        texts.append(_text(text, f"`{key}`"))
    return EnvDescription(summary=texts[0], introduction=texts[1])


def _text(value: JsonValue, name: str) -> str:
    if not isinstance(value, str):
        raise _Unusable(f"{name} is {type(value).__name__}, not text")
    # Half of an emoji, cut off by somebody's truncation, has no UTF-8 form and would stop every later stage.
    text = value.encode("utf-8", "replace").decode("utf-8") if not value.isascii() else value
    text = text.strip()
    if not text:
        raise _Unusable(f"{name} is empty")
    return text


def _keys(value: dict[str, JsonValue]) -> str:
    return f"; it has {', '.join(f'`{key}`' for key in list(value)[:5])}" if value else "; it is empty"


def _read(
    path: Path,
    name: str,
    convert: Callable[[JsonValue, int], _ValueT],
    identity: Callable[[_ValueT], object],
    limit: int | None,
) -> tuple[list[_ValueT], list[Problem], int]:
    content = read_bytes(path)
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in content[:4096]:
        raise StoreError(f"{path} is not UTF-8 text; save it as UTF-8")
    content = content.removeprefix(b"\xef\xbb\xbf")
    if not content.strip():
        raise StoreError(f"{path} is empty; give one {name} a line")
    found: list[_ValueT] = []
    problems: list[Problem] = []
    seen: set[object] = set()
    duplicates = 0
    for line, part in _parts(content, path):
        if limit is not None and len(found) >= limit:
            break
        if isinstance(part, _Unusable):
            problems.append(Problem(line, str(part)))
            continue
        try:
            value = convert(part, line)
        except _Unusable as fault:
            problems.append(Problem(line, str(fault)))
            continue
        key = identity(value)
        key = (key.summary, key.introduction) if isinstance(key, EnvDescription) else key
        if key in seen:
            duplicates += 1
            continue
        seen.add(key)
        found.append(value)
    if not found and limit != 0:
        first = f" (line {problems[0].line}: {problems[0].message})" if problems else ""
        raise StoreError(f"{path} holds no usable {name}{first}")
    return found, problems, duplicates


def _parts(content: bytes, path: Path) -> Iterator[tuple[int, JsonValue | _Unusable]]:
    """The values of a file with their places; what decides is the content, then the file's suffix."""
    suffix = path.suffix.lower()
    first = content.lstrip()[:1]
    # Files that call themselves JSON lines and look it can be large, and are not parsed as a whole.
    lines_by_name = suffix in (".jsonl", ".ndjson")
    if suffix != ".txt" and (first == b"[" or (first == b"{" and not lines_by_name)):
        try:
            whole = json_value(content, str(path))
        except StoreError:
            # More than one value: JSON lines. A broken file that calls itself JSON is not searched for lines.
            if first == b"[" and suffix == ".json":
                raise
        else:
            yield from enumerate(_values(whole, path), 1)
            return
    json_lines = lines_by_name or (suffix != ".txt" and first in (b"{", b'"'))
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        if json_lines:
            try:
                yield number, json_value(line, "it")
            except StoreError as error:
                yield number, _Unusable(str(error))
            continue
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError as error:
            yield number, _Unusable(f"it is not UTF-8 (byte {error.start})")
            continue
        # "# " is a comment; "#12 is late" may be a task.
        if text != "#" and not text.startswith("# "):
            yield number, text


def _values(whole: JsonValue, path: Path) -> list[JsonValue]:
    if isinstance(whole, list):
        return whole
    if isinstance(whole, dict):
        if _ONE & set(whole):
            return [whole]
        lists = [value for value in whole.values() if isinstance(value, list)]
        if len(lists) == 1:
            return lists[0]
        if not lists:
            return [whole]
    raise StoreError(f"{path} holds no list of tasks; give a list, or an object with one list")
