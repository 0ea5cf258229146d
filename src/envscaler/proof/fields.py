"""`Fields`: what kind of value a place of the state holds, and which other values it could hold there.

It reads the state schema where there is one and the state itself where there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Literal

from envscaler.proof.sameness import Place, place_of
from envscaler.skeleton import Attribute, EnvSkeleton
from envscaler.state import JsonValue, State, encode, leaves

ValueKind = Literal["flag", "number", "moment", "category", "reference", "text", "other"]
"""`category`: one of few words, such as a status; `reference`: the id of a record; `text`: what a person writes."""

_WORD = re.compile(r"[\w.+:/#@-]+\Z")
_COUNTER = re.compile(r"(?:^|_)(?:next|last|counter|seq|sequence|count|serial)(?:_|\Z)")
_FEW = 12
"""Different values of a field at most that still are categories."""


@dataclass(frozen=True)
class Other:
    """Another value for a place."""

    value: JsonValue
    near: bool
    """Whether it looks like the right one."""


class Fields:
    """The fields of one environment's state, as one state shows them."""

    def __init__(self, skeleton: EnvSkeleton, initial: State) -> None:
        entities = skeleton.entities
        self._attributes: dict[tuple[str, str], Attribute] = {}
        self._containers = {entity.name: entity.container for entity in entities}
        for entity in entities:
            for attribute in entity.attributes:
                self._attributes[entity.container or "", attribute.name] = attribute
        self._set = {
            name
            for tool in skeleton.tools
            if tool.effect == "update"
            for name in (tool.parameters.get("properties") or {})
        }
        self._ids: dict[str, tuple[str, ...]] = {
            name: tuple(records)
            for name, records in initial.items()
            if isinstance(records, dict) and records and all(isinstance(record, dict) for record in records.values())
        }
        self._seen: dict[Place, list[JsonValue]] = {}
        for path, value in leaves(initial):
            self._seen.setdefault(place_of(path, initial), []).append(value)

    @property
    def containers(self) -> dict[str, tuple[str, ...]]:
        """The state keys that hold records, with the ids of those."""
        return self._ids

    def attribute(self, path: Sequence[str]) -> Attribute | None:
        """What the schema says of the field that a path leads to."""
        if len(path) == 1:
            return self._attributes.get(("", path[0]))
        return self._attributes.get((path[0], path[2])) if len(path) >= 3 else None

    def seen(self, place: Place) -> list[JsonValue]:
        """The values that the initial state has in such places."""
        return self._seen.get(place, [])

    def kind(self, path: Sequence[str], value: JsonValue, state: State) -> ValueKind:
        """What kind of value stands there."""
        if isinstance(value, bool):
            return "flag"
        if isinstance(value, (int, float)):
            return "number"
        if not isinstance(value, str):
            return "other"
        attribute = self.attribute(path)
        if attribute is not None and attribute.enum:
            return "category"
        if (attribute is not None and attribute.references) or self._container_of(value) is not None:
            return "reference"
        if moment(value) is not None:
            return "moment"
        others = [other for other in self.seen(place_of(path, state)) if isinstance(other, str)]
        distinct = set(others)
        if _WORD.match(value) and len(distinct) <= _FEW and (value in distinct or len(distinct) < len(others)):
            return "category"
        return "text"

    def is_kept(self, path: Sequence[str], value: JsonValue) -> bool:
        """Whether the program itself keeps this value: a time stamp, or a counter, that no tool is told."""
        name = path[-1]
        if isinstance(value, str) and moment(value) is not None:
            return not any(name == given or name.endswith(given) or given.endswith(name) for given in self._set)
        return len(path) == 1 and type(value) is int and _COUNTER.search(name) is not None

    def others(self, path: Sequence[str], value: JsonValue, state: State, before: JsonValue = None) -> list[Other]:
        """Values that are wrong there, the plainly wrong one first.

        Args:
            before: what stood there at reset; it is not among them.
        """
        kind = self.kind(path, value, state)
        made: list[Other] = []
        if kind == "flag":
            made = [Other(not value, False)]
        elif kind == "number":
            made = _numbers(value)
        elif kind == "moment":
            made = [Other(text, True) for text in shifted(str(value))]
        elif kind == "reference":
            made = [Other(other, False) for other in self._neighbours(path, str(value))[:1]]
        elif kind == "category":
            known = self._categories(path, state)
            made = [Other(other, False) for other in known if other not in (value, before)][:1]
            made += [Other(text, True) for text in near_misses(str(value))]
        elif kind == "text":
            made = [Other("Something else entirely", False), Other("", False)]
        own, old = encode(value), encode(before)
        return [other for other in made if encode(other.value) not in (own, old)]

    def _categories(self, path: Sequence[str], state: State) -> list[JsonValue]:
        attribute = self.attribute(path)
        if attribute is not None and attribute.enum:
            return list(attribute.enum)
        return list(dict.fromkeys(value for value in self.seen(place_of(path, state)) if isinstance(value, str)))

    def _neighbours(self, path: Sequence[str], key: str) -> list[str]:
        attribute = self.attribute(path)
        container = self._containers.get(attribute.references) if attribute and attribute.references else None
        container = container or self._container_of(key)
        return [other for other in self._ids.get(container or "", ()) if other != key]

    def _container_of(self, key: str) -> str | None:
        return next((name for name, ids in self._ids.items() if key in ids), None)


def records_of(state: State, container: str) -> dict[str, JsonValue]:
    """What a state key holds by id; nothing where it holds anything else."""
    records = state.get(container)
    return records if isinstance(records, dict) else {}


def near_misses(word: str) -> list[str]:
    """Texts that contain a word, are part of it or differ in case only, and mean something else."""
    made = [f"un{word}", f"not_{word}" if "_" in word else f"not {word}", word.swapcase()]
    if len(word) > 3:
        made.append(word[:-1])
    return list(dict.fromkeys(text for text in made if text != word))


def moment(text: str) -> datetime | None:
    """The date or time that an ISO 8601 text tells; None when it tells none."""
    if not 8 <= len(text) <= 40 or not text[:4].isdigit():
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def shifted(text: str) -> list[str]:
    """The same date or time a day later and a day earlier, in the same form."""
    found = moment(text)
    out = []
    for days in (1, -1) if found is not None else ():
        try:
            if len(text) == 10:
                out.append((date.fromisoformat(text) + timedelta(days=days)).isoformat())
            else:
                assert found is not None
                changed = (found + timedelta(days=days)).isoformat(sep=text[10])
                out.append(changed.replace("+00:00", "Z") if text.endswith("Z") else changed)
        except (ValueError, OverflowError):
            continue
    return out


def _numbers(value: float) -> list[Other]:
    far = type(value)(value * 2 + 7)
    return [Other(far, False), Other(value + 1, True), Other(value - 1, True)]
