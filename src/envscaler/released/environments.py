"""Published environments as `EnvSkeleton` records, and back.

The program is never changed. What the published state space says in cut-off words is completed from the program's own
declarations; what it said is kept beside it. Whether the program works is not this module's business.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from envscaler.errors import ProgramError, StoreError
from envscaler.program import Container, class_name_of, containers, methods_of, remove_method
from envscaler.released.fields import Published, entry_of, folder_name, identifier, kept, kind_of, rejoined, rows, text
from envscaler.skeleton import Attribute, Entity, EnvDescription, EnvSkeleton, Origin, Rule, ToolSpec
from envscaler.state import JsonValue

_ENCODED = (
    "tools",
    "state_space_definition",
    "constraints_rules",
    "operation_list",
    "env_structure",
    "env_func_details",
)
_EFFECTS = {"query": "query", "state_change": "update"}
_LIKE_ENOUGH = 0.5
"""Share of attributes that an entity and the records of a container must have in common to be the same."""


def skeleton_of(
    value: JsonValue, where: str, *, source: str, position: int = 0, key: str | None = None, listed: bool = False
) -> EnvSkeleton:
    """The environment that a published entry describes.

    Args:
        where: file and place, for messages.
        source: name of the file, kept as the record's origin.
        position: index of the entry in its file; it is exported in that order.
        key: its key, in a file that is an object keyed by id.
        listed: whether the file is a list.

    Raises:
        StoreError: naming the field that is missing or wrong.
    """
    published = entry_of(value, where, _ENCODED)
    skeleton = _read(_named(published, key), where, source)
    released = {"position": position, **kept(published, _rendered(skeleton, whole="env_class_def" not in published))}
    if key is not None and key != str(published.get("env_id")):
        released["key"] = key
    if listed:
        released["listed"] = True
    return skeleton.model_copy(update={"released": released})


def published_environment(skeleton: EnvSkeleton) -> Published:
    """The environment in the authors' format; what an import kept comes back as it was."""

    def agrees(trial: Published) -> bool:
        try:
            again = _read(_named(trial, (skeleton.released or {}).get("key")), skeleton.id, "")
        except StoreError:
            return False
        fields = {"id", "description", "entities", "rules", "tools", "class_name", "source"}
        return again.model_dump(include=fields) == skeleton.model_dump(include=fields)

    fields = (skeleton.released or {}).get("fields") or {}
    return rejoined(_rendered(skeleton, whole="env_class_def" not in fields), skeleton.released, agrees)


def published_key(skeleton: EnvSkeleton, published: Published) -> str:
    """The key of an environment in a file that is an object keyed by id."""
    return str((skeleton.released or {}).get("key") or published["env_id"])


def notes_of(skeleton: EnvSkeleton) -> tuple[str, ...]:
    """What is missing or contradictory in what was published of an environment, one sentence each."""
    fields = (skeleton.released or {}).get("fields") or {}
    notes = []
    operations = fields.get("operation_list")
    if isinstance(operations, list):
        names_of = (part.get("operation_name") for part in operations if isinstance(part, dict))
        known = {name for name in names_of if isinstance(name, str)}
        tools = {tool.name for tool in skeleton.tools}
        notes += [
            f"the tool {tool.name} is not in operation_list: it is taken for one that may change the state"
            for tool in skeleton.tools
            if tool.name not in known
        ]
        notes += [f"the operation {name} has no tool" for name in sorted(known - tools)]
    spaces = fields.get("state_space_definition")
    if isinstance(spaces, list):
        names = {entity.name for entity in skeleton.entities}
        notes += [
            f"no attribute of {skeleton.class_name} holds the published entity {part['entity']!r}"
            for part in spaces
            if isinstance(part, dict) and isinstance(part.get("entity"), str) and part["entity"] not in names
        ]
    return tuple(notes)


def _named(published: Published, key: str | None) -> Published:
    """The entry with an id: that of its key where it has none of its own."""
    return published if key is None or "env_id" in published else {"env_id": key, **published}


# -- reading ------------------------------------------------------------------------------------------------


def _read(published: Published, where: str, source: str) -> EnvSkeleton:
    program = text(published, "env_class_code", where)
    class_name = _class_name(published, program, where)
    return EnvSkeleton(
        id=folder_name(identifier(published, "env_id", where)),
        description=EnvDescription(
            summary=text(published, "environment_summary", where),
            introduction=text(published, "environment_introduction", where),
        ),
        entities=_entities(rows(published, "state_space_definition", where), program, class_name),
        rules=_rules(published.get("constraints_rules"), where),
        tools=_tools(published, where),
        class_name=class_name,
        source=program,
        origin=Origin(source=source),
    )


def _class_name(published: Published, program: str, where: str) -> str:
    if published.get("env_class_name") is not None:
        return text(published, "env_class_name", where)
    try:
        return class_name_of(program)
    except ProgramError as error:
        raise StoreError(f"{where}: field `env_class_name` is missing, and {error}") from error


def _rules(value: JsonValue, where: str) -> tuple[Rule, ...]:
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(rule, str) for rule in value):
        raise StoreError(f"{where}: field `constraints_rules` must be a list of texts")
    return tuple(Rule(text=rule) for rule in value)


def _tools(published: Published, where: str) -> tuple[ToolSpec, ...]:
    if "tools" not in published:
        raise StoreError(f"{where}: field `tools` is missing")
    kinds = {
        str(part.get("operation_name")): part.get("operation_type") for part in rows(published, "operation_list", where)
    }
    tools: dict[str, ToolSpec] = {}
    for index, part in enumerate(rows(published, "tools", where)):
        place = f"{where}, tools[{index}]"
        function = part["function"] if isinstance(part.get("function"), dict) else part
        name = text(function, "name", place)
        parameters = function.get("parameters")
        if parameters is None:
            parameters = {"type": "object", "properties": {}}
        if not isinstance(parameters, dict):
            raise StoreError(f"{place}: field `parameters` holds {kind_of(parameters)}; an object is needed")
        if name in tools:
            raise StoreError(f"{where}: field `tools` has two tools named {name}")
        tools[name] = ToolSpec(
            name=name,
            description=text(function, "description", place) if "description" in function else "",
            parameters=parameters,
            effect="query" if _EFFECTS.get(str(kinds.get(name))) == "query" else "update",
        )
    return tuple(tools.values())


def _entities(spaces: Sequence[Published], program: str, class_name: str) -> tuple[Entity, ...]:
    """The published entities that a container of the program holds, with the types that the program declares.

    Published names are cut off in places (`active_sta`), so that the likest container is taken, each once.
    """
    try:
        declared = [part for part in containers(program, class_name).values() if part.fields]
    except ProgramError:
        declared = []
    pairs = sorted(
        (
            (-_likeness(space, container), index, number)
            for index, space in enumerate(spaces)
            for number, container in enumerate(declared)
        ),
    )
    chosen: dict[int, int] = {}
    for likeness, index, number in pairs:
        if -likeness >= _LIKE_ENOUGH and index not in chosen and number not in chosen.values():
            chosen[index] = number
    return tuple(
        _entity(space, declared[chosen[index]])
        for index, space in enumerate(spaces)
        if index in chosen and isinstance(space.get("entity"), str)
    )


def _entity(space: Published, container: Container) -> Entity:
    description = space.get("description")
    return Entity(
        name=str(space["entity"]),
        description=description if isinstance(description, str) else "",
        attributes=tuple(Attribute(name=field.name, type=field.annotation) for field in container.fields),
        container=container.name,
    )


def _attributes(space: Published) -> list[str]:
    value = space.get("attributes")
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
    return [str(part).strip() for part in parts if str(part).strip()]


def _likeness(space: Published, container: Container) -> float:
    names, fields = _attributes(space), [field.name for field in container.fields]
    shared = sum(any(_alike(name, field) for field in fields) for name in names)
    named = (container.record or "").lower().startswith(str(space.get("entity") or "?").lower())
    return max(shared / max(len(names), len(fields), 1), _LIKE_ENOUGH if named else 0.0)


def _alike(published: str, field: str) -> bool:
    return published == field or (len(published) > 2 and (field.startswith(published) or field.endswith(published)))


# -- writing ------------------------------------------------------------------------------------------------


def _rendered(skeleton: EnvSkeleton, *, whole: bool) -> Published:
    """
    Args:
        whole: also `env_class_def`, which costs some work and is never what the authors published.
    """
    return {
        "env_id": skeleton.id,
        "environment_summary": skeleton.description.summary,
        "environment_introduction": skeleton.description.introduction,
        "state_space_definition": [
            {
                "entity": entity.name,
                "attributes": ", ".join(attribute.name for attribute in entity.attributes),
                "description": entity.description,
            }
            for entity in skeleton.entities
        ],
        "constraints_rules": [rule.text for rule in skeleton.rules],
        "operation_list": [
            {
                "operation_name": tool.name,
                "operation_description": tool.description,
                "operation_type": "query" if tool.effect == "query" else "state_change",
            }
            for tool in skeleton.tools
        ],
        "env_class_name": skeleton.class_name,
        "env_class_code": skeleton.source,
        **({"env_class_def": _class_definition(skeleton)} if whole else {}),
        "tools": [tool.to_openai() for tool in skeleton.tools],
    }


def _class_definition(skeleton: EnvSkeleton) -> str:
    """The program without its tools: imports, record types, the class with its state."""
    definition = skeleton.source
    try:
        for name in methods_of(skeleton.source, skeleton.class_name):
            definition = remove_method(definition, skeleton.class_name, name)
    except ProgramError:
        return skeleton.source
    return re.sub(r"\n{4,}", "\n\n\n", definition)
