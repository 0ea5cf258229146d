"""`entries`: the entries of a published JSON file, one after the other, in the memory of the largest.

Files come as a list, as an object keyed by id, as JSON lines, or as one object after another. What an entry means is
the business of the modules beside this one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from envscaler.errors import StoreError
from envscaler.state import JsonValue

Complaint = Callable[[str], None]
"""Told in one sentence, with file and entry, what was left out."""

_CHUNK_CHARS = 1 << 18
_BLANK = " \t\r\n"
_decode = json.JSONDecoder().raw_decode


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a file."""

    where: str
    """File and place, for messages."""
    value: JsonValue
    key: str | None = None
    """Its key, in an object keyed by id."""
    listed: bool = False
    """Whether it stands in a JSON list."""


def entries(path: Path, complain: Complaint) -> Iterator[Entry]:
    """The entries of a file in their order.

    Args:
        complain: told of each line of a JSONL file that is no JSON; the rest is read.

    Raises:
        StoreError: if the file cannot be read, or is broken in a way that hides where the next entry begins.
    """
    try:
        if path.is_file() and not path.stat().st_size:
            raise StoreError(f"{path} is empty; published entries are needed")
        with path.open(encoding="utf-8-sig") as file:
            if path.suffix in (".jsonl", ".ndjson"):
                yield from _of_lines(path, file, complain)
            else:
                yield from _of_window(path, _Window(file))
    except FileNotFoundError:
        raise StoreError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise StoreError(f"{path} is a folder; a file is needed") from None
    except UnicodeDecodeError as error:
        raise StoreError(f"{path} is not UTF-8 ({error.reason})") from error
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror or error}") from error


def _of_lines(path: Path, file: TextIO, complain: Complaint) -> Iterator[Entry]:
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        where = f"{path}, line {number}"
        try:
            yield Entry(where, json.loads(line))
        except (ValueError, RecursionError) as error:
            complain(f"{where} is not JSON: {error}")


def _of_window(path: Path, window: _Window) -> Iterator[Entry]:
    number = 0
    try:
        first = window.peek()
        if first == "[":
            window.skip("[")
            while window.peek() != "]":
                number += 1
                yield Entry(f"{path}, entry {number}", window.value(), listed=True)
                if window.peek() != "]":
                    window.skip(",")
            window.skip("]")
        elif first == "{" and window.is_keyed():
            window.skip("{")
            while window.peek() != "}":
                number += 1
                key = window.value()
                window.skip(":")
                yield Entry(f"{path}, entry {number} ({key})", window.value(), key=str(key))
                if window.peek() != "}":
                    window.skip(",")
            window.skip("}")
        else:
            while window.peek():
                number += 1
                yield Entry(f"{path}, entry {number}", window.value())
        if window.peek():
            raise json.JSONDecodeError("text after the end", window.text, window.place)
    except UnicodeDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise StoreError(
            f"{path} is not JSON from entry {max(number, 1):,} on: {reason} (character {window.read_chars:,}); "
            "mend it or cut it there"
        ) from error


class _Window:
    """The part of a text file that is looked at, which moves on and grows to the size of one value."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._ended = False
        self._before = 0
        self.text = ""
        self.place = 0

    @property
    def read_chars(self) -> int:
        """Characters of the file before the place that is looked at."""
        return self._before + self.place

    def peek(self) -> str:
        """The next character that is not blank; "" at the end."""
        while True:
            while self.place < len(self.text) and self.text[self.place] in _BLANK:
                self.place += 1
            if self.place < len(self.text):
                return self.text[self.place]
            if not self._more():
                return ""

    def skip(self, char: str) -> None:
        """Go past the next character, which must be `char`."""
        if self.peek() != char:
            raise json.JSONDecodeError(f"expecting {char!r}", self.text, self.place)
        self.place += 1

    def value(self) -> JsonValue:
        """The next value."""
        self.peek()
        while True:
            try:
                value, end = _decode(self.text, self.place)
            except json.JSONDecodeError:
                if not self._more():
                    raise
                continue
            # A number may go on in what has not been read yet.
            if end < len(self.text) or not self._more():
                self.place = end
                return value

    def is_keyed(self) -> bool:
        """Whether the object that begins here maps ids to entries: its first value is an object with several fields."""
        start = self.place
        self.skip("{")
        if self.peek() == "}":
            self.place = start
            return True
        key = self.value()
        # What stands before the place is given up when more is read.
        opening = self._before + start
        self.skip(":")
        keyed = self.peek() == "{" and key not in _OBJECT_FIELDS
        self.place = opening - self._before
        return keyed

    def _more(self) -> bool:
        # Doubling keeps the work linear, since a value that is cut off is decoded anew each time.
        chunk = self._file.read(max(_CHUNK_CHARS, len(self.text) - self.place)) if not self._ended else ""
        if not chunk:
            self._ended = True
            return False
        keep = max(0, self.place - _LOOKED_BACK)
        self._before += keep
        self.text = self.text[keep:] + chunk
        self.place -= keep
        return True


_OBJECT_FIELDS = frozenset(
    {"env_structure", "env_func_details", "init_config", "task_info", "metrics", "func_test_result"}
)
"""Fields of entries whose values are objects: an object that begins with one is an entry, not a map of entries."""
_LOOKED_BACK = 4096
"""Characters kept before the place, so that `is_keyed` can go back to where it began."""
