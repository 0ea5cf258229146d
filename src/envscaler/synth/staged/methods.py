"""What the writer of one method is told by code: its signature, and line by line what each parameter asks for.

Source: ours. Small models write a method well when they need not find out what belongs together.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence

from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.skeleton import Attribute, Entity, Forbidden, Rule, ToolSpec
from envscaler.synth.staged import parts

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}


def tool_inputs(known: t.WriteMethodInputs) -> s.WriteToolInputs:
    """The question for one method."""
    return s.WriteToolInputs(**dict(known), signature=signature(known.tool), steps=steps(known.tool, known.entities))


def framed(source: str, tool: ToolSpec, entities: Sequence[Entity], rules: Sequence[Rule]) -> str:
    """The method with the signature that was asked for, and with what it has to refuse, whatever its writer made of it.

    Args:
        rules: those that it is to enforce; only those of which it can be read what they forbid are put in.
    """
    lines = source.split("\n")
    node = next(
        one for one in ast.walk(ast.parse(source)) if isinstance(one, ast.FunctionDef) and one.name == tool.name
    )
    told = 1 if ast.get_docstring(node) is not None and len(node.body) > 1 else 0
    docstring = "\n".join(lines[node.body[0].lineno - 1 : node.body[0].end_lineno]) if told else ""
    body = "\n".join(lines[node.body[told].lineno - 1 : node.end_lineno])
    if node.body[told].lineno == node.lineno:
        body = "\n".join(map(ast.unparse, node.body))  # all of it stands behind the signature
    guards = [_guard(rule.forbidden, entities) for rule in rules if tool.name in rule.tools and rule.forbidden]
    written = [part for part in (docstring, *guards, body) if part]
    return "\n".join([signature(tool), *(textwrap.indent(textwrap.dedent(part), "    ") for part in written)]) + "\n"


def _guard(forbidden: Forbidden, entities: Sequence[Entity]) -> str:
    entity = next(one for one in entities if one.name == forbidden.entity)
    records, key = f"self.{entity.container}", str(entity.key)
    said = f"{entity.name} {{{key}}} must not have {forbidden.attribute} {str(forbidden.value).lower()}."
    return (
        f'if {key} in {records} and {records}[{key}]["{forbidden.attribute}"] == {forbidden.value!r}:\n'
        f'    return {{"success": False, "error": f"{said}"}}'
    )


def signature(tool: ToolSpec) -> str:
    """The `def` line of a tool made by `parts.tools`."""
    written = ["self"]
    for name, schema in tool.parameters["properties"].items():
        kind = _TYPES[schema["type"]]
        written.append(f"{name}: {kind}" if "default" not in schema else f"{name}: {kind} | None = None")
    return f"def {tool.name}({', '.join(written)}) -> dict[str, Any]:"


def steps(tool: ToolSpec, entities: Sequence[Entity]) -> tuple[str, ...]:
    """What the method does, in order."""
    by_name = {entity.name: entity for entity in entities}
    entity = by_name[(tool.effects or ())[0].entity]
    attributes = {one.name: one for one in entity.attributes}
    given = [attributes[name] for name in tool.parameters["properties"] if name != entity.key]
    kind = parts.kind_of(tool)
    if kind == "get":
        return (*_looked_up(entity), f"Success: data is copy.deepcopy(self.{entity.container}[{entity.key}]).")
    if kind == "list":
        return _listing(entity, given)
    checks = [line for one in given for line in _checks(one, by_name)]
    if kind == "create":
        return (*checks, *_creating(entity, attributes, given))
    if kind == "change":
        assigned = [f'self.{entity.container}[{entity.key}]["{one.name}"] = {one.name}' for one in given]
        return (*_looked_up(entity), *checks, *assigned, "Success: message says what was changed.")
    return (
        *_looked_up(entity),
        f"del self.{entity.container}[{entity.key}]",
        "Success: message says what was deleted.",
    )


def _looked_up(entity: Entity) -> tuple[str, ...]:
    return (f"{entity.key} is a key of self.{entity.container}; error if it is not there.",)


def _listing(entity: Entity, given: Sequence[Attribute]) -> tuple[str, ...]:
    filters = [
        f'If {one.name} is not None, keep only records with record["{one.name}"] == {one.name}.' for one in given
    ]
    return (
        f"Go through self.{entity.container}.values().",
        *filters,
        "Success: data is the list of copy.deepcopy(record) of those kept, [] when there is none.",
    )


def _checks(attribute: Attribute, by_name: Mapping[str, Entity]) -> list[str]:
    target = by_name.get(attribute.references or "")
    if target is not None:
        return [f"{attribute.name} is a key of self.{target.container}; error if it is not there."]
    if attribute.enum:
        return [f"{attribute.name} is one of {', '.join(map(repr, attribute.enum))}; error if it is not."]
    if attribute.type in ("int", "float"):
        accepted = "int" if attribute.type == "int" else "(int, float)"
        return [f"Error if not isinstance({attribute.name}, {accepted}) or {attribute.name} < 0."]
    if attribute.type == "str":
        return [f"Error if not isinstance({attribute.name}, str) or it is empty."]
    return [f"Error if not isinstance({attribute.name}, bool)."]


def _creating(entity: Entity, attributes: Mapping[str, Attribute], given: Sequence[Attribute]) -> tuple[str, ...]:
    counter = f"self.{parts.counter_of(entity)}"
    values = [f'"{entity.key}": {entity.key}']
    for one in attributes.values():
        if one.name != entity.key:
            values.append(f'"{one.name}": {one.name if one in given else _default(one)}')
    return (
        f'{entity.key} = f"{parts.snake(entity.name)}_{{{counter}}}"',
        f"self.{entity.container}[{entity.key}] = {{{', '.join(values)}}}",
        f"{counter} += 1",
        f'Success: message, and data is {{"{entity.key}": {entity.key}}}.',
    )


def _default(attribute: Attribute) -> str:
    initial = attribute.initial
    assert initial is not None, "a field that has none is given"
    return f"self.{initial.clock}[:10]" if initial.clock else repr(initial.value)
