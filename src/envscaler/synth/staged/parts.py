"""From the replies of the staged questions to entities, rules and tools; what cannot be used is left out, not guessed.

Source: ours.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Sequence

from envscaler.record import JsonSchema
from envscaler.roles import staged as s
from envscaler.skeleton import Attribute, Effect, Entity, Forbidden, Initial, Rule, ToolSpec

SYSTEM = "SystemRecord"
"""The entity of what exists once: the clock and the counters, which code makes."""
CLOCK = "current_time"
STATUS = "status"

_TYPES: dict[s.FieldType, str] = {
    "text": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "date": "str",
}
_SCHEMA_TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
DATE = "Date, YYYY-MM-DD"


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
            kept.setdefault(container, one.model_copy(update={"name": name}))
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
                *_attributes(one.name, reply.kinds.get(one.name), names),
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


def _attributes(owner: str, kind: s.StagedKind | None, names: dict[str, str]) -> list[Attribute]:
    if kind is None:
        return []
    keys = {f"{stem}_id" for stem in names.values()}
    kept: dict[str, Attribute] = {}
    for field in kind.fields:
        # An id of what is no record here is a text like another, and must not look like a reference.
        name = re.sub(r"_ids?$", "_code", snake(re.sub(r"\W+", "_", field.name)))
        if not name.isidentifier() or keyword.iskeyword(name) or name in {"id", STATUS, *names.values(), *keys}:
            continue
        kept.setdefault(name, _attribute(name, field.type))
    stages = tuple(dict.fromkeys(snake(re.sub(r"\W+", "_", stage)) for stage in kind.status))
    stages = tuple(stage for stage in stages if stage)
    if len(stages) > 1:
        kept[STATUS] = Attribute(name=STATUS, type="str", enum=stages, initial=Initial(value=stages[0]))
    for other in dict.fromkeys(kind.belongs_to):
        if other in names and other != owner:
            key = f"{names[other]}_id"
            kept[key] = Attribute(name=key, type="str", references=other, description=f"Id of a {other}")
    return list(kept.values())


def _attribute(name: str, kind: s.FieldType) -> Attribute:
    if kind == "date":
        return Attribute(name=name, type="str", description=DATE, initial=Initial(clock=CLOCK))
    return Attribute(name=name, type=_TYPES[kind], initial=Initial(value=False) if kind == "boolean" else None)


def telling(entity: Entity) -> tuple[Attribute, ...]:
    """The attributes whose value can forbid a change: those with few values."""
    return tuple(one for one in entity.attributes if one.enum or one.type == "bool")


def is_date(attribute: Attribute) -> bool:
    """Whether the values of an attribute are dates."""
    return attribute.description == DATE


def given(kind: s.ToolKind, tool: s.ListedTool, entity: Entity) -> tuple[Attribute, ...]:
    """The fields that a tool is given, its key aside: those listed, and for a new record all that has no default."""
    listed = [one for one in entity.attributes if one.name in tool.fields and one.name != entity.key]
    if kind == "create":
        return tuple(
            one for one in entity.attributes if one.name != entity.key and (one in listed or one.initial is None)
        )
    return tuple(listed) if kind in ("list", "change") else ()


_LOOKING = {"list", "find", "search", "filter", "get", "show", "view", "fetch"}
_MAKING = {"create", "add", "register"}
_CHANGING = {"update", "change", "edit", "set"}
_DELETING = {"delete", "remove"}
_MISLEADING: dict[s.ToolKind, set[str]] = {
    "create": _LOOKING | _DELETING | {"update", "change", "edit"},
    "change": _LOOKING | _MAKING | _DELETING,
    "delete": _LOOKING | _MAKING | _CHANGING,
}
"""By kind of update, verbs that say that a tool does something else."""


def tools(
    reply: s.ListToolsReply, entities_: Sequence[Entity], language: str
) -> tuple[tuple[ToolSpec, ...], tuple[Rule, ...]]:
    """The tools that can be used, queries first, one for each thing that is done; and what they refuse, as rules.

    A name that is taken, or that says something else than the tool does, is replaced by one that code makes.
    """
    by_name = {entity.name: entity for entity in records(entities_)}
    taken = {entity.container for entity in by_name.values()}
    taken |= {one.name for entity in entities_ if entity.container is None for one in entity.attributes}
    made: dict[str, ToolSpec] = {}
    rules: list[Rule] = []
    does: set[tuple[str, str, tuple[str, ...]]] = set()
    for kind, listed in reply.by_kind:
        entity = by_name.get(listed.entity)
        if entity is None:
            continue
        fields = given(kind, listed, entity)
        doing = (kind, entity.name, tuple(one.name for one in fields))
        if doing in does or (kind == "change" and not fields):
            continue
        name, description = snake(listed.name), listed.description
        if not _is_name(name) or name in taken or name in made or not _says(name, kind, entity):
            name = description = _plain_name(kind, entity, fields)
        if name not in taken and name not in made:
            does.add(doing)
            made[name] = _tool(name, kind, description, entity, fields)
            rules += _rules(name, kind, listed.refused_when, entity, language)
    return tuple(made.values()), tuple(rules)


def _says(name: str, kind: s.ToolKind, entity: Entity) -> bool:
    """Whether a name says what a tool does; that of a query says which records it shows, and whether one or many."""
    verb, _, rest = name.partition("_")
    noun = snake(entity.name)
    if kind == "get":
        return verb in _LOOKING and rest in (noun, f"{noun}_details", f"{noun}_by_id")
    if kind == "list":
        return verb in _LOOKING and (rest == plural(noun) or rest.startswith(f"{plural(noun)}_by_"))
    return verb not in _MISLEADING[kind]


def _is_name(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name)


def _plain_name(kind: s.ToolKind, entity: Entity, fields: Sequence[Attribute]) -> str:
    """`set_order_status`, `list_orders_by_status` …"""
    noun, named = snake(entity.name), "_and_".join(one.name.removesuffix("_id") for one in fields)
    if kind == "list":
        return f"list_{plural(noun)}_by_{named}" if named else f"list_{plural(noun)}"
    return f"set_{noun}_{named}" if kind == "change" else f"{kind}_{noun}"


def _tool(name: str, kind: s.ToolKind, description: str, entity: Entity, fields: Sequence[Attribute]) -> ToolSpec:
    properties: JsonSchema = {}
    if kind in ("get", "change", "delete"):
        properties[str(entity.key)] = {"type": "string", "description": f"Id of the {entity.name}"}
    for one in fields:
        properties[one.name] = _property(one, kind)
    schema: JsonSchema = {
        "type": "object",
        "properties": properties,
        "required": [] if kind == "list" else list(properties),
    }
    return ToolSpec(
        name=name,
        description=name.replace("_", " ").capitalize() if description.strip() in ("", name) else description.strip(),
        parameters=schema,
        effect="query" if kind in s.QUERIES else "update",
        effects=_effects(kind, entity, fields),
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


_RULES = {
    "en": "{tool} refuses a {entity} whose {field} is {value}.",
    "zh": "当 {entity} 的 {field} 为 {value} 时，{tool} 会拒绝。",
}
"""By language; English where we have none in it."""


def _rules(tool: str, kind: s.ToolKind, refused: s.Refused | None, entity: Entity, language: str) -> tuple[Rule, ...]:
    if refused is None or kind not in ("change", "delete"):
        return ()
    attribute = next((one for one in telling(entity) if one.name == refused.field), None)
    if attribute is None:
        return ()
    if refused.value not in attribute.enum if attribute.enum else not isinstance(refused.value, bool):
        return ()
    text = _RULES.get(language, _RULES["en"])
    said = text.format(tool=tool, entity=entity.name, field=attribute.name, value=str(refused.value).lower())
    forbidden = Forbidden(entity=entity.name, attribute=attribute.name, value=refused.value)
    return (Rule(text=said, tools=(tool,), forbidden=forbidden),)
