"""What a blueprint says to the roles of design: entities, rules, tools, the state class and its methods."""

from __future__ import annotations

import ast
import re
import textwrap
from functools import lru_cache

from envscaler.offline.blueprint import Blueprint, EntityPlan, OperationPlan
from envscaler.offline.expression import CLOCK, parse, to_python
from envscaler.offline.methods import describe_entity, method_source
from envscaler.offline.wording import Wording, wording
from envscaler.offline.writing import field_type, sentence, typed_dict, with_form, wrapped
from envscaler.program import tool_schemas
from envscaler.skeleton import Attribute, Effect, Entity, Rule, ToolSpec

DEFAULT_CLOCK = "2025-01-06T09:00:00"


def entities_of(blueprint: Blueprint) -> tuple[Entity, ...]:
    """E_state: one entity a container, and one for what the system keeps once."""
    said = wording(blueprint.language)
    taken = {entity.name for entity in blueprint.entities}
    system = Entity(
        name="System" if "System" not in taken else "SystemClock",
        description=said.say("system"),
        attributes=(
            Attribute(name=CLOCK, type="str", description=said.say("system_clock")),
            *(
                Attribute(name=entity.counter, type="int", description=said.say("system_counter", noun=entity.noun))
                for entity in blueprint.created
            ),
        ),
    )
    return (*(_entity(entity, said) for entity in blueprint.entities), system)


def _entity(entity: EntityPlan, said: Wording) -> Entity:
    key = Attribute(name=entity.key, type="str", description=sentence(said.say("id_of", noun=entity.noun)))
    fields = tuple(
        Attribute(
            name=field.name,
            type=field_type(field),
            description=sentence(with_form(field.description or field.name.replace("_", " "), field.type, said)),
            references=field.ref,
            enum=field.enum,
        )
        for field in entity.fields
    )
    return Entity(
        name=entity.name,
        description=sentence(entity.description),
        attributes=(key, *fields),
        container=entity.container,
        key=entity.key,
    )


def rules_of(blueprint: Blueprint) -> tuple[Rule, ...]:
    """E_rule: what operations require, each rule once, then what holds in every state."""
    tools: dict[str, list[str]] = {}
    for operation in blueprint.operations:
        for requirement in operation.requires:
            if operation.name not in tools.setdefault(requirement.rule, []):
                tools[requirement.rule].append(operation.name)
    rules = {text: Rule(text=text, tools=tuple(names), enforced=True) for text, names in tools.items()}
    for invariant in blueprint.invariants:
        predicate = _predicate(blueprint, invariant.entity, invariant.holds)
        known = rules.get(invariant.rule)
        rules[invariant.rule] = (
            known.model_copy(update={"predicate": predicate})
            if known is not None
            else Rule(text=invariant.rule, predicate=predicate, enforced=True)
        )
    return tuple(rules.values())


def _predicate(blueprint: Blueprint, entity_name: str, holds: str) -> str | None:
    """The invariant as a Python expression over `state`; None where it needs the program's own functions."""
    entity = blueprint.entity(entity_name)
    source = to_python(holds, blueprint, {"it": entity.name, entity.variable: entity.name}, it=entity.variable)
    if "self._" in source:
        return None
    over_state = re.sub(r"self\.(\w+)", r"state['\1']", source)
    return ast.unparse(parse(f"all(({over_state}) for {entity.variable} in state['{entity.container}'].values())"))


def tools_of(blueprint: Blueprint) -> tuple[ToolSpec, ...]:
    """Σ_tool, with the schemas that follow from the methods' signatures."""
    source = program_of(blueprint)
    schemas = tool_schemas(source, blueprint.class_name)
    return tuple(
        ToolSpec(
            name=operation.name,
            description=sentence(operation.description),
            parameters=schemas[operation.name],
            effect=operation.effect,
            effects=_effects(blueprint, operation),
        )
        for operation in blueprint.operations
    )


def _effects(blueprint: Blueprint, operation: OperationPlan) -> tuple[Effect, ...]:
    effects: list[Effect] = []
    variables = {param.name: param.ref for param in operation.params if param.ref is not None}
    if operation.query is not None:
        read = operation.query.entity or next(iter(variables.values()), None)
        return (Effect(kind="read", entity=read),) if read is not None else ()
    for effect in operation.effects:
        if effect.create is not None:
            effects.append(Effect(kind="create", entity=effect.create))
            variables[effect.var or blueprint.entity(effect.create).variable] = effect.create
        elif effect.delete is not None:
            effects.append(Effect(kind="delete", entity=variables[effect.delete]))
        else:
            entity = effect.each or variables[effect.change or ""]
            effects.append(Effect(kind="update", entity=entity, attributes=tuple(effect.values)))
    return tuple(effects)


@lru_cache(maxsize=64)
def program_of(blueprint: Blueprint) -> str:
    """The class with all its methods, as one text (used for schemas; the pipeline assembles its own)."""
    methods = "\n".join(
        textwrap.indent(method_source(blueprint, operation), "    ") for operation in blueprint.operations
    )
    return f"{class_source(blueprint)}\n{methods}"


_HELPERS = {
    "_is_date": '''
def _is_date(self, text: str) -> bool:
    """<<what>>"""
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
''',
    "_is_time": '''
def _is_time(self, text: str) -> bool:
    """<<what>>"""
    try:
        return datetime.strptime(text, "%H:%M").strftime("%H:%M") == text
    except ValueError:
        return False
''',
    "_is_datetime": '''
def _is_datetime(self, text: str) -> bool:
    """<<what>>"""
    try:
        return datetime.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
''',
    "_add_days": '''
def _add_days(self, day: str, days: int) -> str:
    """<<what>>"""
    return (date.fromisoformat(day[:10]) + timedelta(days=days)).isoformat()
''',
    "_add_hours": '''
def _add_hours(self, moment: str, hours: float) -> str:
    """<<what>>"""
    return (datetime.fromisoformat(moment) + timedelta(hours=hours)).isoformat()
''',
    "_days_between": '''
def _days_between(self, first: str, second: str) -> int:
    """<<what>>"""
    return (date.fromisoformat(second[:10]) - date.fromisoformat(first[:10])).days
''',
}


@lru_cache(maxsize=64)
def class_source(blueprint: Blueprint) -> str:
    """The state class: TypedDicts, `__init__`, private functions that the methods use."""
    methods = [method_source(blueprint, operation) for operation in blueprint.operations]
    text = "\n".join(methods)
    said = wording(blueprint.language)
    helpers = [
        source.replace("<<what>>", said.say(name.removeprefix("_")))
        for name, source in _HELPERS.items()
        if f"self.{name}(" in text
    ]
    init = [
        "def __init__(self, init_config: dict) -> None:",
        "    state = copy.deepcopy(init_config)",
        *(
            f'    self.{entity.container}: dict[str, {typed_dict(entity)}] = state.get("{entity.container}", {{}})'
            for entity in blueprint.entities
        ),
        *(f'    self.{entity.counter}: int = state.get("{entity.counter}", 1)' for entity in blueprint.created),
        f'    self.{CLOCK}: str = state.get("{CLOCK}", "{DEFAULT_CLOCK}")',
    ]
    body = "\n".join([*init, *helpers])
    rules = "\n".join(f"    - {rule.text}" for rule in rules_of(blueprint))
    introduction = "\n".join(f"    {line}" for line in wrapped(blueprint.introduction))
    parts = [
        _imports(text + body),
        *(_typed_dict(entity, said) for entity in blueprint.entities),
        f'class {blueprint.class_name}:\n    """{sentence(blueprint.summary)}\n\n{introduction}\n\n'
        f'    Rules:\n{rules}\n    """\n\n{textwrap.indent(body, "    ")}',
    ]
    return "\n\n".join(parts)


def _imports(text: str) -> str:
    moments = [name for name in ("date", "datetime", "timedelta") if re.search(rf"\b{name}[.(]", text)]
    typing = ["Literal"] if "Literal[" in text else []
    lines = ["import copy"]
    if moments:
        lines.append(f"from datetime import {', '.join(moments)}")
    lines.append(f"from typing import {', '.join([*typing, 'TypedDict'])}")
    return "\n".join(lines) + "\n"


def _typed_dict(entity: EntityPlan, said: Wording) -> str:
    fields = [f"    {entity.key}: str"]
    for field in entity.fields:
        comment = field.description
        if field.enum is not None:
            values = said.phrases["comma"][0].join(field.enum)
            comment = said.say("enum_of", text=comment, values=values) if comment else values
        comment = with_form(comment, field.type, said).strip()
        fields.append(f"    {field.name}: {field_type(field)}" + (f"  # {comment}" if comment else ""))
    described = describe_entity(entity, said)
    return f'class {typed_dict(entity)}(TypedDict):\n    """{described}"""\n\n' + "\n".join(fields) + "\n"
