"""Whole files written so that a kill at any moment leaves the old content or the new one, never a mixture.

What the text of a record looks like is decided here too; where files lie is `library`'s and `run`'s business.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

from envscaler.errors import StoreError
from envscaler.record import SCHEMA_VERSION, Record
from envscaler.state import JsonValue

_LINE = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
"""Kept, because `json.dumps` makes a new one at every call that asks for anything but the defaults."""


def write_atomic(path: Path | str, content: bytes | str | Iterable[bytes]) -> None:
    """Replace the file at `path` by `content`, durably; folders on the way are made. Chunks are written as they come.

    A link is written through, and what is no file (a pipe, a device) is written to and never replaced. Text becomes
    UTF-8; a lone surrogate, which UTF-8 cannot hold, becomes its `\\u` escape, which JSON and Python read back as the
    same character.

    Raises:
        StoreError: if the file cannot be written.
    """
    if is_special(path):
        try:
            with open(path, "wb") as stream:
                _write(stream, content)
        except OSError as error:
            raise unwritable(path, error) from error
        return
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            write_durably(temporary, content)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        sync_folder(target.parent)
    except OSError as error:
        raise unwritable(path, error) from error


def write_durably(path: Path, content: bytes | str | Iterable[bytes]) -> None:
    """Write one file and wait until the disk has it; not atomic by itself."""
    with path.open("wb") as file:
        _write(file, content)
        file.flush()
        os.fsync(file.fileno())


def _write(file: BinaryIO, content: bytes | str | Iterable[bytes]) -> None:
    if isinstance(content, str):
        content = utf8(content)
    for chunk in (content,) if isinstance(content, bytes) else content:
        file.write(chunk)


def is_special(path: Path | str) -> bool:
    """Whether there is something other than a file or a folder; what a link leads to counts."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def sync_folder(folder: Path) -> None:
    """Wait until the disk has the folder's entries, where the platform can."""
    if os.name != "posix":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def utf8(text: str) -> bytes:
    """The bytes of a text; lone surrogates become `\\u` escapes."""
    return text.encode("utf-8", "backslashreplace")


def unwritable(path: Path | str, error: OSError) -> StoreError:
    """The sentence for a file that cannot be written."""
    return StoreError(f"{path} cannot be written: {error.strerror or error}")


def versioned(record: Record) -> dict[str, JsonValue]:
    """A record as JSON data, schema version first, fields in the order of their declaration."""
    # pydantic's own JSON mode garbles keys that hold a lone surrogate; records hold nothing that needs it.
    return {"schema_version": SCHEMA_VERSION, **record.model_dump()}


def json_text(value: JsonValue) -> str:
    """A file's worth of JSON for people and `git diff`: indented by two, UTF-8 as it is, ending in a newline."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n"


def json_line(value: JsonValue) -> str:
    """One line of a JSONL file, newline included."""
    return _LINE.encode(value) + "\n"
