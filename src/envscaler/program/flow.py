"""Whether a function returns a value on every path, read from its syntax tree.

Conditions are not evaluated, except that `while True` without a `break` never falls through.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from envscaler.program.state_class import FunctionNode


def falls_through(function: FunctionNode) -> bool:
    """Whether some path reaches the end of the function without `return` or `raise`."""
    return not _ends(function.body)


def bare_returns(function: FunctionNode) -> list[int]:
    """Lines of the function's own `return` statements that give no value or None."""
    lines = []
    for node in own_nodes(function):
        if isinstance(node, ast.Return):
            value = node.value
            if value is None or (isinstance(value, ast.Constant) and value.value is None):
                lines.append(node.lineno)
    return lines


def is_generator(function: FunctionNode) -> bool:
    """Whether calling the function gives a generator instead of a result."""
    return any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own_nodes(function))


def own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of functions and classes inside it."""
    stack: list[ast.AST] = list(reversed(function.body))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(reversed(list(ast.iter_child_nodes(node))))


def _ends(body: Sequence[ast.stmt]) -> bool:
    return any(map(_statement_ends, body))


def _statement_ends(node: ast.stmt) -> bool:
    if isinstance(node, (ast.Return, ast.Raise)):
        return True
    if isinstance(node, ast.If):
        return _ends(node.body) and _ends(node.orelse)
    if isinstance(node, (ast.With, ast.AsyncWith)):
        return _ends(node.body)
    if isinstance(node, (ast.Try, ast.TryStar)):
        if _ends(node.finalbody):
            return True
        return (_ends(node.body) or _ends(node.orelse)) and all(_ends(handler.body) for handler in node.handlers)
    if isinstance(node, ast.While):
        endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
        return not _breaks(node.body) and (endless or _ends(node.orelse))
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return not _breaks(node.body) and _ends(node.orelse)
    if isinstance(node, ast.Match):
        last = node.cases[-1]
        # A pattern without a `case _` lets an unforeseen value through.
        catches_all = last.guard is None and isinstance(last.pattern, ast.MatchAs) and last.pattern.pattern is None
        return catches_all and all(_ends(case.body) for case in node.cases)
    return False


def _breaks(body: Sequence[ast.stmt]) -> bool:
    """Whether the loop's own body leaves it with `break`."""
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, ast.Break):
            return True
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            # A `break` in the `else` of an inner loop still belongs to this one.
            stack.extend(node.orelse)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            stack.extend(ast.iter_child_nodes(node))
    return False
