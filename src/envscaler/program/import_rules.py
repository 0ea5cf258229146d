"""What a program may import, and whether what it takes from its imports is there.

The list makes for good errors and determinism; it is no security boundary, which is the sandbox's business.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from dataclasses import dataclass

from envscaler.program.names import attributes_by_name

ALLOWED_MODULES = frozenset(
    {
        "__future__", "abc", "ast", "bisect", "calendar", "collections", "copy", "dataclasses", "datetime", "decimal",
        "enum", "fractions", "functools", "hashlib", "heapq", "itertools", "json", "math", "operator", "random", "re",
        "secrets", "statistics", "string", "textwrap", "time", "types", "typing", "uuid", "zoneinfo",
    }
)  # fmt: skip
"""Modules that a program may import: no input, no output, and nothing that the sandbox cannot make repeatable."""


@dataclass(frozen=True, slots=True)
class ImportFault:
    """An import that will not work, or a use that does not fit it."""

    message: str
    line: int


def import_faults(tree: ast.Module) -> Iterator[ImportFault]:
    """Imports outside `ALLOWED_MODULES`, names that a module lacks, and `datetime`, the class, taken for the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _module_faults(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield ImportFault("relative imports have nothing to import from", node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module:
            faults = list(_module_faults(node.module, node.lineno))
            yield from faults
            for alias in node.names if not faults else ():
                if alias.name != "*" and not _has(node.module, alias.name):
                    yield ImportFault(f"`{node.module}` has no `{alias.name}` to import", node.lineno)
    yield from _mistaken(tree)


def _module_faults(module: str, line: int) -> Iterator[ImportFault]:
    if module.split(".")[0] not in ALLOWED_MODULES:
        allowed = ", ".join(sorted(ALLOWED_MODULES - {"__future__"}))
        yield ImportFault(f"`{module}` may not be imported; a program may use {allowed}", line)


def _mistaken(tree: ast.Module) -> Iterator[ImportFault]:
    """Attributes taken from an imported module, or from `datetime`, that it does not have."""
    bound: dict[str, tuple[str, ...]] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Import):
            bound.update({alias.asname or alias.name: (alias.name,) for alias in statement.names})
        elif isinstance(statement, ast.ImportFrom) and statement.module == "datetime":
            bound.update({alias.asname or alias.name: ("datetime", alias.name) for alias in statement.names})
        elif isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                bound.pop(alias.asname or alias.name, None)
    rebound = _bound_elsewhere(tree)
    used = attributes_by_name(tree)
    for name, (module, *path) in bound.items():
        # A name that something else binds too may hold anything.
        if name in rebound or module.split(".")[0] not in ALLOWED_MODULES or not _has(module, *path):
            continue
        for attribute in sorted(used.get(name, ())):
            if not _has(module, *path, attribute):
                what = f"the class `{module}.{path[0]}`" if path else f"the module `{module}`"
                message = f"`{name}` is {what} here, which has no `{attribute}`"
                yield ImportFault(message, _first_use(tree, name, attribute))


def _bound_elsewhere(tree: ast.Module) -> set[str]:
    """Names bound by anything but an import at module level."""
    top = set(tree.body)
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and node not in top:
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return names


def _first_use(tree: ast.Module, name: str, attribute: str) -> int:
    return min(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr == attribute
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    )


def _has(module: str, *path: str) -> bool:
    """Whether an allowed module has what the path names."""
    try:
        value: object = importlib.import_module(module)
    except ImportError:
        return False
    for name in path:
        if not hasattr(value, name):
            return False
        value = getattr(value, name)
    return True
