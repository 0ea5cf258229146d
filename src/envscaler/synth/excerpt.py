"""`excerpt`: the part of a state that one call has to do with, for whoever judges it.

Source: ours; the paper's checking agent (3.3) sees the whole state, most of which says nothing of most calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from envscaler.state import JsonValue, State


@dataclass(frozen=True)
class Excerpt:
    """A part of a state."""

    state: State
    left_out: dict[str, int] = field(default_factory=dict)
    """How many entries of a state key are not shown, by key."""


def excerpt(state: State, touched: Collection[str] | None, said: JsonValue) -> Excerpt:
    """What a method touches stays whole, of other containers the entries that are spoken of.

    Args:
        touched: state keys that stay whole; None: all of it stays.
        said: the call with all that came of it; an entry is spoken of where its key is a text in it, or in another
            entry that stays.
    """
    if touched is None:
        return Excerpt(state)
    others = {key: value for key, value in state.items() if key not in touched and isinstance(value, dict)}
    kept: State = {key: value for key, value in state.items() if key not in others}
    spoken = set(_texts([said, _entries_spoken_of(kept, set(_texts(said)))]))
    left_out = {}
    for key, value in others.items():
        entries = {name: entry for name, entry in value.items() if name in spoken}
        if len(entries) < len(value):
            left_out[key] = len(value) - len(entries)
        kept[key] = entries
    return Excerpt({key: kept[key] for key in state}, left_out)


def _entries_spoken_of(state: State, texts: set[str]) -> list[JsonValue]:
    parts = [value for value in state.values() if isinstance(value, dict)]
    return [entry for part in parts for name, entry in part.items() if name in texts]


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, part in value.items():
            yield name
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)
