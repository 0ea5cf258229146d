"""From a description to its state, rules and tools: the plan that the program is written from.

Whether the plan can be programmed shows when it is; here only its own consistency is judged.

Source: paper 3.2, logic planning.
"""

from __future__ import annotations

import ast
import keyword
from collections import Counter
from collections.abc import Iterable

from envscaler.record import Record
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.skeleton import Entity, EnvDescription, Rule, ToolSpec
from envscaler.synth.asking import Asking


class Design(Record):
    """An environment before it has a program."""

    description: EnvDescription
    seed_tasks: tuple[str, ...]
    language: str
    entities: tuple[Entity, ...]
    rules: tuple[Rule, ...]
    tools: tuple[ToolSpec, ...]


async def design(description: EnvDescription, seed_tasks: tuple[str, ...], language: str, asking: Asking) -> Design:
    """Plan state and rules, then the tools.

    Raises:
        ReplyError: if a plan stays unusable.
    """
    start = t.PlanStateInputs(description=description, seed_tasks=seed_tasks, language=language)
    state = await asking(roles.PLAN_STATE, start, doubt=state_doubt)
    planned = await asking(
        roles.PLAN_TOOLS,
        t.PlanToolsInputs(
            description=description,
            seed_tasks=seed_tasks,
            language=language,
            entities=state.entities,
            rules=state.rules,
        ),
        doubt=lambda reply: tools_doubt(reply, state.entities),
    )
    return Design(
        description=description,
        seed_tasks=seed_tasks,
        language=language,
        entities=state.entities,
        rules=rules_for(state.rules, planned.tools),
        tools=planned.tools,
    )


def rules_for(rules: Iterable[Rule], tools: Iterable[ToolSpec]) -> tuple[Rule, ...]:
    """The rules, each naming only tools that exist."""
    names = {tool.name for tool in tools}
    return tuple(
        rule.model_copy(update={"tools": tuple(name for name in rule.tools if name in names)}) for rule in rules
    )


def rules_left(rules: Iterable[Rule], tools: Iterable[ToolSpec]) -> tuple[Rule, ...]:
    """The rules after tools were dropped: what is said of these alone, and holds of no state, is gone with them."""
    rules = tuple(rules)
    return tuple(
        left
        for rule, left in zip(rules, rules_for(rules, tools), strict=True)
        if left.tools or not rule.tools or rule.predicate is not None
    )


def state_doubt(reply: t.PlanStateReply) -> str | None:
    """What is wrong with a plan of the state, or None."""
    faults: list[str] = []
    names = [entity.name for entity in reply.entities]
    lasting = {entity.name for entity in reply.entities if entity.container is not None}
    if not lasting:
        faults.append("no entity has a container; each kind of thing of which there are many needs one")
    faults += [f"two entities are named {name}" for name in _twice(names)]
    keys: list[str] = []
    for entity in reply.entities:
        where = f"entity {entity.name}"
        attributes = [attribute.name for attribute in entity.attributes]
        faults += [f"{where}: {name!r} is no usable name" for name in (entity.name, *attributes) if not _usable(name)]
        faults += [f"{where}: two attributes are named {name}" for name in _twice(attributes)]
        if not attributes:
            faults.append(f"{where} has no attributes")
        if entity.container is None:
            keys += attributes
        else:
            keys.append(entity.container)
            if not _usable(entity.container):
                faults.append(f"{where}: container {entity.container!r} is no usable name")
        if entity.key is not None and entity.key not in attributes:
            faults.append(f"{where}: its key {entity.key!r} is none of its attributes")
        for attribute in entity.attributes:
            if attribute.references is not None and attribute.references not in names:
                faults.append(f"{where}: {attribute.name} references {attribute.references!r}, which is no entity")
            elif attribute.references is not None and lasting and attribute.references not in lasting:
                faults.append(f"{where}: {attribute.name} references {attribute.references}, which has no container")
            if not _is_expression(attribute.type):
                faults.append(f"{where}: {attribute.type!r} of {attribute.name} is no Python annotation")
    faults += [f"the state key {key!r} is used twice" for key in _twice(keys)]
    faults += [
        f"the predicate of the rule {rule.text!r} is no Python expression"
        for rule in reply.rules
        if rule.predicate is not None and not _is_expression(rule.predicate)
    ]
    return _first(faults)


def tools_doubt(reply: t.PlanToolsReply, entities: Iterable[Entity]) -> str | None:
    """What is wrong with a plan of the tools, or None."""
    entities = tuple(entities)
    faults = [f"two tools are named {name}" for name in _twice([tool.name for tool in reply.tools])]
    known = {entity.name for entity in entities}
    # An attribute of the instance would hide a method of the same name.
    state_keys = {entity.container for entity in entities if entity.container is not None}
    state_keys |= {attribute.name for entity in entities if entity.container is None for attribute in entity.attributes}
    for tool in reply.tools:
        if not _usable(tool.name) or tool.name.startswith("_"):
            faults.append(f"{tool.name!r} is no usable name for a tool")
        if tool.name in state_keys:
            faults.append(f"the tool {tool.name} has the name of a state key")
        faults += [f"tool {tool.name}: {fault}" for fault in _parameters_faults(tool)]
        for effect in tool.effects or ():
            if effect.entity not in known:
                faults.append(f"tool {tool.name}: its effects name {effect.entity!r}, which is no entity")
            elif tool.effect == "query" and effect.kind != "read":
                faults.append(f"tool {tool.name} is a query and yet has an effect of kind {effect.kind}")
    for effect_kind in ("query", "update"):
        if all(tool.effect != effect_kind for tool in reply.tools):
            faults.append(f"there is no {effect_kind} tool; an environment needs at least one")
    return _first(faults)


def _parameters_faults(tool: ToolSpec) -> list[str]:
    schema = tool.parameters
    properties = schema.get("properties", {})
    if schema.get("type", "object") != "object" or not isinstance(properties, dict):
        return ["parameters is no JSON Schema of type object"]
    faults = [f"{name!r} is no usable parameter name" for name in properties if not _usable(name)]
    faults += [f"the schema of {name} is no object" for name, part in properties.items() if not isinstance(part, dict)]
    required = schema.get("required", [])
    if not isinstance(required, list):
        return [*faults, "required is no list"]
    return faults + [f"required names {name!r}, which is no parameter" for name in required if name not in properties]


def _usable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name != "self"


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


def _twice(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _first(faults: list[str], limit: int = 8) -> str | None:
    if not faults:
        return None
    more = f"; and {len(faults) - limit} more faults" if len(faults) > limit else ""
    return "; ".join(faults[:limit]) + more
