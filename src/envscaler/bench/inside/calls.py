"""Calls as BFCL takes them: one text of Python for each, and back.

BFCL evaluates these texts. What an agent wrote gets into them as literals only, whatever it wrote.
"""

from __future__ import annotations

import ast
import keyword
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MADE_UP = "tool_that_does_not_exist"
"""Stands for a name that could be taken for something else; a call of it fails like one of any other unknown name."""


def rendered(name: str, arguments: Mapping[str, Any], known: Callable[[str], bool]) -> str:
    """The text that calls a tool with exactly these arguments.

    It is what BFCL's own `convert_to_function_call` writes, but for an opening parenthesis in a text: BFCL rewrites
    whatever looks like a call there, so that it is escaped.

    Args:
        known: whether there is such a tool; any other name becomes one that nothing has.
    """
    if not known(name):
        name = MADE_UP
    try:
        return _written(name, arguments)
    except RecursionError:
        # Nested deeper than Python reads; the call fails, and the episode goes on.
        return f"{MADE_UP}()"


def _written(name: str, arguments: Mapping[str, Any]) -> str:
    # Python takes other characters in names for those that they resemble.
    plain = all(key.isascii() and key.isidentifier() and not keyword.iskeyword(key) for key in arguments)
    if plain:
        return f"{name}({','.join(f'{key}={literal(value)}' for key, value in arguments.items())})"
    return f"{name}(**{literal(dict(arguments))})"


def literal(value: Any) -> str:
    """A JSON value as Python writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{literal(key)}: {literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    if isinstance(value, str):
        # Inside a literal an escape is the same character to Python and none to whoever looks for calls in it.
        return repr(value).replace("(", "\\x28")
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value)


def parsed(text: str, parameters: Callable[[str], Sequence[str]]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a recorded call; those without a name get that of their place.

    Args:
        parameters: names of a tool's parameters in their order.

    Raises:
        ValueError: if it is no call with literals for arguments.
    """
    try:
        call = ast.parse(text.strip(), mode="eval").body
    except SyntaxError as error:
        raise ValueError(f"{text!r} is no call: {error}") from error
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise ValueError(f"{text!r} is no call of a tool")
    name = call.func.id
    names = parameters(name)
    if len(call.args) > len(names):
        raise ValueError(f"{text!r} has more arguments than {name} has parameters")
    arguments = {key: ast.literal_eval(value) for key, value in zip(names, call.args, strict=False)}
    for keyed in call.keywords:
        if keyed.arg is None:
            raise ValueError(f"{text!r} unpacks its arguments")
        arguments[keyed.arg] = ast.literal_eval(keyed.value)
    return name, arguments
