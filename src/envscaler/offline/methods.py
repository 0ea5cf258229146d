"""Writes each operation of a blueprint as a method: guards first, every rule before the first write, then effects.

What it writes looks like a careful engineer's work: typed, documented, error results instead of exceptions, ids and
time stamps from the state.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from envscaler.offline.blueprint import Blueprint, EffectPlan, EntityPlan, OperationPlan, ParamPlan
from envscaler.offline.expression import parse, to_python
from envscaler.offline.interpret import MOMENTS, tool_parameter
from envscaler.offline.wording import Wording, wording
from envscaler.offline.writing import (
    failure,
    indented,
    message,
    python_type,
    quoted,
    sentence,
    typed_dict,
    with_form,
)


@dataclass
class _Scope:
    """What is known while one method is written."""

    blueprint: Blueprint
    operation: OperationPlan
    entity_of: dict[str, str] = field(default_factory=dict)
    """Entity by variable."""

    def looking_at(self, entity: EntityPlan, name: str) -> _Scope:
        """The same scope inside a loop over the records of an entity, each of which is called `name`."""
        return _Scope(self.blueprint, self.operation, {**self.entity_of, "it": entity.name, name: entity.name})

    def python(self, text: str, it: str = "it") -> str:
        return to_python(text, self.blueprint, self.entity_of, it=it)

    def message(self, template: str) -> str:
        return message(template, self.blueprint, self.entity_of)


def method_source(blueprint: Blueprint, operation: OperationPlan) -> str:
    """Source of the operation's method, without the class around it."""
    scope = _Scope(blueprint, operation)
    body: list[str] = []
    for param in operation.params:
        body += _guard(scope, param)
    for requirement in operation.requires:
        body += _unless(scope.python(requirement.when), scope.message(requirement.error))
    body += _query(scope) if operation.query is not None else _update(scope)
    # Required parameters come first, as Python wants it.
    params = sorted(operation.params, key=lambda param: param.optional)
    signature = ", ".join(["self", *(_parameter(blueprint, param) for param in params)])
    head = [f"def {operation.name}({signature}) -> dict:"]
    if len(head[0]) > _WIDTH:
        listed = ["self", *(_parameter(blueprint, param) for param in params)]
        head = [f"def {operation.name}(", *(f"    {declared}," for declared in listed), ") -> dict:"]
    lines = [
        *head,
        *indented([*_docstring(scope, params), *body], 1),
    ]
    return "\n".join(lines) + "\n"


_WIDTH = 100
"""Columns of a signature before each parameter gets a line of its own."""


def _parameter(blueprint: Blueprint, param: ParamPlan) -> str:
    declared = f"{tool_parameter(blueprint, param)}: {python_type(param)}"
    return f"{declared} = {quoted(param.default)}" if param.optional else declared


def describe_parameter(blueprint: Blueprint, param: ParamPlan) -> str:
    """The sentence that the docstring and the schema give for a parameter."""
    said = wording(blueprint.language)
    if param.ref is not None:
        noun = blueprint.entity(param.ref).noun
        text = param.description or said.say("id_of", noun=noun)
        return sentence(said.say("any_left_out", text=text, noun=noun) if param.optional else text)
    text = with_form(param.description or param.name.replace("_", " "), param.type, said)
    if param.minimum is not None and param.maximum is not None:
        text += said.say("from_to", low=param.minimum, high=param.maximum)
    elif param.minimum is not None:
        text += said.say("at_least", low=param.minimum)
    elif param.maximum is not None:
        text += said.say("at_most", high=param.maximum)
    if param.optional:
        text += (
            said.say("left_out_any") if param.default is None else said.say("left_out_default", default=param.default)
        )
    return sentence(text)


def _docstring(scope: _Scope, params: list[ParamPlan]) -> list[str]:
    operation = scope.operation
    lines = [f'"""{sentence(operation.description)}', ""]
    if params:
        lines.append("Args:")
        for param in params:
            name = tool_parameter(scope.blueprint, param)
            lines.append(f"    {name} ({python_type(param)}): {describe_parameter(scope.blueprint, param)}")
        lines.append("")
    lines += ["Returns:", f"    dict: {_returned(scope)}", '        or {"success": False, "error": str}.']
    rules = list(dict.fromkeys(requirement.rule for requirement in operation.requires))
    if rules:
        lines += ["", "Rules:", *(f"    - {rule}" for rule in rules)]
    return [*lines, '"""']


def _returned(scope: _Scope) -> str:
    operation = scope.operation
    query = operation.query
    if query is None:
        if operation.returns is None:
            return '{"success": True, "message": str}'
        return f'{{"success": True, "message": str, "data": {_returned_type(scope)}}}'
    if query.kind == "value":
        return f'{{"success": True, "data": {wording(scope.blueprint.language).say("the_value")}}}'
    if query.kind == "get":
        return f'{{"success": True, "data": {typed_dict(scope.blueprint.entity(operation.params[0].ref or ""))}}}'
    return f'{{"success": True, "data": list[{typed_dict(scope.blueprint.entity(query.entity or ""))}]}}'


def _returned_type(scope: _Scope) -> str:
    operation = scope.operation
    for effect in operation.effects:
        if effect.create is not None:
            entity = scope.blueprint.entity(effect.create)
            if (effect.var or entity.variable) == operation.returns:
                return typed_dict(entity)
    param = operation.param(operation.returns or "")
    return typed_dict(scope.blueprint.entity(param.ref)) if param is not None and param.ref else "dict"


# -- guards -------------------------------------------------------------------------------------------------


def _unless(condition: str, error: str) -> list[str]:
    tree = parse(condition)
    negated: ast.expr = ast.UnaryOp(op=ast.Not(), operand=tree)
    if isinstance(tree, ast.UnaryOp) and isinstance(tree.op, ast.Not):
        negated = tree.operand
    elif isinstance(tree, ast.Compare) and len(tree.ops) == 1 and type(tree.ops[0]) in _OPPOSITE:
        negated = ast.Compare(left=tree.left, ops=[_OPPOSITE[type(tree.ops[0])]()], comparators=tree.comparators)
    return [f"if {ast.unparse(negated)}:", f"    {failure(error)}"]


_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.GtE,
    ast.LtE: ast.Gt,
    ast.Gt: ast.LtE,
    ast.GtE: ast.Lt,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


def _guard(scope: _Scope, param: ParamPlan) -> list[str]:
    name = tool_parameter(scope.blueprint, param)
    if param.ref is not None:
        entity = scope.blueprint.entity(param.ref)
        phrase = wording(scope.blueprint.language).phrases["unknown_record"][0]
        text = phrase.replace("{noun}", entity.noun.capitalize()).replace("{key", f"{{{name}")
        error = failure(f'f"{text}"')
        if param.optional:
            known = f"isinstance({name}, str) and {name} in self.{entity.container}"
            return [f"if {name} is not None and not ({known}):", f"    {error}"]
        scope.entity_of[param.name] = entity.name
        found = f"self.{entity.container}.get({name}) if isinstance({name}, str) else None"
        return [f"{param.name} = {found}", f"if {param.name} is None:", f"    {error}"]
    lines: list[str] = []
    for condition, text in _value_guards(param, name, wording(scope.blueprint.language)):
        lines += [f"if {condition}:", f"    {failure(quoted(text))}"]
    if param.optional and param.default is None and lines:
        return [f"if {name} is not None:", *indented(lines, 1)]
    return lines


def _value_guards(param: ParamPlan, name: str, said: Wording) -> list[tuple[str, str]]:
    """Conditions under which a value is refused, and what is said then; the same as `interpret.value_fault`."""
    guards: list[tuple[str, str]] = []
    if param.type == "bool":
        return [(f"not isinstance({name}, bool)", said.say("must_be_bool", name=name))]
    if param.type in {"int", "float"}:
        kinds = "int" if param.type == "int" else "(int, float)"
        wrong = f"not isinstance({name}, {kinds}) or isinstance({name}, bool)"
        guards.append((wrong, said.say(f"must_be_{param.type}", name=name)))
        if param.minimum is not None:
            low = said.say("must_be_at_least", name=name, low=param.minimum)
            guards.append((f"{name} < {param.minimum:g}", low))
        if param.maximum is not None:
            high = said.say("must_be_at_most", name=name, high=param.maximum)
            guards.append((f"{name} > {param.maximum:g}", high))
        return guards
    if param.type == "list[str]":
        good = f"isinstance({name}, list) and all(isinstance(part, str) for part in {name})"
        return [(f"not ({good})", said.say("must_be_texts", name=name))]
    guards.append((f"not isinstance({name}, str) or not {name}.strip()", said.say("must_be_text", name=name)))
    if param.enum is not None:
        values = said.phrases["comma"][0].join(param.enum)
        guards.append((f"{name} not in {quoted(param.enum)}", said.say("must_be_one_of", name=name, values=values)))
    if param.type in MOMENTS:
        form = said.say("must_have_form", name=name, form=MOMENTS[param.type])
        guards.append((f"not self._is_{param.type}({name})", form))
    return guards


# -- queries ------------------------------------------------------------------------------------------------


def _copied(entity: EntityPlan, record: str) -> str:
    return f"copy.deepcopy({record})" if any(f.type == "list[str]" for f in entity.fields) else f"dict({record})"


def _query(scope: _Scope) -> list[str]:
    query = scope.operation.query
    assert query is not None
    if query.kind == "value":
        return [f'return {{"success": True, "data": {scope.python(query.value or "None")}}}']
    if query.kind == "get":
        variable, entity_name = next(iter(scope.entity_of.items()))
        entity = scope.blueprint.entity(entity_name)
        return [f'return {{"success": True, "data": {_copied(entity, variable)}}}']
    entity = scope.blueprint.entity(query.entity or "")
    one = entity.variable if entity.variable not in scope.entity_of else f"one_{entity.variable}"
    many = entity.container if entity.container != one else f"all_{one}"
    if query.kind == "find":
        name = query.field or ""
        return [
            f"wanted = {name}.strip().lower()",
            f'{many} = [{one} for {one} in self.{entity.container}.values() if wanted in {one}["{name}"].lower()]',
            f'return {{"success": True, "data": [{_copied(entity, one)} for {one} in {many}]}}',
        ]
    lines = [f"{many} = list(self.{entity.container}.values())"]
    for param in scope.operation.params:
        name = tool_parameter(scope.blueprint, param)
        if entity.field(name) is None:
            continue
        kept = f'{many} = [{one} for {one} in {many} if {one}["{name}"] == {name}]'
        lines += [f"if {name} is not None:", f"    {kept}"] if param.optional and param.default is None else [kept]
    if query.where is not None:
        condition = scope.looking_at(entity, one).python(query.where, it=one)
        lines.append(f"{many} = [{one} for {one} in {many} if {condition}]")
    if query.sort is not None:
        lines.append(f'{many}.sort(key=lambda {one}: {one}["{query.sort}"], reverse={query.descending})')
    copies = f"[{_copied(entity, one)} for {one} in {many}]"
    return [*lines, f'return {{"success": True, "data": {copies}}}']


# -- effects ------------------------------------------------------------------------------------------------


def _update(scope: _Scope) -> list[str]:
    """Effects, each value as of before the first write: what a write would disturb is computed ahead."""
    ahead: list[str] = []
    writes: list[str] = []
    written: set[str] = set()
    for index, effect in enumerate(scope.operation.effects):
        lines = _effect(scope, effect, written, ahead)
        if effect.when is not None:
            condition = scope.python(effect.when)
            if written:
                ahead.append(f"applies_{index} = {condition}")
                condition = f"applies_{index}"
            lines = [f"if {condition}:", *indented(lines, 1)]
        writes += lines
        written |= _writes(scope, effect)
    returned = '"success": True, "message": ' + scope.message(scope.operation.message)
    if scope.operation.returns is not None:
        entity = scope.blueprint.entity(scope.entity_of[scope.operation.returns])
        returned += f', "data": {_copied(entity, scope.operation.returns)}'
    return [*ahead, *writes, f"return {{{returned}}}"]


def _writes(scope: _Scope, effect: EffectPlan) -> set[str]:
    """Names whose reading a write disturbs: fields, and entities whose records are counted."""
    entity = effect.create or effect.each or scope.entity_of[effect.change or effect.delete or ""]
    return {entity, *(effect.values if effect.create is None else ())}


def _disturbed(text: str, written: set[str]) -> bool:
    names = {node.attr for node in ast.walk(parse(text)) if isinstance(node, ast.Attribute) and node.attr != "id"}
    names |= {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return bool(names & written)


def _effect(scope: _Scope, effect: EffectPlan, written: set[str], ahead: list[str]) -> list[str]:
    if effect.each is not None:
        entity = scope.blueprint.entity(effect.each)
        one = entity.variable if entity.variable not in scope.entity_of else f"each_{entity.variable}"
        inner = scope.looking_at(entity, one)
        lines = [f'{one}["{name}"] = {inner.python(text, it=one)}' for name, text in effect.values.items()]
        if effect.where is not None:
            lines = [f"if {inner.python(effect.where, it=one)}:", *indented(lines, 1)]
        return [f"for {one} in self.{entity.container}.values():", *indented(lines, 1)]
    if effect.delete is not None:
        entity = scope.blueprint.entity(scope.entity_of[effect.delete])
        return [f'del self.{entity.container}[{effect.delete}["{entity.key}"]]']
    values: dict[str, str] = {}
    own: set[str] = set()
    for name, text in effect.values.items():
        values[name] = scope.python(text)
        if _disturbed(text, written | own):
            ahead.append(f"new_{name} = {values[name]}")
            values[name] = f"new_{name}"
        if effect.change is not None:
            own.add(name)
    if effect.change is not None:
        return [f'{effect.change}["{name}"] = {value}' for name, value in values.items()]
    return _create(scope, effect, values)


def _create(scope: _Scope, effect: EffectPlan, values: dict[str, str]) -> list[str]:
    entity = scope.blueprint.entity(effect.create or "")
    variable = effect.var or entity.variable
    key = f"{variable}_id"
    lines = [
        f'{key} = f"{entity.prefix}-{{self.{entity.counter}:04d}}"',
        f"self.{entity.counter} += 1",
        f"{variable}: {typed_dict(entity)} = {{",
        f'    "{entity.key}": {key},',
        *(f'    "{f.name}": {values.get(f.name, quoted(f.make.value))},' for f in entity.fields),
        "}",
        f"self.{entity.container}[{key}] = {variable}",
    ]
    scope.entity_of[variable] = entity.name
    return lines


def describe_entity(entity: EntityPlan, said: Wording) -> str:
    """A sentence about an entity, for docstrings."""
    return sentence(entity.description or said.say("one_record", noun=entity.noun))
