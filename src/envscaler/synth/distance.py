"""`distance`: how far two states of one environment are apart, record by record, whatever the ids are.

How far is far enough is the business of whoever writes states.

Source: ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from envscaler.state import JsonValue, State, encode, escape

_Leaf = tuple[str, bytes]
_Record = tuple[_Leaf, ...]


def distance(left: State, right: State) -> float:
    """Share of the values of two states that have no counterpart in the other one.

    Records of a container are compared with the most similar ones of the other state, each with one. Ids do not count;
    a reference counts as what it refers to.
    """
    return Shape(left).distance(Shape(right))


@dataclass(frozen=True, eq=False)
class Shape:
    """A state as it is compared: made once where a state is compared with many."""

    state: State

    def distance(self, other: Shape) -> float:
        """As `distance`."""
        whole = self._size + other._size
        if not whole:
            return 0.0
        shared = sum((self._single & other._single).values())
        for name in self._records.keys() & other._records.keys():
            shared += _shared(self._records[name], other._records[name])
        return 1.0 - shared / (whole - shared)

    def may_be_nearer(self, other: Shape, than: float) -> bool:
        """Whether the distance may be less than that; False is certain, and much cheaper than the distance."""
        whole = self._size + other._size
        # No pairing of records can share more than their values do when they are all thrown together.
        shared = sum((self._bag & other._bag).values())
        return bool(whole) and 1.0 - shared / (whole - shared) < than

    @cached_property
    def _records(self) -> dict[str, Counter[_Record]]:
        names = _names(self.state)
        return {
            container: Counter(_contents(key, record, names) for key, record in records.items())
            for container, records in _containers(self.state)
        }

    @cached_property
    def _single(self) -> Counter[_Leaf]:
        """The values that stand in no container of records, each with its place."""
        held = {container for container, _ in _containers(self.state)}
        rest = {key: part for key, part in self.state.items() if key not in held}
        return Counter(_leaves(rest, "", {}))

    @cached_property
    def _bag(self) -> Counter[tuple[str, _Leaf]]:
        bag: Counter[tuple[str, _Leaf]] = Counter({("", leaf): count for leaf, count in self._single.items()})
        for container, records in self._records.items():
            for record, count in records.items():
                for leaf in record:
                    bag[container, leaf] += count
        return bag

    @cached_property
    def _size(self) -> int:
        return sum(self._bag.values())


def _containers(state: State) -> Iterable[tuple[str, Mapping[str, State]]]:
    for name, records in state.items():
        if isinstance(records, dict) and records and all(isinstance(record, dict) for record in records.values()):
            yield name, records


def _names(state: State) -> dict[str, bytes]:
    """For each id what its record says beside ids: what a reference to it stands for."""
    ids = {key for _, records in _containers(state) for key in records}
    return {
        key: encode(
            [
                container,
                *(value for value in record.values() if not isinstance(value, (dict, list)) and value not in ids),
            ]
        )
        for container, records in _containers(state)
        for key, record in records.items()
    }


def _contents(key: str, record: State, names: Mapping[str, bytes]) -> _Record:
    return tuple(leaf for leaf in _leaves(record, "", names, key) if leaf[1] is not _OWN)


_OWN = b""
"""Stands for the record's own id."""


def _leaves(value: JsonValue, place: str, names: Mapping[str, bytes], own: str | None = None) -> list[_Leaf]:
    if isinstance(value, dict) and value:
        return [leaf for key, part in value.items() for leaf in _leaves(part, f"{place}/{escape(key)}", names, own)]
    if isinstance(value, list) and value:
        return [leaf for index, part in enumerate(value) for leaf in _leaves(part, f"{place}/{index}", names, own)]
    if isinstance(value, str) and value == own:
        return [(place, _OWN)]
    return [(place, names.get(value) or encode(value) if isinstance(value, str) else encode(value))]


def _shared(ours: Counter[_Record], theirs: Counter[_Record]) -> int:
    """How many values records have in common, each paired with one that it is most like."""
    equal = ours & theirs
    shared = sum(len(record) * count for record, count in equal.items())
    left, right = list((ours - equal).elements()), list((theirs - equal).elements())
    pairs = sorted(_pairs(left, right), key=lambda pair: (-pair[0], pair[1]))
    paired_left: set[int] = set()
    paired_right: set[int] = set()
    for common, _, one, other in pairs:
        if one not in paired_left and other not in paired_right:
            paired_left.add(one)
            paired_right.add(other)
            shared += common
    return shared


def _pairs(left: Sequence[_Record], right: Sequence[_Record]) -> Iterable[tuple[int, list[_Record], int, int]]:
    counts = [Counter(record) for record in right]
    for one, record in enumerate(left):
        own = Counter(record)
        for other, count in enumerate(counts):
            common = sum((own & count).values())
            if common:
                # The same order from either side: it hangs on what the two hold, not on which state they are from.
                yield common, sorted((record, right[other])), one, other
