"""`staged_design`: a plan by three small questions: which records, which fields and rules, which tools.

Source: ours; the paper (3.2, logic planning) asks for state and tools whole.
"""

from __future__ import annotations

from envscaler.roles import role as roles
from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.skeleton import Entity, EnvDescription
from envscaler.synth.asking import Asking
from envscaler.synth.design import Design, state_doubt, tools_doubt
from envscaler.synth.staged import parts, schemas

_LEAST_TOOLS = 5


async def staged_design(
    description: EnvDescription, seed_tasks: tuple[str, ...], language: str, asking: Asking
) -> Design:
    """Plan an environment step by step.

    Raises:
        ReplyError: if a step stays unusable.
    """
    start = t.PlanStateInputs(description=description, seed_tasks=seed_tasks[:1], language=language)
    answered = await asking(roles.NAME_ENTITIES, start, doubt=_names_doubt, schema=schemas.name_entities())
    named = parts.named(answered)
    described = await asking(
        roles.DESCRIBE_ENTITIES,
        s.DescribeEntitiesInputs(**dict(start), named=named),
        doubt=lambda reply: _fields_doubt(named, reply),
        schema=schemas.describe_entities(named),
    )
    entities = parts.entities(named, described)
    listed = await asking(
        roles.LIST_TOOLS,
        s.ListToolsInputs(**dict(start), entities=entities),
        doubt=lambda reply: _tools_doubt(reply, entities),
        schema=schemas.list_tools(entities),
    )
    tools, rules = parts.tools(listed, entities, language)
    return Design(
        description=description,
        seed_tasks=seed_tasks,
        language=language,
        entities=entities,
        rules=rules,
        tools=tools,
    )


def _names_doubt(reply: s.NameEntitiesReply) -> str | None:
    usable = parts.named(reply)
    return None if len(usable) > 1 else f"only {len(usable)} different entities can be used; name at least two"


def _fields_doubt(named: tuple[s.NamedEntity, ...], reply: s.DescribeEntitiesReply) -> str | None:
    made = parts.entities(named, reply)
    bare = [entity.name for entity in parts.records(made) if len(entity.attributes) < 2]
    if bare:
        return f"{', '.join(bare)}: no field beside the id that can be used"
    return state_doubt(t.PlanStateReply(entities=made))


def _tools_doubt(reply: s.ListToolsReply, entities: tuple[Entity, ...]) -> str | None:
    made, _ = parts.tools(reply, entities, "en")
    if len(made) < _LEAST_TOOLS:
        return f"only {len(made)} different operations can be used; list at least {_LEAST_TOOLS}"
    return tools_doubt(t.PlanToolsReply(tools=made), entities)
