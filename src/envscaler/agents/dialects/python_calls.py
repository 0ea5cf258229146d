"""Reads calls that are written as Python: `look_up(title="Emma")`, also in a list or with `.call`."""

from __future__ import annotations

import ast
import warnings

from envscaler.agents.dialects.shape import Attempt, Tools, parameters_of
from envscaler.state import JsonValue


def python_attempts(code: str, tools: Tools) -> list[Attempt]:
    """The calls that `code` is; none when it is something else, or calls what is no tool."""
    text = code.strip()
    if len(text) > 20_000 or "(" not in text:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no fault of the call
            tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = tree.body.elts if isinstance(tree.body, ast.List | ast.Tuple) else [tree.body]
    attempts: list[Attempt] = []
    for node in nodes:
        attempt = _attempt(node, tools)
        if attempt is None:
            return []
        attempt.text = ast.get_source_segment(text, node) or text
        attempts.append(attempt)
    return attempts


def _attempt(node: ast.expr, tools: Tools) -> Attempt | None:
    if not isinstance(node, ast.Call):
        return None
    name = _name(node.func, tools)
    if name is None:
        return None
    attempt = Attempt(text="", name=name, slips=["python_call"])
    names = list(parameters_of(tools[name]))
    try:
        for index, value in enumerate(node.args):
            if index >= len(names):
                raise ValueError("too many arguments")
            # Which parameter was meant is only likely.
            attempt.slips.append("bare_argument")
            attempt.arguments[names[index]] = _literal(value)
        for keyword in node.keywords:
            if keyword.arg is None:
                raise ValueError("** of something")
            attempt.arguments[keyword.arg] = _literal(keyword.value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        attempt.fault = "unreadable_arguments"
    attempt.slips = list(dict.fromkeys(attempt.slips))
    return attempt


def _name(node: ast.expr, tools: Tools) -> str | None:
    if isinstance(node, ast.Attribute):
        if node.attr in tools:
            return node.attr
        # `look_up.call(…)`, the form of Llama's built-in tools.
        return _name(node.value, tools) if node.attr in ("call", "run") else None
    return node.id if isinstance(node, ast.Name) and node.id in tools else None


def _literal(node: ast.expr) -> JsonValue:
    value = ast.literal_eval(node)
    return _json(value)


def _json(value: object) -> JsonValue:
    if isinstance(value, dict):
        if not all(isinstance(key, str) for key in value):
            raise ValueError("a key that is no text")
        return {key: _json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_json(part) for part in value]
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise ValueError(f"a {type(value).__name__} has no JSON form")
