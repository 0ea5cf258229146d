"""`ways_out`: by what a program could reach beyond its own module, to where other sessions in its process would notice.

For programs that mean no harm: one that wants out finds a way that no reading of its text shows.
"""

from __future__ import annotations

import ast

_MODULES = frozenset(
    """
    __future__ abc base64 bisect calendar collections copy dataclasses datetime decimal enum fractions functools hashlib
    heapq hmac itertools json math numbers operator random re secrets statistics string textwrap time types typing
    typing_extensions unicodedata uuid zoneinfo
    """.split()  # noqa: SIM905 - words read better than a column of quotes
)
"""Modules in which nothing is kept that a program is likely to change."""
_NAMES = frozenset(
    {"__builtins__", "__import__", "breakpoint", "compile", "eval", "exec", "globals", "locals", "open", "input"}
    | {"delattr", "setattr", "vars"}
)
_METHODS = frozenset({"__del__", "__subclasscheck__", "__instancecheck__"})
"""They run when others do something."""
_DUNDERS = frozenset(
    {"__init__", "__post_init__", "__name__", "__class__", "__members__", "__doc__", "__len__", "__dict__", "__str__"}
    | {"__repr__", "__eq__", "__hash__", "__iter__", "__getitem__", "__setitem__", "__contains__", "__new__"}
)


def ways_out(source: str) -> tuple[str, ...]:
    """What in a program's text could be noticed outside its module, each in a few words with the line.

    A text that is no program is told as such.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError) as error:
        return (f"it cannot be read: {error}",)
    imported: set[str] = set()
    found: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name.partition(".")[0] for alias in node.names]
            imported |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = [(node.module or "").partition(".")[0]]
            imported |= {alias.asname or alias.name for alias in node.names}
        else:
            continue
        unknown = [name or "something relative" for name in names if name not in _MODULES]
        found += [f"it imports {name} (line {node.lineno})" for name in unknown]
    for node in ast.walk(tree):
        way = _way_out_by(node, imported)
        if way is not None:
            found.append(f"{way} (line {getattr(node, 'lineno', 0)})")
    return tuple(dict.fromkeys(found))


def _way_out_by(node: ast.AST, imported: set[str]) -> str | None:
    match node:
        case ast.Name(id=name) if name in _NAMES:
            return f"it uses {name}"
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name in _METHODS:
            return f"it defines {name}"
        case ast.Attribute(attr=name) if name.startswith("__") and name not in _DUNDERS:
            return f"it uses {name}"
        case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
            root = _root(node)
            if root in imported:
                return f"it changes something of {root}"
    return None


def _root(node: ast.AST) -> str | None:
    """The name that a chain of attributes and subscripts begins with; None where it begins with a call."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
