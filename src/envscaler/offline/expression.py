"""The expression language of blueprints: a subset of Python's, with one evaluator and one translation to Python.

    book.copies_available > 0 and member.status == "active"
    count(Loan, it.member_id == member.id and it.status == "active") < 3
    total(Payment, it.amount, it.invoice_id == invoice.id)
    exists(Booking, it.room_id == room.id and it.start_date < end_date and start_date < it.end_date)
    add_days(today, 14)

Names are parameters, variables of records, `it` (the record looked at), `now` and `today` (of the state's clock).
`record.field` reads a field, `record.id` the record's id. The evaluator never runs generated code; the checker uses
it to predict what a program should have done, so the two must stay independent of each other.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any

from envscaler.offline.blueprint import Blueprint
from envscaler.state import JsonValue, State

CLOCK = "current_time"
"""State key that holds the environment's time, ISO 8601 to the second."""


@lru_cache(maxsize=20_000)
def parse(text: str) -> ast.expr:
    """The syntax tree of an expression."""
    return ast.parse(text, mode="eval").body


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
    ast.Is: lambda left, right: left is right,
    ast.IsNot: lambda left, right: left is not right,
}


@dataclass
class Scope:
    """What names mean while an expression is evaluated."""

    blueprint: Blueprint
    state: State
    values: dict[str, JsonValue] = field(default_factory=dict)
    """Parameters by name."""
    records: dict[str, tuple[str, dict[str, JsonValue]]] = field(default_factory=dict)
    """Variable → (entity name, record)."""

    def with_it(self, entity: str, record: dict[str, JsonValue]) -> Scope:
        """The same scope, looking at one record: `it`, and by its entity's variable unless that is taken."""
        own = {self.blueprint.entity(entity).variable: (entity, record)}
        return Scope(self.blueprint, self.state, self.values, {**own, **self.records, "it": (entity, record)})

    def rows(self, entity: str) -> list[dict[str, JsonValue]]:
        """All records of an entity, in the order of their container."""
        return list(self.state[self.blueprint.entity(entity).container].values())


def evaluate(text: str, scope: Scope) -> JsonValue:
    """The value of an expression.

    Raises:
        KeyError, TypeError, ValueError: if names or types do not fit; a blueprint's fault.
    """
    return _compiled(text)(scope)


_Reader = Callable[[Scope], Any]
"""An expression made ready: states are made and calls predicted by the thousand, so trees are walked once."""


@lru_cache(maxsize=20_000)
def _compiled(text: str) -> _Reader:
    return _reader(parse(text))


def _reader(node: ast.expr) -> _Reader:
    match node:
        case ast.Constant(value=value):
            return lambda scope: value
        case ast.Name(id="now"):
            return lambda scope: scope.state[CLOCK]
        case ast.Name(id="today"):
            return lambda scope: scope.state[CLOCK][:10]
        case ast.Name(id=name):
            return lambda scope: scope.values[name]
        case ast.Attribute(value=ast.Name(id=name), attr="id"):
            return lambda scope: _id(scope, name)
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return lambda scope: scope.records[name][1][attribute]
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            elements = [_reader(part) for part in parts]
            return lambda scope: [element(scope) for element in elements]
        case ast.BoolOp(op=op, values=parts):
            claims = [_reader(part) for part in parts]
            if isinstance(op, ast.And):
                return lambda scope: all(claim(scope) for claim in claims)
            return lambda scope: any(claim(scope) for claim in claims)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            negated = _reader(operand)
            return lambda scope: not negated(scope)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            number = _reader(operand)
            return lambda scope: -number(scope)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            combine, first, second = _BINARY[type(op)], _reader(left), _reader(right)
            return lambda scope: combine(first(scope), second(scope))
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            return _comparison(left, ops, comparators)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            condition, then, otherwise = _reader(test), _reader(body), _reader(orelse)
            return lambda scope: then(scope) if condition(scope) else otherwise(scope)
        case ast.Call(func=ast.Name(id="count" | "exists" | "total" as name), args=[ast.Name(id=entity), *rest]):
            return _over_rows(name, entity, [_reader(part) for part in rest])
        case ast.Call(func=ast.Name(id=name), args=arguments):
            function, values = FUNCTIONS[name], [_reader(argument) for argument in arguments]
            return lambda scope: function(*(value(scope) for value in values))
    raise ValueError(f"not part of the expression language: {ast.unparse(node)}")


def _id(scope: Scope, name: str) -> JsonValue:
    entity, record = scope.records[name]
    return record[scope.blueprint.entity(entity).key]


def _comparison(left: ast.expr, ops: list[ast.cmpop], comparators: list[ast.expr]) -> _Reader:
    first = _reader(left)
    steps = [(_COMPARE[type(op)], _reader(part)) for op, part in zip(ops, comparators, strict=True)]
    if len(steps) == 1:
        holds, second = steps[0]
        return lambda scope: holds(first(scope), second(scope))

    def chain(scope: Scope) -> bool:
        current = first(scope)
        for compare, following in steps:
            value = following(scope)
            if not compare(current, value):
                return False
            current = value
        return True

    return chain


def _over_rows(name: str, entity: str, readers: list[_Reader]) -> _Reader:
    """`count`, `exists` and `total` over the records of an entity."""
    where = readers[-1] if len(readers) == (2 if name == "total" else 1) else None

    def chosen(scope: Scope) -> Iterator[Scope]:
        variable = scope.blueprint.entity(entity).variable
        inner = Scope(scope.blueprint, scope.state, scope.values, dict(scope.records))
        for row in scope.rows(entity):
            inner.records["it"] = (entity, row)
            if variable not in scope.records:
                inner.records[variable] = (entity, row)
            if where is None or where(inner):
                yield inner

    if name == "count":
        return lambda scope: sum(1 for _ in chosen(scope))
    if name == "exists":
        return lambda scope: any(True for _ in chosen(scope))
    return lambda scope: round(sum(readers[0](inner) for inner in chosen(scope)), 2)


def _add_days(day: str, days: int) -> str:
    return (date.fromisoformat(day[:10]) + timedelta(days=days)).isoformat()


def _days_between(first: str, second: str) -> int:
    return (date.fromisoformat(second[:10]) - date.fromisoformat(first[:10])).days


def _add_hours(moment: str, hours: float) -> str:
    return (datetime.fromisoformat(moment) + timedelta(hours=hours)).isoformat()


FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "add_days": _add_days,
    "add_hours": _add_hours,
    "days_between": _days_between,
    "length": len,
    "lower": lambda text: text.lower(),
    "money": lambda amount: round(amount, 2),
    "least": min,
    "most": max,
}
"""Functions of the language, beside `count`, `exists` and `total` over the records of an entity."""

_PYTHON_NAMES = {"length": "len", "least": "min", "most": "max"}


def to_python(text: str, blueprint: Blueprint, entity_of: Mapping[str, str], *, it: str = "it") -> str:
    """The same expression as Python source inside a method of the environment's class.

    Args:
        entity_of: entity by variable, for the records in scope.
        it: name that the program uses for `it`.
    """
    tree = _Translate(blueprint, dict(entity_of), it).visit(ast.parse(text, mode="eval")).body
    return _tidied(ast.unparse(tree))


def _tidied(source: str) -> str:
    """The source with double quotes, and without the second pair of parentheses that `unparse` puts around the only
    argument of a call when that is a generator."""
    if '"' not in source:
        source = re.sub(r"'([^'\\\\]*)'", r'"\1"', source)
    start = 0
    while (match := re.compile(r"\b(?:sum|any)\(\(").search(source, start)) is not None:
        start = match.end()
        end, depth = start, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(source[end], 0)
            end += 1
        if source[end : end + 1] == ")":
            source = source[: start - 1] + source[start : end - 1] + source[end:]
    return source


class _Translate(ast.NodeTransformer):
    def __init__(self, blueprint: Blueprint, entity_of: dict[str, str], it: str) -> None:
        self.blueprint = blueprint
        self.entity_of = entity_of
        self.it = it

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id == "now":
            return parse(f"self.{CLOCK}")
        if node.id == "today":
            return parse(f"self.{CLOCK}[:10]")
        return ast.Name(id=self.it, ctx=ast.Load()) if node.id == "it" else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if not isinstance(node.value, ast.Name):
            raise ValueError(f"not part of the expression language: {ast.unparse(node)}")
        variable = node.value.id
        name = node.attr
        if name == "id":
            name = self.blueprint.entity(self.entity_of[variable]).key
        return ast.Subscript(
            value=ast.Name(id=self.it if variable == "it" else variable, ctx=ast.Load()),
            slice=ast.Constant(name),
            ctx=ast.Load(),
        )

    def visit_Call(self, node: ast.Call) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in {"count", "exists", "total"}:
            arguments = ", ".join(ast.unparse(self.visit(argument)) for argument in node.args)
            if name == "lower":
                return parse(f"({arguments}).lower()")
            if name == "money":
                return parse(f"round({arguments}, 2)")
            python = _PYTHON_NAMES.get(name, f"self._{name}")
            return parse(f"{python}({arguments})")
        first, *rest = node.args
        entity = self.blueprint.entity(first.id if isinstance(first, ast.Name) else "")
        loop = entity.variable if entity.variable not in self.entity_of else f"other_{entity.variable}"
        inner = _Translate(self.blueprint, {**self.entity_of, "it": entity.name, loop: entity.name}, loop)
        where = rest[-1] if len(rest) == (2 if name == "total" else 1) else None
        rows = f"for {loop} in self.{entity.container}.values()"
        if where is not None:
            condition = ast.unparse(inner.visit(where))
            if name == "exists":
                return parse(f"any({condition} {rows})")
            rows = f"{rows} if {condition}"
        elif name == "exists":
            return parse(f"bool(self.{entity.container})")
        if name == "total":
            return parse(f"round(sum({ast.unparse(inner.visit(rest[0]))} {rows}), 2)")
        return parse(f"sum(1 {rows})")
