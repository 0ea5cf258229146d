"""`Pool`: the ids and values that a state holds, found by the name of a parameter.

Entities tell keys, references and enums where they are given; otherwise the records of the state speak for
themselves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envscaler.skeleton import Attribute, Entity
from envscaler.state import JsonValue, State

_PREFIXES = ("new_", "updated_", "target_", "current_", "old_")
_SCALARS = (str, int, float, bool)


class Pool:
    """Answers what a parameter of some name may be, given one state."""

    def __init__(self, state: State, entities: Sequence[Entity]) -> None:
        self._records: dict[str, dict[str, JsonValue]] = {}
        """Container → records by id."""
        self._ids: dict[str, str] = {}
        """Key attribute, and the plain `entity_id`, → container."""
        self._values: dict[str, dict[str, list[JsonValue]]] = {}
        """Attribute → container → values."""
        self._attributes: dict[str, Attribute] = {}
        containers = {entity.name: entity.container for entity in entities}
        for name, value in state.items():
            if isinstance(value, dict) and all(isinstance(record, dict) for record in value.values()):
                self._records[name] = value
        for entity in entities:
            if entity.container is not None:
                self._records.setdefault(entity.container, {})
                for key in (entity.key, f"{_snake(entity.name)}_id"):
                    if key:
                        self._ids.setdefault(key, entity.container)
            for attribute in entity.attributes:
                self._attributes.setdefault(attribute.name, attribute)
        for attribute in self._attributes.values():
            container = containers.get(attribute.references or "")
            if container is not None:
                self._ids.setdefault(attribute.name, container)
        for container, records in self._records.items():
            for key, record in records.items():
                for name, value in record.items() if isinstance(record, dict) else ():
                    if value == key:
                        self._ids.setdefault(name, container)
                    for part in value if isinstance(value, list) else [value]:
                        if isinstance(part, _SCALARS):
                            self._values.setdefault(name, {}).setdefault(container, []).append(part)
            self._ids.setdefault(f"{_singular(container)}_id", container)

    def container(self, name: str) -> str | None:
        """The container whose ids a parameter of that name holds; None when it is no id."""
        for form in _forms(name):
            if form in self._ids:
                return self._ids[form]
        for key in sorted(self._ids, key=len, reverse=True):
            # `from_account_id` names an account as well.
            if name.endswith(f"_{key}") and (key.endswith("_id") or len(key) > 4):
                return self._ids[key]
        return None

    def ids(self, container: str) -> list[str]:
        """The ids in a container, in state order."""
        return list(self._records.get(container, {}))

    def record(self, container: str, key: str) -> dict[str, JsonValue]:
        """One record; empty when there is none."""
        record = self._records.get(container, {}).get(key)
        return record if isinstance(record, dict) else {}

    def values(self, name: str, words: str) -> list[JsonValue]:
        """Values that attributes of that name have in the state, and those that an enum allows.

        Args:
            words: a text such as the tool's name; values of the container that it speaks of go first.
        """
        near = self._near(words)
        for form in (*_forms(name), *(name.removeprefix(f"{stem}_") for stem in map(_singular, near))):
            attribute = self._attributes.get(form)
            enum: tuple[JsonValue, ...] = attribute.enum or () if attribute is not None else ()
            held = self._values.get(form, {})
            own = [value for container in near for value in held.get(container, ())]
            found = own or [*(value for values in held.values() for value in values), *enum]
            if found:
                return found
        return []

    def records_near(self, words: str) -> list[dict[str, JsonValue]]:
        """Records of the container that a text such as `update_member` or `member_info` speaks of."""
        for container in self._near(words):
            return [record for record in self._records[container].values() if isinstance(record, dict)]
        return []

    def _near(self, words: str) -> list[str]:
        return [container for container in self._records if _singular(container) in words]


def _forms(name: str) -> Iterator[str]:
    yield name
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            yield name[len(prefix) :]
    if name.endswith("s"):
        yield name[:-1]


def _singular(container: str) -> str:
    if container.endswith("ies"):
        return f"{container[:-3]}y"
    if container.endswith(("sses", "xes", "ches", "shes")):
        return container[:-2]
    return container[:-1] if container.endswith("s") and not container.endswith("ss") else container


def _snake(name: str) -> str:
    out = ""
    for index, letter in enumerate(name):
        if letter.isupper() and index and not name[index - 1].isupper() and name[index - 1] not in " _":
            out += "_"
        out += letter
    return out.lower().replace(" ", "_")
