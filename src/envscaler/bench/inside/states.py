"""A digest of the objects that a benchmark keeps its state in: another one wherever something in them has changed.

Attributes whose names begin with an underscore are left out, as BFCL's checker leaves them out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any


def digest_of(value: Any) -> str:
    """The digest of a value and everything that can be reached from it."""
    whole = hashlib.blake2b(digest_size=16)
    for part in _parts(value, {}):
        whole.update(part.encode("utf-8", "backslashreplace"))
        whole.update(b"\0")
    return whole.hexdigest()


def _parts(value: Any, seen: dict[int, int]) -> Iterator[str]:
    """Texts that are the same for equal values, in an order of their own."""
    if value is None or isinstance(value, str | int | float | complex | bytes):
        yield f"{type(value).__name__} {value!r}"
        return
    if id(value) in seen:
        yield f"again {seen[id(value)]}"
        return
    seen[id(value)] = len(seen)
    if isinstance(value, Mapping):
        yield f"mapping {len(value)}"
        for key in sorted(value, key=repr):
            yield repr(key)
            yield from _parts(value[key], seen)
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__} {len(value)}"
        for inner in value:
            yield from _parts(inner, seen)
    elif isinstance(value, set | frozenset):
        yield f"set {sorted(map(repr, value))}"
    elif hasattr(value, "__dict__"):
        yield f"object {type(value).__qualname__}"
        for name, inner in vars(value).items():
            if not name.startswith("_"):
                yield name
                yield from _parts(inner, seen)
    else:
        yield repr(value)
