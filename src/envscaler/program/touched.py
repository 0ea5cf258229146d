"""`names_touched`: which parts of the state a method can read or write, told from its text.

Source: ours; who judges one call need not be shown a state that the call had nothing to do with.
"""

from __future__ import annotations

import ast

from envscaler.program.state_class import FunctionNode, class_node, functions_of


def names_touched(source: str, class_name: str, method: str) -> frozenset[str] | None:
    """Names of the attributes of `self` that the method uses, and the methods that it calls use.

    Returns:
        None where it cannot be told: `self` itself is handed on, as to `getattr`.

    Raises:
        ProgramError: if the program does not parse or lacks the class.
    """
    functions = functions_of(class_node(source, class_name))
    touched: set[str] = set()
    pending = [method]
    while pending:
        function = functions.get(pending.pop())
        found = _used(function) if function is not None else None
        if found is None or "__dict__" in found:
            return None
        pending += [name for name in found - touched if name in functions]
        touched |= found
    return frozenset(touched - functions.keys())


def _used(function: FunctionNode) -> set[str] | None:
    """Attributes of the first parameter; None where it is used in any other way."""
    parameters = [*function.args.posonlyargs, *function.args.args]
    if not parameters:
        return set()
    owner = parameters[0].arg
    attributes = [
        part
        for part in ast.walk(function)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == owner
    ]
    uses = sum(isinstance(part, ast.Name) and part.id == owner for part in ast.walk(function))
    return {part.attr for part in attributes} if len(attributes) == uses else None
