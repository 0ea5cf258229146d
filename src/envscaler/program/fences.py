"""`Written`: what the code that was written for one method consists of."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import libcst as cst

from envscaler.errors import ProgramError
from envscaler.program.imports import Imported, imports_in
from envscaler.program.layout import block_of, is_docstring, parse

_BOUND = {"self", "cls"}
_DECORATED = {"staticmethod", "classmethod", "property", "cached_property", "setter"}


@dataclass
class Written:
    """The parts of one piece of code."""

    name: str
    method: cst.FunctionDef | None = None
    helpers: dict[str, cst.FunctionDef] = field(default_factory=dict)
    """Further methods, by name."""
    definitions: list[cst.CSTNode] = field(default_factory=list)
    """Functions, classes and constants that belong beside the state class."""
    imports: list[Imported] = field(default_factory=list)


def written(name: str, code: str, class_name: str) -> Written:
    """Take the code for method `name` apart: a bare `def` at any indentation, or one inside the class.

    Example calls and `if __name__ == "__main__"` are left out.

    Raises:
        ProgramError: naming the method, if it does not parse or defines something else.
    """
    parts = Written(name)
    others: list[str] = []
    for node in _statements(name, code):
        if isinstance(node, cst.SimpleStatementLine):
            _simple(node, parts, class_name)
        elif isinstance(node, cst.ClassDef) and (node.name.value == class_name or name in functions_in(node)):
            for function in functions_in(node).values():
                _function(function, parts, others, in_class=True)
        elif isinstance(node, cst.FunctionDef):
            _function(node, parts, others, in_class=False)
        elif not is_main_guard(node):
            parts.definitions.append(node)
    if parts.method is None:
        instead = f"it defines `{others[0]}` instead" if others else "it defines no function"
        raise ProgramError(f"method `{name}`: {instead}")
    parts.method = _bound(parts.method)
    return parts


def functions_in(node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    """The functions of a class body by name; of two with one name the last, as when the program runs."""
    return {part.name.value: part for part in block_of(node).body if isinstance(part, cst.FunctionDef)}


def is_main_guard(node: cst.CSTNode) -> bool:
    """Whether a statement is `if __name__ == "__main__": …`."""
    return isinstance(node, cst.If) and "__name__" in cst.Module(body=[]).code_for_node(node.test)


def names_in(node: cst.CSTNode) -> set[str]:
    """Every plain name in the tree."""
    found: set[str] = set()

    class Collector(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            found.add(node.value)

    node.visit(Collector())
    return found


def _statements(name: str, code: str) -> list[cst.CSTNode]:
    code = code.replace("\r\n", "\n").expandtabs(4) if "\n\t" in code else code.replace("\r\n", "\n")
    try:
        return list(parse(code).body)
    except SyntaxError as error:
        fault = error
    # The method as it would stand in its class, perhaps below imports at the left edge.
    lines = code.split("\n")
    first = next((index for index, line in enumerate(lines) if re.match(r"[ \t]+(@|def |async def )", line)), None)
    if first is not None:
        try:
            above = parse("\n".join(lines[:first]) + "\n").body
            wrapped = parse("\n".join(["if True:", *lines[first:], ""])).body
        except SyntaxError:
            pass
        else:
            if isinstance(wrapped[0], cst.If) and isinstance(wrapped[0].body, cst.IndentedBlock):
                return [*above, *wrapped[0].body.body, *wrapped[1:]]
    where = f" (line {fault.lineno})" if fault.lineno else ""
    raise ProgramError(f"method `{name}`: the code does not parse: {fault.msg}{where}")


def _simple(node: cst.SimpleStatementLine, parts: Written, class_name: str) -> None:
    kept: list[cst.BaseSmallStatement] = []
    for small in node.body:
        imported = imports_in(small)
        if imported is not None:
            parts.imports += imported
        elif isinstance(small, (cst.Assign, cst.AnnAssign)) and class_name not in names_in(small):
            kept.append(small)
    if kept and not is_docstring(node):
        parts.definitions.append(node.with_changes(body=kept) if len(kept) < len(node.body) else node)


def _function(function: cst.FunctionDef, parts: Written, others: list[str], *, in_class: bool) -> None:
    name = function.name.value
    if name == parts.name:
        parts.method = function
        return
    others.append(name)
    first = function.params.params[0].name.value if function.params.params else ""
    if in_class or first in _BOUND or decorators_of(function) & _DECORATED:
        if name != "__init__":
            parts.helpers[name] = function
    else:
        parts.definitions.append(function)


def _bound(function: cst.FunctionDef) -> cst.FunctionDef:
    """The function as a method of the instance: a forgotten `self` is put in, `@staticmethod` taken off."""
    decorators = [part for part in function.decorators if _decorator(part) != "staticmethod"]
    parameters = function.params
    positional = (*parameters.posonly_params, *parameters.params)
    if not positional or positional[0].name.value not in _BOUND:
        self_parameter = cst.Param(name=cst.Name("self"))
        if parameters.posonly_params:
            parameters = parameters.with_changes(posonly_params=[self_parameter, *parameters.posonly_params])
        else:
            parameters = parameters.with_changes(params=[self_parameter, *parameters.params])
    return function.with_changes(params=parameters, decorators=decorators)


def decorators_of(function: cst.FunctionDef) -> set[str]:
    """The last name of each decorator."""
    return {_decorator(part) for part in function.decorators}


def _decorator(node: cst.Decorator) -> str:
    head = node.decorator.func if isinstance(node.decorator, cst.Call) else node.decorator
    if isinstance(head, cst.Attribute):
        return head.attr.value
    return head.value if isinstance(head, cst.Name) else ""
