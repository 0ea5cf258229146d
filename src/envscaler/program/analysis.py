"""`analyze`: what is wrong with a program, found without running it.

The lists of modules and names make for good errors and determinism; they are no security boundary, which is the
sandbox's business.
"""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from envscaler.errors import ProgramError
from envscaler.program.flow import bare_returns, falls_through, is_generator
from envscaler.program.import_rules import ALLOWED_MODULES, import_faults
from envscaler.program.names import undefined_names
from envscaler.program.schemas import schemas_agree, tool_schemas
from envscaler.program.state_class import FunctionNode, class_node, functions_of, is_tool, last_name, parsed
from envscaler.skeleton import ToolSpec

FaultKind = Literal[
    "syntax",
    "undefined_name",
    "import",
    "forbidden",
    "missing_attribute",
    "signature",
    "no_return",
    "missing_method",
    "undeclared_tool",
]

_UNBOUND = {"staticmethod", "classmethod"}
_FORBIDDEN = frozenset({"__import__", "breakpoint", "compile", "eval", "exec", "exit", "input", "open", "quit"})


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a program."""

    kind: FaultKind
    message: str
    """A sentence that a model or a person can act on."""
    tool: str | None = None
    """The method it is in, or the tool it concerns; None when it concerns the whole program."""
    line: int | None = None
    """Line of the program, from 1."""


def analyze(source: str, class_name: str, tools: Sequence[ToolSpec]) -> tuple[Fault, ...]:
    """What is wrong with a program that is to offer `tools`; empty when nothing was found.

    Source: paper 3.2, assembly: the syntax tree is checked. What is looked at beyond that is ours.
    """
    try:
        tree = parsed(source)
        node = class_node(source, class_name)
        found = [*_names(source, tree), *_imports(tree), *_forbidden(tree), *_attributes(tree, node)]
        found += [*_returns(node, tools), *_signatures(source, class_name, node, tools)]
    except ProgramError as error:
        return (Fault("syntax", str(error)),)
    except (SyntaxError, RecursionError) as error:
        # symtable refuses some programs that ast accepts, such as a `global` after use.
        return (Fault("syntax", f"the program does not compile: {error}", line=getattr(error, "lineno", None)),)
    functions = [part for part in node.body if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return tuple(sorted((_placed(fault, functions) for fault in found), key=lambda fault: fault.line or 0))


def _placed(fault: Fault, functions: Sequence[FunctionNode]) -> Fault:
    if fault.tool is not None or fault.line is None:
        return fault
    for function in functions:
        if function.lineno <= fault.line <= (function.end_lineno or function.lineno):
            return Fault(fault.kind, fault.message, function.name, fault.line)
    return fault


# -- the whole program --------------------------------------------------------------------------------------


def _names(source: str, tree: ast.Module) -> Iterator[Fault]:
    for use in undefined_names(source, tree):
        yield Fault("undefined_name", f"`{use.name}` is not defined and not imported", line=use.line)


def _imports(tree: ast.Module) -> Iterator[Fault]:
    for fault in import_faults(tree):
        yield Fault("import", fault.message, line=fault.line)


def _forbidden(tree: ast.Module) -> Iterator[Fault]:
    defined = {
        node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        name = node.func.id
        if name in _FORBIDDEN - defined and not (name == "__import__" and _names_allowed_module(node)):
            yield Fault("forbidden", f"`{name}` may not be called: a program is state and rules", line=node.lineno)


def _names_allowed_module(node: ast.Call) -> bool:
    return len(node.args) == 1 and isinstance(node.args[0], ast.Constant) and node.args[0].value in ALLOWED_MODULES


# -- the state class ----------------------------------------------------------------------------------------


def _attributes(tree: ast.Module, node: ast.ClassDef) -> Iterator[Fault]:
    """Attributes of the instance that are read and that nothing in the class sets or defines."""
    known = _attributes_known(tree, node)
    if known is None:
        return
    given = set(dir(object))
    for function in functions_of(node).values():
        if not function.args.args or {last_name(part) for part in function.decorator_list} & _UNBOUND:
            continue
        self_name = function.args.args[0].arg
        told: set[str] = set()
        for part in ast.walk(function):
            if not isinstance(part, ast.Attribute) or not isinstance(part.value, ast.Name):
                continue
            if part.value.id != self_name or part.attr in known | given | told:
                continue
            told.add(part.attr)
            near = difflib.get_close_matches(part.attr, sorted(known), 1, 0.7)
            hint = f"; did you mean `{near[0]}`?" if near else ""
            message = f"`{self_name}.{part.attr}` is used, but {node.name} does not define it{hint}"
            yield Fault("missing_attribute", message, line=part.lineno)


def _attributes_known(tree: ast.Module, node: ast.ClassDef) -> set[str] | None:
    """What the class and its bases define or set; None when that cannot be told from the text."""
    classes = {part.name: part for part in tree.body if isinstance(part, ast.ClassDef)}
    known: set[str] = set()
    pending, seen = [node], {node.name}
    while pending:
        current = pending.pop()
        for base in map(last_name, current.bases):
            if base in classes and base not in seen:
                seen.add(base)
                pending.append(classes[base])
            elif base not in seen | {"object", "ABC", "Generic"}:
                return None
        for statement in current.body:
            if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                known.add(statement.name)
            else:
                known |= {name.id for name in ast.walk(statement) if isinstance(name, ast.Name) and _is_store(name)}
        for part in ast.walk(current):
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                if part.attr == "__dict__":
                    return None
                if _is_store(part):
                    known.add(part.attr)
            elif isinstance(part, ast.Call) and isinstance(part.func, ast.Name) and part.func.id in ("setattr", "vars"):
                name = part.args[1] if len(part.args) > 1 else None
                if not isinstance(name, ast.Constant):
                    return None
                known.add(str(name.value))
    return None if {"__getattr__", "__getattribute__"} & known else known


def _is_store(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _returns(node: ast.ClassDef, tools: Sequence[ToolSpec]) -> Iterator[Fault]:
    names = {tool.name for tool in tools}
    for name, function in functions_of(node).items():
        if name not in names:
            continue
        if is_generator(function):
            yield Fault("no_return", f"`{name}` is a generator; it has to return its result", name, function.lineno)
            continue
        if falls_through(function):
            yield Fault("no_return", f"`{name}` can reach its end without returning a result", name, function.lineno)
        for line in bare_returns(function):
            yield Fault("no_return", f"`{name}` returns nothing here; it has to return a result", name, line)


def _signatures(source: str, class_name: str, node: ast.ClassDef, tools: Sequence[ToolSpec]) -> Iterator[Fault]:
    functions = functions_of(node)
    derived = tool_schemas(source, class_name)
    declared = {tool.name: tool for tool in tools}
    for name, tool in declared.items():
        function = functions.get(name)
        if function is None:
            near = difflib.get_close_matches(name, [other for other in derived if other not in declared], 1, 0.7)
            hint = f"; is `{near[0]}` meant?" if near else ""
            yield Fault("missing_method", f"the tool `{name}` has no method in {class_name}{hint}", name)
            continue
        if name not in derived:
            yield Fault(
                "missing_method", f"`{name}` is no method that can be called on the instance", name, function.lineno
            )
            continue
        if isinstance(function, ast.AsyncFunctionDef):
            yield Fault("signature", f"`{name}` is async; tools are plain methods", name, function.lineno)
        if len(function.args.posonlyargs) > 1:
            yield Fault("signature", f"`{name}` has parameters that cannot be given by name", name, function.lineno)
        if not [*function.args.posonlyargs, *function.args.args]:
            yield Fault("signature", f"`{name}` does not take `self`", name, function.lineno)
            continue
        for difference in schemas_agree(tool.parameters, derived[name]):
            yield Fault("signature", f"`{name}`: {difference}", name, function.lineno)
    for name, function in functions.items():
        if name not in declared and is_tool(function):
            yield Fault("undeclared_tool", f"`{name}` is a public method, but no tool", name, function.lineno)
