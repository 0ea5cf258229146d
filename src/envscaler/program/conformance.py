"""`state_faults`: whether a state is one that the environment's entities describe.

It looks at structure, keys, types, enums and references; rules are the program's and the oracles' business.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from envscaler.program.annotations import Annotations
from envscaler.program.arguments import SchemaChecker, described
from envscaler.skeleton import Attribute, Entity
from envscaler.state import JsonValue, State, escape


def state_faults(state: State, entities: Sequence[Entity]) -> tuple[str, ...]:
    """Where a state does not satisfy the state schema, a pointer and a sentence each; empty when it does.

    Without entities nothing is known, and nothing is wrong.

    Source: paper 4, P_state: structure, references and constraints.
    """
    return tuple(_faults(state, entities)) if entities else ()


def _faults(state: State, entities: Sequence[Entity]) -> Iterator[str]:
    ids = {
        entity.name: frozenset(state[entity.container])
        for entity in entities
        if entity.container is not None and isinstance(state.get(entity.container), dict)
    }
    known: set[str] = set()
    for entity in entities:
        if entity.container is None:
            # The attributes are state keys themselves.
            for attribute in entity.attributes:
                known.add(attribute.name)
                if attribute.name not in state:
                    yield f"/{escape(attribute.name)}: missing from the state"
                else:
                    yield from _value_faults(state[attribute.name], attribute, f"/{escape(attribute.name)}", ids)
            continue
        known.add(entity.container)
        place = f"/{escape(entity.container)}"
        if entity.container not in state:
            yield f"{place}: missing from the state; it maps ids to {entity.name} records"
            continue
        container = state[entity.container]
        if not isinstance(container, dict):
            yield f"{place}: is {described(container)}; it must be an object that maps ids to {entity.name} records"
            continue
        for key, record in container.items():
            yield from _record_faults(key, record, entity, f"{place}/{escape(key)}", ids)
    for key in state:
        if key not in known:
            yield f"/{escape(key)}: no entity has such a container or attribute"


def _record_faults(
    key: str, record: JsonValue, entity: Entity, place: str, ids: dict[str, frozenset[str]]
) -> Iterator[str]:
    if not isinstance(record, dict):
        if len(entity.attributes) == 1:
            # A container may map ids straight to the values of a single attribute.
            yield from _value_faults(record, entity.attributes[0], place, ids)
        else:
            yield f"{place}: is {described(record)}; it must be a {entity.name} record"
        return
    attributes = {attribute.name: attribute for attribute in entity.attributes}
    for name, attribute in attributes.items():
        if name in record:
            yield from _value_faults(record[name], attribute, f"{place}/{escape(name)}", ids)
        else:
            yield f"{place}: lacks the attribute `{name}` of {entity.name}"
    for name in record:
        if name not in attributes:
            yield f"{place}/{escape(name)}: {entity.name} has no attribute `{name}`"
    if entity.key is not None and entity.key in record and record[entity.key] != key:
        yield f"{place}/{escape(entity.key)}: is {described(record[entity.key])}; it must repeat the id {key!r}"


def _value_faults(value: JsonValue, attribute: Attribute, place: str, ids: dict[str, frozenset[str]]) -> Iterator[str]:
    faults = _checker(attribute.type).faults(value, "it")
    if faults:
        yield f"{place}: {faults[0]}"
        return
    if attribute.enum is not None:
        for part in _leaves(value):
            if part is not None and part not in attribute.enum:
                yield f"{place}: is {described(part)}; it must be one of {', '.join(attribute.enum)}"
    known = ids.get(attribute.references) if attribute.references is not None else None
    for part in _leaves(value):
        if known is not None and part is not None and str(part) not in known:
            yield f"{place}: refers to {attribute.references} {part!r}, which does not exist"


def _leaves(value: JsonValue) -> list[JsonValue]:
    """The values that an enum or a reference speaks of: elements of a list, keys of an object, or the value."""
    if isinstance(value, list):
        return [part for element in value for part in _leaves(element)]
    return list(value) if isinstance(value, dict) else [value]


@lru_cache(maxsize=1024)
def _checker(annotation: str) -> SchemaChecker:
    return SchemaChecker(Annotations().of_text(annotation))
