"""`Sameness`: whether two final states of one scenario come to the same, ids and times that were made on the way aside.

Source: ScaleEnv (arXiv 2602.06820) divides the fields of a state into exempt, exact and tolerant ones; that the exempt
ones are found by playing the same calls with another seed and at another time is ours.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from envscaler.state import JsonValue, State, diff, digest, encode, leaves, tokens

Place = tuple[str, ...]
"""Where a kind of value stands: the keys on the way to it, `*` for those of records and for positions in lists."""

ANY = "*"
_ROUNDS = 3
"""Records made on the way that refer to each other are told apart to this depth."""


def place_of(path: Sequence[str], value: JsonValue) -> Place:
    """The place of the part of `value` that a path leads to."""
    out: list[str] = []
    for depth, token in enumerate(path):
        holds_records = depth == 1 and isinstance(value, dict) and (not value or _has_records(value))
        out.append(ANY if isinstance(value, list) or holds_records else token)
        value = _part(value, token)
    return tuple(out)


def _has_records(value: dict[str, JsonValue]) -> bool:
    return any(isinstance(part, dict) for part in value.values())


def _part(value: JsonValue, token: str) -> JsonValue:
    if isinstance(value, dict):
        return value.get(token)
    if isinstance(value, list) and token.isdigit() and int(token) < len(value):
        return value[int(token)]
    return None


def created_keys(initial: State, final: State) -> frozenset[str]:
    """The keys of records that are in the final state and were not in the initial one."""
    return frozenset(
        key
        for name, records in final.items()
        if isinstance(records, dict)
        for key, record in records.items()
        if isinstance(record, dict) and not _has(initial.get(name), key)
    )


def _has(records: JsonValue, key: str) -> bool:
    return isinstance(records, dict) and key in records


class Sameness:
    """What counts when final states of one scenario are compared.

    Args:
        initial: the state right after reset.
        exempt: places whose values depend on chance or on the clock, or count what was made.
    """

    def __init__(self, initial: State, exempt: Iterable[Place] = ()) -> None:
        self.initial = initial
        self.exempt = frozenset(exempt)
        self._before = dict(leaves(initial))

    @classmethod
    def of(cls, initial: State, final: State, otherwise: Iterable[State]) -> Sameness:
        """What counts, learned from final states that the same calls left with another seed or at another time."""
        exempt: set[Place] = set()
        for other in otherwise:
            exempt |= _differing(final, other)
        exempt |= _counters(initial, final)
        return cls(initial, exempt)

    def is_exempt(self, path: Sequence[str], state: State) -> bool:
        """Whether the value at a path of `state` may be any."""
        return place_of(path, state) in self.exempt

    def text(self, final: State, aside: Collection[str] = ()) -> str:
        """A text that final states share exactly if they come to the same.

        Args:
            aside: state keys that are not looked at.
        """
        names = self._names(final)
        parts: dict[str, JsonValue] = {}
        for key, part in final.items():
            if key not in aside:
                parts[key] = self._contents(part, (key,), final, names)
        return digest(parts)

    def same(self, one: State, other: State, aside: Collection[str] = ()) -> bool:
        """Whether two final states come to the same."""
        return self.text(one, aside) == self.text(other, aside)

    def _names(self, final: State) -> dict[str, str]:
        """For each id that was made on the way a name that says what the record holds."""
        created = created_keys(self.initial, final)
        names = dict.fromkeys(created, "new")
        for _ in range(_ROUNDS if created else 0):
            told: dict[str, list[str]] = {}
            for name, records in final.items():
                if isinstance(records, dict):
                    for key in created & records.keys():
                        contents = self._contents(records[key], (name, key), final, names)
                        told.setdefault(key, []).append(encode([name, contents]).decode("utf-8", "replace"))
            names = {key: f"new {digest(sorted(parts))}" for key, parts in told.items()}
        return names

    def _contents(self, value: JsonValue, path: tuple[str, ...], final: State, names: Mapping[str, str]) -> JsonValue:
        if isinstance(value, dict):
            kept = [
                (names.get(key, key), self._contents(part, (*path, key), final, names))
                for key, part in value.items()
                if not self._is_left_aside((*path, key), part, final)
            ]
            # Two records that were made alike have one name: they are told by their number.
            out: dict[str, JsonValue] = {}
            for key, part in kept:
                while key in out:
                    key += "+"
                out[key] = part
            return out
        if isinstance(value, list):
            return [self._contents(part, (*path, str(index)), final, names) for index, part in enumerate(value)]
        return names.get(value, value) if isinstance(value, str) else value

    def _is_left_aside(self, path: tuple[str, ...], value: JsonValue, final: State) -> bool:
        if isinstance(value, (dict, list)) and value:
            return False
        # What it was before is nobody's doing, wherever it stands.
        return self.is_exempt(path, final) and self._before.get(path) != value


def _differing(final: State, other: State) -> set[Place]:
    """The places in which two final states differ, records with other ids paired in their order."""
    out: set[Place] = set()
    renamed: dict[str, str] = {}

    def pairs(one: JsonValue, two: JsonValue, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
        if isinstance(one, dict) and isinstance(two, dict):
            lost = [key for key in one if key not in two]
            found = [key for key in two if key not in one]
            renamed.update(zip(lost, found, strict=False))
            for key in [key for key in one if key in two]:
                yield from pairs(one[key], two[key], (*path, key))
            for key, new in zip(lost, found, strict=False):
                yield from pairs(one[key], two[new], (*path, key))
        elif isinstance(one, list) and isinstance(two, list):
            for index, (left, right) in enumerate(zip(one, two, strict=False)):
                yield from pairs(left, right, (*path, str(index)))
        elif encode(one) != encode(two):
            yield path, one, two

    for path, one, two in list(pairs(final, other, ())):
        if not (isinstance(one, str) and renamed.get(one) == two):
            out.add(place_of(path, final))
    return out


def _counters(initial: State, final: State) -> set[Place]:
    """Numbers at the top of the state that went up by as much as records were made."""
    made = len(created_keys(initial, final))
    return {
        tuple(tokens(change.pointer))
        for change in diff(initial, final)
        if made
        and change.pointer.count("/") == 1
        and type(change.before) is int
        and type(change.after) is int
        and 0 < change.after - change.before <= made
    }
