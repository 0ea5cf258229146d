"""`early_writes`: methods that write to the state and can still refuse the call afterwards.

A refusal then leaves half of a change behind. Only what is certain is told: a write that every call makes, followed by
a test that returns a failure and takes nothing back. What a call really leaves behind is the oracles' business.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from envscaler.program.expressions import MUTATORS


def early_writes(source: str, class_name: str) -> dict[str, str]:
    """A sentence for each method that writes too early, by name; empty where the text does not parse."""
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    classes = (node for node in module.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    methods = (node for one in classes for node in one.body if isinstance(node, ast.FunctionDef))
    return {method.name: told for method in methods if (told := _told(method)) is not None}


def _told(method: ast.FunctionDef) -> str | None:
    rooted = {"self"}
    """Names of what is a part of the state."""
    written: ast.stmt | None = None
    for statement in method.body:
        if written is not None and _refuses(statement, rooted):
            return (
                f"{method.name} writes (line {written.lineno - method.lineno + 1} of its method) before a test "
                f"(line {statement.lineno - method.lineno + 1}) that can still refuse the call"
            )
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    (rooted.add if _is_part(statement.value, rooted) else rooted.discard)(target.id)
        if written is None and not isinstance(statement, ast.If | ast.For | ast.While | ast.Try | ast.With):
            written = statement if _writes(statement, rooted) else None
    return None


def _writes(statement: ast.stmt, rooted: set[str]) -> bool:
    """Whether a statement changes the state."""
    targets: Iterable[ast.expr] = ()
    if isinstance(statement, ast.Assign | ast.Delete):
        targets = statement.targets
    elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
        targets = [statement.target]
    if any(isinstance(target, ast.Attribute | ast.Subscript) and _root(target) in rooted for target in targets):
        return True
    calls = (node for node in ast.walk(statement) if isinstance(node, ast.Call))
    return any(
        isinstance(call.func, ast.Attribute)
        and call.func.attr in MUTATORS
        # `setdefault` often only makes sure that there is a container.
        and call.func.attr != "setdefault"
        and isinstance(call.func.value, ast.Attribute | ast.Subscript | ast.Name)
        and _root(call.func.value) in rooted
        and not (isinstance(call.func.value, ast.Name) and call.func.value.id == "self")
        for call in calls
    )


def _refuses(statement: ast.stmt, rooted: set[str]) -> bool:
    """Whether a statement is a test that ends the call with a failure and takes nothing back."""
    if not isinstance(statement, ast.If):
        return False
    return any(
        _is_failure(last) and not any(_writes(one, rooted) for one in body[:-1]) for body, last in _ends(statement)
    )


def _ends(statement: ast.If) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    for body in (statement.body, statement.orelse):
        if body:
            yield body, body[-1]


def _is_failure(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Dict):
        return False
    pairs = zip(statement.value.keys, statement.value.values, strict=True)
    return any(
        isinstance(key, ast.Constant)
        and key.value == "success"
        and isinstance(value, ast.Constant)
        and value.value is False
        for key, value in pairs
    )


def _is_part(value: ast.expr | None, rooted: set[str]) -> bool:
    """Whether an expression is a container or a record of the state itself, as far as its form tells."""
    match value:
        case ast.IfExp(body=body):
            return _is_part(body, rooted)
        case ast.Call(func=ast.Attribute(value=inner, attr="get")):
            return _root(inner) in rooted
        case ast.Attribute() | ast.Subscript():
            return _root(value) in rooted
        case ast.Name(id=name):
            return name in rooted
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
