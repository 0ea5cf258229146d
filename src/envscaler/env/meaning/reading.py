"""`Reading`: what can be read of a tool without a model: whether it gets, lists or changes, and what parameters name.

What a call then has to do is the business of `queries` and `updates`.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from envscaler.probe.pool import Pool
from envscaler.program.arguments import SchemaChecker
from envscaler.skeleton import Attribute, Entity, Rule, ToolSpec
from envscaler.state import JsonValue, State

Kind = Literal["get", "list", "update", "other"]

_GET = frozenset({"get", "show", "view", "read", "fetch", "lookup", "retrieve", "describe"})
_LIST = frozenset({"list", "find", "search", "filter", "browse", *_GET})
_CREATE = frozenset({"create", "register", "new"})
_DELETE = frozenset({"delete", "remove", "erase"})
_CHANGE = frozenset({"update", "set", "change", "edit", "modify", "rename"})
_OF_ONE = ("", "_details", "_detail", "_info", "_record", "_by_id")
_LIMITS = frozenset({"limit", "max_results", "max_count", "top_n", "top_k", "page_size"})
_PREFIXES = ("new_", "updated_")


@dataclass(frozen=True)
class Known:
    """What is machine-readable of an environment beside its tools."""

    entities: tuple[Entity, ...]
    rules: tuple[Rule, ...] = ()
    _pools: deque[tuple[State, Pool]] = field(
        default_factory=lambda: deque(maxlen=2), init=False, compare=False, repr=False
    )
    """Those of the states before and after the latest call."""

    def pool(self, state: State) -> Pool:
        """The pool of a state, which nobody writes to; one is made for the same object once."""
        for held, pool in self._pools:
            if held is state:
                return pool
        made = Pool(state, self.entities)
        self._pools.append((state, made))
        return made

    def entity(self, name: str) -> Entity | None:
        """The entity of that name that has records of its own, or None."""
        return next((one for one in self.entities if one.name == name and one.container is not None), None)

    def of_container(self, container: str | None) -> Entity | None:
        """The entity whose records lie there."""
        return next((one for one in self.entities if container is not None and one.container == container), None)


@dataclass(frozen=True)
class Reading:
    """What a tool does, as far as its name, its parameters and its declared effects tell."""

    kind: Kind
    entity: Entity | None = None
    """Of a query: whose records it returns. Of an update without declared effects: whose it changes."""
    whole: bool = False
    """Of a list: its name promises every record that fits the parameters."""
    declared: bool = False
    """Of an update: its effects are declared, what follows is all that it does."""
    creates: Mapping[str, int] = field(default_factory=dict)
    """Records made, by entity."""
    deletes: Mapping[str, int] = field(default_factory=dict)
    updates: Mapping[str, int] = field(default_factory=dict)
    """Statements of change, by entity."""
    sets: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Attributes that are set, by entity; None: any."""


def reading(known: Known, tool: ToolSpec, pool: Pool) -> Reading:
    """Read a tool.

    Args:
        pool: made from a state and the entities; it knows which parameters hold keys.
    """
    if tool.effect == "query":
        return _query(known, tool, pool)
    return _declared(tool) if tool.effects is not None else _by_verb(known, tool)


def attribute_of(entity: Entity, parameter: str) -> Attribute | None:
    """The attribute that a parameter is named after."""
    names = [parameter, *(parameter.removeprefix(prefix) for prefix in _PREFIXES)]
    found = (attribute for name in names for attribute in entity.attributes if attribute.name == name)
    return next(found, None)


def referring(entity: Entity, other: Entity) -> Attribute | None:
    """The one attribute of an entity that holds keys of another; None where there are several or none."""
    found = [attribute for attribute in entity.attributes if attribute.references == other.name]
    return found[0] if len(found) == 1 else None


def joined(known: Known, entity: Entity, other: Entity) -> bool:
    """Whether a third entity refers to both, so that their records can belong together without referring to each
    other (a person's meetings: those of the invitations too)."""
    both = {entity.name, other.name}
    return any(both <= {attribute.references for attribute in one.attributes} for one in known.entities)


def bound_of(entity: Entity, parameter: str) -> tuple[Literal["min", "max"], Attribute] | None:
    """The attribute that a parameter such as `min_price` bounds."""
    sides: tuple[Literal["min", "max"], ...] = ("min", "max")
    for side in sides:
        stem = parameter.removeprefix(f"{side}_").removesuffix(f"_{side}")
        attribute = attribute_of(entity, stem) if stem != parameter else None
        if attribute is not None:
            return side, attribute
    return None


def is_limit(parameter: str) -> bool:
    """Whether a parameter says how many records are wanted at most."""
    return parameter in _LIMITS


def properties_of(tool: ToolSpec) -> Mapping[str, Any]:
    """The schema of each parameter."""
    properties = tool.parameters.get("properties")
    return properties if isinstance(properties, dict) else {}


def takes_several(tool: ToolSpec) -> bool:
    """Whether a parameter is an array or an object, so that one call may stand for many."""
    return any('"array"' in text or '"object"' in text for text in map(_text, properties_of(tool).values()))


def ids_named(known: Known, tool: ToolSpec, arguments: Mapping[str, JsonValue], pool: Pool) -> dict[str, list[str]]:
    """The ids that the arguments name, by container."""
    named: dict[str, list[str]] = {}
    for name, value in arguments.items():
        container = pool.container(name) if name in properties_of(tool) else None
        if known.of_container(container) is None or container is None:
            continue
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, str):
                named.setdefault(container, []).append(part)
    return named


def misfit(tool: ToolSpec, arguments: Mapping[str, JsonValue]) -> bool:
    """Whether the schema of a tool refuses the arguments."""
    return bool(SchemaChecker(tool.parameters).faults(dict(arguments), "arguments"))


def nouns(entity: Entity) -> tuple[str, ...]:
    """How tools may call one record of an entity."""
    names = {_snake(entity.name)}
    if entity.key is not None and entity.key.endswith("_id"):
        names.add(entity.key.removesuffix("_id"))
    return tuple(sorted(names))


def plurals(entity: Entity) -> tuple[str, ...]:
    """How tools may call the records of an entity."""
    names = {entity.container or ""} | {form for noun in nouns(entity) for form in _plural_forms(noun)}
    return tuple(sorted(names - {""}, key=lambda name: (-len(name), name)))


def _query(known: Known, tool: ToolSpec, pool: Pool) -> Reading:
    verb, _, rest = tool.name.partition("_")
    rest = rest.removeprefix("all_")
    read = {effect.entity for effect in tool.effects or () if effect.kind == "read"}
    properties = properties_of(tool)
    for entity in known.entities:
        if entity.container is None or (read and entity.name not in read):
            continue
        if verb in _GET and any(rest == f"{noun}{ending}" for noun in nouns(entity) for ending in _OF_ONE):
            required = [name for name in properties if pool.container(name) == entity.container]
            return Reading("get" if len(properties) == len(required) == 1 else "other", entity)
        plural = next((form for form in plurals(entity) if rest == form or rest.startswith(f"{form}_")), None)
        if verb in _LIST and plural is not None:
            ending = rest.removeprefix(plural)
            whole = ending == "" or (ending.split("_")[1] in ("by", "of", "for", "in") and bool(properties))
            return Reading("list", entity, whole=whole)
    return Reading("other")


def _declared(tool: ToolSpec) -> Reading:
    effects = [effect for effect in tool.effects or () if effect.kind != "read"]
    sets: dict[str, frozenset[str] | None] = {}
    for effect in effects:
        if effect.kind == "update":
            earlier = sets.get(effect.entity, frozenset())
            whole = not effect.attributes or earlier is None
            sets[effect.entity] = None if whole else frozenset(effect.attributes) | (earlier or frozenset())
    return Reading(
        "update",
        declared=bool(effects),
        creates=Counter(effect.entity for effect in effects if effect.kind == "create"),
        deletes=Counter(effect.entity for effect in effects if effect.kind == "delete"),
        updates=Counter(effect.entity for effect in effects if effect.kind == "update"),
        sets=sets,
    )


def _by_verb(known: Known, tool: ToolSpec) -> Reading:
    verb, _, rest = tool.name.partition("_")
    entity = next((one for one in known.entities if one.container is not None and rest in nouns(one)), None)
    if entity is None:
        # `update_book_title` changes a book as well.
        starts = [one for one in known.entities if one.container is not None and _starts(rest, one)]
        entity = starts[0] if len(starts) == 1 and verb in _CHANGE else None
    if entity is None:
        return Reading("update")
    one = {entity.name: 1}
    if verb in _CREATE:
        return Reading("update", entity, creates=one)
    if verb in _DELETE:
        return Reading("update", entity, deletes=one)
    return Reading("update", entity, updates=one, sets={entity.name: None}) if verb in _CHANGE else Reading("update")


def _starts(rest: str, entity: Entity) -> bool:
    return any(rest.startswith(f"{noun}_") for noun in nouns(entity))


def _plural_forms(noun: str) -> Iterator[str]:
    yield f"{noun}s"
    yield f"{noun}es"
    if noun.endswith("y"):
        yield f"{noun[:-1]}ies"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower().replace(" ", "_")


def _text(schema: Any) -> str:
    return repr(schema).replace("'", '"')
