"""`text_of`: what the text of a check names and compares, read without running it.

It orders and supplies what is tried; nothing is concluded from the text alone. Running checks is the sandbox's
business.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from envscaler.scenario import Check
from envscaler.state import JsonValue

_QUOTED = re.compile(r"[\"“「『]([^\"”」』]{1,80})[\"”」』]|'([^']{1,80})'(?!\w)")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.]*\w)")


@dataclass(frozen=True)
class CheckText:
    """What a check's text says."""

    names: frozenset[str]
    """Every text in the code: keys, ids, fields and values alike."""
    literals: tuple[JsonValue, ...]
    """Values in the code and in the sentence, in their order."""
    wanted: tuple[tuple[str, JsonValue], ...]
    """A field with a value that a comparison in the code asks of it."""


@lru_cache(maxsize=512)
def text_of(check: Check) -> CheckText:
    """The text of a check; a code that does not parse names nothing."""
    try:
        tree = ast.parse(check.source.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return CheckText(frozenset(), tuple(_of_sentence(check.description)), ())
    told = _docstrings(tree)
    literals: dict[str, JsonValue] = {}
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in told:
            value = node.value
            if value is None or isinstance(value, (bool, int, float, str)):
                literals.setdefault(repr(value), value)
            if isinstance(value, (str, int)) and not isinstance(value, bool):
                names.add(str(value))
    for literal in _of_sentence(check.description):
        literals.setdefault(repr(literal), literal)
    return CheckText(frozenset(names), tuple(literals.values()), tuple(_wanted(tree)))


def _docstrings(tree: ast.Module) -> set[int]:
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _of_sentence(sentence: str) -> Iterator[JsonValue]:
    """The values that a sentence gives: what stands in quotes, and numbers."""
    for double, single in _QUOTED.findall(sentence):
        yield double or single
    for number in _NUMBER.findall(sentence):
        yield float(number) if "." in number else int(number)


def _wanted(tree: ast.Module) -> Iterator[tuple[str, JsonValue]]:
    named = _assigned(tree)
    seen: set[str] = set()
    for node in ast.walk(tree):
        for field, value in _of_node(node, named):
            if repr((field, value)) not in seen:
                seen.add(repr((field, value)))
                yield field, value


def _of_node(node: ast.AST, named: dict[str, ast.expr]) -> Iterator[tuple[str, JsonValue]]:
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        yield from _compared(node.left, node.ops[0], node.comparators[0], named)
    for part in _claims(node):
        negated = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not)
        field = _field(part.operand if isinstance(part, ast.UnaryOp) and negated else part, named)
        if field is not None:
            yield field, not negated


def _claims(node: ast.AST) -> list[ast.expr]:
    """Expressions that a statement takes for true or false; a field that stands there alone is asked to be true."""
    if isinstance(node, ast.BoolOp):
        return node.values
    if isinstance(node, ast.Return):
        return [node.value] if node.value is not None else []
    return [node.test] if isinstance(node, (ast.If, ast.IfExp)) else []


def _compared(
    left: ast.expr, operator: ast.cmpop, right: ast.expr, named: dict[str, ast.expr]
) -> Iterator[tuple[str, JsonValue]]:
    field, other, mirrored = _field(left, named), right, False
    if field is None:
        field, other, mirrored = _field(right, named), left, True
    if field is None:
        return
    near = _nearly(left if not mirrored else right)
    values = [near] if near is not None else list(_constants(other))
    for value in values:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if isinstance(operator, ast.NotEq | ast.NotIn | ast.IsNot):
            # `if row["x"] != 3: return False` asks for 3; where it does not, the value is tried in vain.
            yield field, not value if isinstance(value, bool) else value
        elif near is None and number and isinstance(operator, ast.Gt if not mirrored else ast.Lt):
            yield field, value + 1
        elif near is None and number and isinstance(operator, ast.Lt if not mirrored else ast.Gt):
            yield field, value - 1
        else:
            yield field, value


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """What each variable that is assigned once stands for."""
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            found.setdefault(node.targets[0].id, []).append(node.value)
    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _field(node: ast.expr, named: dict[str, ast.expr], depth: int = 0) -> str | None:
    """The field whose value an expression looks at: the last key in `row["x"]`, `str(row.get("x")).strip()` …"""
    if depth > 8:
        return None
    if isinstance(node, ast.Name) and node.id in named:
        return _field(named[node.id], named, depth + 1)
    if isinstance(node, ast.Subscript):
        return _text(node.slice)
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Attribute):
            if function.attr == "get" and node.args:
                return _text(node.args[0])
            # `row["x"].lower()`, not `x.values()` of a container, whose last key is no field.
            return None if function.attr in {"items", "values", "keys"} else _field(function.value, named, depth + 1)
        # `str(row["x"])`, or a function of the check's own that prepares a value; `len` of something is no value of it.
        if isinstance(function, ast.Name) and function.id not in {"len", "any", "all", "sum", "isinstance"}:
            return _field(node.args[0], named, depth + 1) if node.args else None
    if isinstance(node, ast.BinOp):
        return _field(node.left, named, depth + 1) or _field(node.right, named, depth + 1)
    if isinstance(node, ast.BoolOp):
        return _field(node.values[0], named, depth + 1)
    return None


def _nearly(node: ast.expr) -> JsonValue:
    """The number in `abs(row["x"] - 20.0)`, which is compared with a tolerance; None for another expression."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs" and node.args:
        inner = node.args[0]
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            return next(_constants(inner.right), None)
    return None


def _constants(node: ast.expr) -> Iterator[JsonValue]:
    if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, (bool, int, float, str))):
        yield node.value
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        for value in _constants(node.operand):
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                yield -value
    elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        for part in node.elts:
            yield from _constants(part)
    elif isinstance(node, ast.Call):
        yield from _constants(node.func.value) if isinstance(node.func, ast.Attribute) else ()
        yield from (value for part in node.args for value in _constants(part))


def _text(node: ast.expr) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
