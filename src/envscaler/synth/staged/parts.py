"""From the replies of the staged questions to entities, rules and tools; what cannot be used is left out, not guessed.

Source: ours.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

from envscaler.record import JsonSchema
from envscaler.roles import staged as s
from envscaler.skeleton import Attribute, Effect, Entity, Rule, ToolSpec

SYSTEM = "SystemRecord"
"""The entity of what exists once: the clock and the counters, which code makes."""
CLOCK = "current_time"

_TYPES: dict[s.FieldType, str] = {
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "date": "str",
    "status": "str",
    "reference": "str",
}
_SCHEMA_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
DATE = "Date, YYYY-MM-DD"
_WORD = re.compile(r"[a-z0-9]+")


def snake(name: str) -> str:
    """`BookLoan` → `book_loan`."""
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)
    return "_".join(part.lower() for part in parts)


def plural(noun: str) -> str:
    """The regular plural of an English noun in snake_case."""
    if re.search(r"(s|x|z|ch|sh)$", noun):
        return f"{noun}es"
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def counter_of(entity: Entity) -> str:
    """State key of the number that the next record's id is made from."""
    return f"next_{snake(entity.name)}_number"


def id_of(entity: Entity, number: int) -> str:
    """The id of a record; new ones are made in the same form."""
    return f"{snake(entity.name)}_{number}"


def named(reply: s.NameEntitiesReply) -> tuple[s.NamedEntity, ...]:
    """The entities that can be used: one for each name and state key."""
    kept: dict[str, s.NamedEntity] = {}
    for one in reply.entities:
        name = "".join(part[:1].upper() + part[1:] for part in re.findall(r"[A-Za-z0-9]+", one.name))
        container = plural(snake(name))
        if name.isidentifier() and not keyword.iskeyword(name) and name != SYSTEM and container:
            kept.setdefault(container, s.NamedEntity(name=name, description=one.description))
    return tuple(kept.values())


def entities(named_ones: Sequence[s.NamedEntity], reply: s.DescribeEntitiesReply) -> tuple[Entity, ...]:
    """The entities with their attributes, ids and references by code, and the clock and counters as the last one."""
    names = {one.name: snake(one.name) for one in named_ones}
    made = tuple(
        Entity(
            name=one.name,
            description=one.description,
            container=plural(names[one.name]),
            key=f"{names[one.name]}_id",
            attributes=(
                Attribute(name=f"{names[one.name]}_id", type="str", description="Id"),
                *_attributes(one.name, reply.fields.get(one.name, ()), names),
            ),
        )
        for one in named_ones
    )
    once = [Attribute(name=CLOCK, type="str", description="Present time, ISO 8601")]
    once += [Attribute(name=counter_of(one), type="int", description=f"Number of the next {one.name}") for one in made]
    return (*made, Entity(name=SYSTEM, description="What exists once", attributes=tuple(once)))


def records(entities_: Iterable[Entity]) -> tuple[Entity, ...]:
    """Those that have records."""
    return tuple(entity for entity in entities_ if entity.container is not None)


def _attributes(owner: str, fields: Sequence[s.StagedField], names: dict[str, str]) -> list[Attribute]:
    own_key = f"{names[owner]}_id"
    by_stem = {stem: name for name, stem in names.items()}
    kept: dict[str, Attribute] = {}
    for field in fields:
        name = snake(re.sub(r"\W+", "_", field.name))
        target = field.references if field.type == "reference" else None
        stem = name.removesuffix("_id").removesuffix("_ids")
        if target is None and stem != name:
            # An id that points at nothing cannot be followed: it is a reference, or it is left out.
            target = by_stem.get(stem)
            if target is None:
                continue
        if name in ("id", "") or (target is not None and target not in names):
            continue
        if target is not None:
            name = stem if stem.endswith(names[target]) else names[target] if stem == "" else stem
            name = f"{name}_id"
        attribute = _attribute(name, field, target)
        if attribute.name != own_key and name.isidentifier() and not keyword.iskeyword(name):
            kept.setdefault(name, attribute)
    return list(kept.values())


def _attribute(name: str, field: s.StagedField, target: str | None) -> Attribute:
    if target is not None:
        return Attribute(name=name, type="str", references=target, description=f"Id of a {target}")
    if field.type == "status":
        values = tuple(dict.fromkeys(snake(re.sub(r"\W+", "_", value)) for value in field.values if value.strip()))
        return Attribute(name=name, type="str", enum=values if len(values) > 1 else None)
    return Attribute(name=name, type=_TYPES[field.type], description=DATE if field.type == "date" else "")


def is_date(attribute: Attribute) -> bool:
    """Whether the values of an attribute are dates."""
    return attribute.description == DATE


def given(tool: s.ListedTool, entity: Entity) -> tuple[Attribute, ...]:
    """The fields that a tool is given, its key aside: those listed, and for a new record all that has no default."""
    listed = [one for one in entity.attributes if one.name in tool.fields and one.name != entity.key]
    if tool.kind == "create":
        return tuple(
            one for one in entity.attributes if one.name != entity.key and (one in listed or not has_default(one))
        )
    return tuple(listed) if tool.kind in ("list", "change") else ()


def has_default(attribute: Attribute) -> bool:
    """Whether a new record can have a value for it that nobody gave: the first status, today, False."""
    return bool(attribute.enum) or attribute.type == "bool" or is_date(attribute)


def tools(reply: s.ListToolsReply, entities_: Sequence[Entity]) -> tuple[ToolSpec, ...]:
    """The tools that can be used, queries first; one for each name, and one for each thing that is done."""
    by_name = {entity.name: entity for entity in records(entities_)}
    taken = {entity.container for entity in by_name.values()}
    taken |= {one.name for entity in entities_ if entity.container is None for one in entity.attributes}
    made: dict[str, ToolSpec] = {}
    does: set[tuple[str, str, tuple[str, ...]]] = set()
    for listed in (*reply.queries, *reply.updates):
        entity, name = by_name.get(listed.entity), snake(listed.name)
        if entity is None or not name.isidentifier() or keyword.iskeyword(name) or name in taken or name in made:
            continue
        fields = given(listed, entity)
        doing = (listed.kind, entity.name, tuple(one.name for one in fields))
        if doing in does or (listed.kind == "change" and not fields):
            continue
        does.add(doing)
        made[name] = _tool(name, listed, entity, fields)
    return tuple(made.values())


def _tool(name: str, listed: s.ListedTool, entity: Entity, fields: Sequence[Attribute]) -> ToolSpec:
    properties: JsonSchema = {}
    if listed.kind in ("get", "change", "delete"):
        properties[str(entity.key)] = {"type": "string", "description": f"Id of the {entity.name}"}
    for one in fields:
        properties[one.name] = _property(one, listed.kind)
    schema: JsonSchema = {
        "type": "object",
        "properties": properties,
        "required": [] if listed.kind == "list" else list(properties),
    }
    return ToolSpec(
        name=name,
        description=listed.description.strip() or name.replace("_", " "),
        parameters=schema,
        effect="query" if listed.kind in s.QUERIES else "update",
        effects=_effects(listed.kind, entity, fields),
    )


def _property(attribute: Attribute, kind: s.ToolKind) -> JsonSchema:
    said = attribute.description or attribute.name.replace("_", " ").capitalize()
    if kind == "list":
        said = f"Only those with this {attribute.name.replace('_', ' ')}"
    elif kind == "change":
        said = f"The new value: {said}"
    made: JsonSchema = {"type": _SCHEMA_TYPES[attribute.type], "description": said}
    if attribute.enum:
        made["enum"] = list(attribute.enum)
    if kind == "list":
        made["default"] = None
    return made


def _effects(kind: s.ToolKind, entity: Entity, fields: Sequence[Attribute]) -> tuple[Effect, ...]:
    if kind in s.QUERIES:
        return (Effect(kind="read", entity=entity.name),)
    if kind == "create":
        return (
            Effect(kind="create", entity=entity.name),
            Effect(kind="update", entity=SYSTEM, attributes=(counter_of(entity),)),
        )
    if kind == "delete":
        return (Effect(kind="delete", entity=entity.name),)
    return (Effect(kind="update", entity=entity.name, attributes=tuple(one.name for one in fields)),)


def kind_of(tool: ToolSpec) -> s.ToolKind:
    """What a tool made by `tools` does."""
    effect = (tool.effects or ())[0]
    if effect.kind == "read":
        return "get" if tool.parameters["required"] else "list"
    return {"create": "create", "update": "change", "delete": "delete"}[effect.kind]  # type: ignore[return-value]


def rules(texts: Iterable[str], tools_: Sequence[ToolSpec], entities_: Sequence[Entity]) -> tuple[Rule, ...]:
    """The rules, each with the updates that set a field it speaks of; one that concerns none is not enforced."""
    made = {}
    by_name = {entity.name: entity for entity in entities_}
    for text in texts:
        text = " ".join(text.split())
        words = set(_WORD.findall(text.lower()))
        concerned = tuple(tool.name for tool in tools_ if tool.effect == "update" and _speaks_of(words, tool, by_name))
        if words:
            made[text] = Rule(text=text, tools=concerned, enforced=None if concerned else False)
    return tuple(made.values())


def _speaks_of(words: set[str], tool: ToolSpec, by_name: dict[str, Entity]) -> bool:
    entity = by_name[(tool.effects or ())[0].entity]
    nouns = set(snake(entity.name).split("_"))
    if not words & (nouns | {plural(noun) for noun in nouns}):
        return False
    if kind_of(tool) != "change":
        return True
    return any(words.issuperset(name.removesuffix("_id").split("_")) for name in tool.parameters["properties"])
