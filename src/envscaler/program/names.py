"""Which names of a module are bound, and which are used without being bound anywhere they could be seen from."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

_GIVEN = frozenset(dir(builtins)) | {
    "__annotations__", "__builtins__", "__doc__", "__file__", "__name__", "__spec__", "__class__", "__module__",
    "__qualname__", "__dict__",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class UndefinedName:
    """A name that is used and bound nowhere."""

    name: str
    line: int
    """Line of its first use in the scope."""


def undefined_names(source: str, tree: ast.Module) -> list[UndefinedName]:
    """The names that would raise `NameError`, in order of lines; empty when a star import hides what is bound.

    Scopes are the compiler's own, so comprehensions, lambdas, nested functions and class bodies count as they do
    when the program runs. Whether a local variable is bound on every path is not looked at.
    """
    if any(isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)):
        return []
    tables = list(_tables(symtable.symtable(source, "program", "exec")))
    bound = set(_GIVEN)
    for table in tables:
        for symbol in table.get_symbols():
            module_level = table.get_type() == "module" or symbol.is_declared_global()
            if module_level and (symbol.is_assigned() or symbol.is_imported()):
                bound.add(symbol.get_name())
    suspects = {
        symbol.get_name()
        for table in tables
        for symbol in table.get_symbols()
        if symbol.is_referenced() and symbol.get_name() not in bound and _global(table, symbol)
    }
    return sorted(_uses(tree, suspects), key=lambda use: (use.line, use.name)) if suspects else []


def attributes_by_name(tree: ast.AST) -> dict[str, set[str]]:
    """By plain name, the attributes that are taken from it anywhere in the tree."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            found.setdefault(node.value.id, set()).add(node.attr)
    return found


def _global(table: symtable.SymbolTable, symbol: symtable.Symbol) -> bool:
    if table.get_type() == "module":
        return not symbol.is_assigned() and not symbol.is_imported()
    return symbol.is_global()


def _tables(table: symtable.SymbolTable) -> Iterator[symtable.SymbolTable]:
    yield table
    for child in table.get_children():
        yield from _tables(child)


def _uses(tree: ast.Module, suspects: set[str]) -> Iterator[UndefinedName]:
    """The first use of each suspect in each outermost function that does not bind it itself."""
    seen: set[tuple[str, int]] = set()

    def visit(node: ast.AST, owner: int, local: frozenset[str]) -> Iterator[UndefinedName]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            owner = owner or getattr(node, "lineno", 0)
            local = local | _bound_in(node)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            targets = [part for generator in node.generators for part in ast.walk(generator.target)]
            local = local | {part.id for part in targets if isinstance(part, ast.Name)}
        elif _is_read(node, suspects - local) and (node.id, owner) not in seen:
            seen.add((node.id, owner))
            yield UndefinedName(node.id, node.lineno)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, owner, local)

    yield from visit(tree, 0, frozenset())


def _is_read(node: ast.AST, names: set[str]) -> TypeGuard[ast.Name]:
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in names


def _bound_in(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> frozenset[str]:
    arguments = function.args
    names = {part.arg for part in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)}
    names |= {part.arg for part in (arguments.vararg, arguments.kwarg) if part is not None}
    if not isinstance(function, ast.Lambda):
        stack: list[ast.AST] = list(function.body)
        while stack:
            node = stack.pop()
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.ExceptHandler) and node.name:
                names.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.add(node.name)
                continue
            elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)):
                continue
            elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
                names.add(node.name)
            stack.extend(ast.iter_child_nodes(node))
    return frozenset(names)
