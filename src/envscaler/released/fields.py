"""Fields of a published entry, with the JSON strings in it decoded, and what of it has no place in our records.

Which fields there are is the business of the modules beside this one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

from envscaler.errors import NotJson, StoreError
from envscaler.state import JsonValue, canonical, encode

Published = dict[str, JsonValue]
"""One entry of the authors' format, JSON strings decoded."""

_UNFIT = re.compile(r"[^\w.+-]+")


def entry_of(value: JsonValue, where: str, encoded: Iterable[str] = ()) -> Published:
    """An entry as plain JSON data.

    Args:
        encoded: fields that can be JSON strings inside the JSON.

    Raises:
        StoreError: naming the field that is wrong.
    """
    if not isinstance(value, dict):
        raise StoreError(f"{where} holds {kind_of(value)}; an object is needed")
    decoded = dict(value)
    for name in encoded:
        part = decoded.get(name)
        if isinstance(part, str) and part.lstrip()[:1] in ("[", "{"):
            try:
                decoded[name] = json.loads(part)
            except (ValueError, RecursionError) as error:
                raise StoreError(f"{where}: field `{name}` is a JSON string that does not parse: {error}") from error
    try:
        plain: Published = canonical(decoded)
    except NotJson as error:
        raise StoreError(f"{where}: {error}") from error
    return plain


def text(entry: Published, name: str, where: str) -> str:
    """A field that must be a text.

    Raises:
        StoreError: if it is missing or something else.
    """
    value = entry.get(name)
    if isinstance(value, str):
        return value
    if name not in entry:
        raise StoreError(f"{where}: field `{name}` is missing")
    raise StoreError(f"{where}: field `{name}` holds {kind_of(value)}; a text is needed")


def identifier(entry: Published, name: str, where: str) -> str:
    """A field that names something: a text or a whole number.

    Raises:
        StoreError: if it is missing, empty or something else.
    """
    value = entry.get(name)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if value == "":
        raise StoreError(f"{where}: field `{name}` is empty")
    return text(entry, name, where)


def rows(entry: Published, name: str, where: str) -> list[Published]:
    """A field that must be a list of objects; empty when it is missing or null.

    Raises:
        StoreError: if it is something else.
    """
    value = entry.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise StoreError(f"{where}: field `{name}` holds {kind_of(value)}; a list is needed")
    for index, part in enumerate(value):
        if not isinstance(part, dict):
            raise StoreError(f"{where}: field `{name}[{index}]` holds {kind_of(part)}; an object is needed")
    return value


def folder_name(name: str) -> str:
    """The id as a library can hold it: as it is, where a folder can have that name."""
    fit = _UNFIT.sub("-", name).lstrip("-.+")[:120]
    return fit if fit == name or fit else "environment"


def kept(published: Published, rendered: Published, always: Collection[str] = ()) -> dict[str, Any]:
    """What has to be kept of a published entry beside the record that `rendered` was written from.

    Args:
        always: fields that are kept even where they are given back, because another record gives them, which may
            change.

    Returns:
        `fields`: those that the record does not give back; `absent`: those that it gives and the entry had not.
    """
    # Sorted, so that an exported entry, whose fields may stand in another order, is kept in the same bytes.
    names = sorted(
        name
        for name, part in published.items()
        if name in always or name not in rendered or not same(rendered[name], part)
    )
    fields = {name: published[name] for name in names}
    absent = sorted(name for name in rendered if name not in published)
    return {**({"fields": fields} if fields else {}), **({"absent": absent} if absent else {})}


def rejoined(rendered: Published, released: dict[str, Any] | None, agrees: Callable[[Published], bool]) -> Published:
    """The published entry of a record: what it says now, and what was kept of the entry that it came from.

    Args:
        agrees: whether an entry read back gives the record. A field that was kept gives way where it does not: the
            record was changed since.
    """
    fields: Published = (released or {}).get("fields") or {}
    absent = (released or {}).get("absent") or ()
    whole = {name: part for name, part in rendered.items() if name not in absent} | fields
    if agrees(whole):
        return whole
    whole = {name: part for name, part in rendered.items() if part or name not in absent}
    whole |= {name: part for name, part in fields.items() if name not in rendered}
    overlapping = {name: part for name, part in fields.items() if name in rendered}
    for name, part in overlapping.items():
        trial = {**whole, name: part}
        if agrees(trial):
            whole = trial
    return whole


def same(left: JsonValue, right: JsonValue) -> bool:
    """Whether two values are the same JSON, 1 and 1.0 and true told apart."""
    return encode(left) == encode(right)


def kind_of(value: JsonValue) -> str:
    """The kind of a JSON value, for messages."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "null")
