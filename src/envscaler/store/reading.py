"""Records read from JSON and JSONL files; whatever is wrong is one sentence with file, line and field.

Which files there are is not this module's business.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from envscaler.errors import SchemaVersionError, StoreError
from envscaler.record import SCHEMA_VERSION, Record
from envscaler.state import JsonValue


def _refuse(constant: str) -> JsonValue:
    raise ValueError(f"{constant} is no JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
"""Kept, because `json.loads` makes a new one at every call that asks for anything but the defaults."""

RecordT = TypeVar("RecordT", bound=Record)


def read_record(path: Path, kind: type[RecordT], **fields: JsonValue) -> RecordT:
    """The record in a JSON file.

    Args:
        fields: fields of the record that are stored elsewhere.

    Raises:
        StoreError: if the file is missing, is not JSON or does not hold such a record.
        SchemaVersionError: if a newer version of this package wrote it.
    """
    return validated(json_object(read_bytes(path), str(path)), kind, str(path), **fields)


Complaint = Callable[[str], None]
"""Told in one sentence, with file and line, what was left out."""


def read_jsonl(
    path: Path, kind: type[RecordT], *, torn_tail: bool = False, complain: Complaint | None = None
) -> Iterator[RecordT]:
    """The records of a JSONL file, streamed; empty lines are skipped.

    Args:
        torn_tail: skip a last line without newline that does not parse: a killed writer left it.
        complain: where it is given, it is told of a broken line, and the rest is read.

    Raises:
        StoreError: at the first line that does not hold such a record.
        SchemaVersionError: at a line that a newer version of this package wrote.
    """
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                where = f"{path}, line {number}"
                try:
                    record = _of_line(line, kind, where, may_be_torn=torn_tail)
                except SchemaVersionError:
                    raise
                except StoreError as fault:
                    if complain is None:
                        raise
                    complain(str(fault))
                    continue
                if record is not None:
                    yield record
    except OSError as error:
        raise unreadable(path, error) from error


def _of_line(line: bytes, kind: type[RecordT], where: str, *, may_be_torn: bool) -> RecordT | None:
    try:
        value = json_object(line, where)
    except StoreError:
        if may_be_torn and not line.endswith(b"\n"):
            return None
        raise
    return validated(value, kind, where)


def read_bytes(path: Path) -> bytes:
    """The content of a file.

    Raises:
        StoreError: if it cannot be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError) -> StoreError:
    """The sentence for a file that cannot be read."""
    if isinstance(error, FileNotFoundError):
        return StoreError(f"{path}: no such file")
    if isinstance(error, IsADirectoryError):
        return StoreError(f"{path} is a folder; a file is needed")
    return StoreError(f"{path} cannot be read: {error.strerror or error}")


def json_value(content: bytes, where: str) -> JsonValue:
    """The JSON value in `content`; NaN and infinities are refused.

    Raises:
        StoreError: if there is none.
    """
    try:
        return _DECODER.decode(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise StoreError(f"{where} is not UTF-8 (byte {error.start})") from error
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}" if b"\n" in content.strip() else f"column {error.colno}"
        raise StoreError(
            f"{where} is not JSON: {error.msg.removesuffix(' at')} ({place}); mend it or take it out"
        ) from error
    except (ValueError, RecursionError) as error:
        raise StoreError(f"{where} is not JSON that can be read: {error}") from error


def json_object(content: bytes, where: str) -> dict[str, JsonValue]:
    """The JSON object in `content`.

    Raises:
        StoreError: if it holds none.
    """
    value = json_value(content, where)
    if not isinstance(value, dict):
        raise StoreError(f"{where} holds {_kind(value)}; a JSON object is needed")
    return value


def validated(value: dict[str, JsonValue], kind: type[RecordT], where: str, **fields: JsonValue) -> RecordT:
    """The record that a JSON object of a file holds.

    Raises:
        StoreError: naming the field that is wrong.
        SchemaVersionError: if a newer version of this package wrote it.
    """
    check_version(value, where)
    rest = {key: part for key, part in value.items() if key != "schema_version"}
    try:
        return kind.model_validate({**rest, **fields})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise StoreError(f"{where} is no {kind.__name__}: field `{field}`: {first['msg']}{more}") from error


def check_version(value: dict[str, JsonValue], where: str) -> None:
    """Make sure that this version of the package can read the object.

    Raises:
        StoreError: if it has no usable `schema_version`.
        SchemaVersionError: if it has a newer one.
    """
    version = value.get("schema_version")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise StoreError(f"{where} has no usable `schema_version`; the one written today is {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        readable = "version 1" if SCHEMA_VERSION == 1 else f"versions 1 to {SCHEMA_VERSION}"
        raise SchemaVersionError(
            f"{where} has schema version {version}; this envscaler reads {readable}: update envscaler to read it"
        )


def _kind(value: JsonValue) -> str:
    names = {list: "a list", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
