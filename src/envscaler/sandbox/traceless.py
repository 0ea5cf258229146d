"""Says of a check function or an expression that it can leave nothing behind in the process in which it runs.

Others get a process of their own. This contains no attack by itself, it saves starting processes: what is not known to
be harmless counts as not harmless, and most checks only look through lists and dictionaries.
"""

from __future__ import annotations

import ast
import builtins
import datetime
import re
import unicodedata
from functools import lru_cache

_LONGEST_CHARS = 20_000
"""Longer ones are not looked at: parsing them could cost more than a process."""

_VALUES = (str, bytes, int, float, bool, list, tuple, dict, set, frozenset)
_TIMES = (datetime.datetime, datetime.date, datetime.time, datetime.timedelta, datetime.timezone)
_IMPORTED = {"datetime": frozenset({"datetime", "date", "time", "timedelta", "timezone", "UTC"})}
"""Modules that may be imported, and what of them may be used; a module's other names lead to further modules."""
_ATTRIBUTES = frozenset(
    name for kind in (*_VALUES, *_TIMES) for name in dir(kind) if not name.startswith("_")
) | frozenset().union(*_IMPORTED.values())

_FORBIDDEN_NAMES = {
    # They reach other modules, other frames, descriptors, or make a class, whose finalizer would run later.
    *("eval", "exec", "compile", "open", "getattr", "setattr", "delattr", "vars", "globals", "locals", "super", "type"),
    "breakpoint",
    *(name for name in dir(builtins) if not isinstance(getattr(builtins, name), type | type(len))),
} - {"True", "False", "None", "Ellipsis", "NotImplemented"}
_FORBIDDEN_NODES = (
    # No classes and no generators that can hold a `finally`: both act when they are collected, perhaps much later.
    *(ast.ClassDef, ast.Yield, ast.YieldFrom, ast.Match),
    *(ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await),
)
_SUSPICIOUS_WORDS = _FORBIDDEN_NAMES | {"import", "class", "yield", "async", "await", "match"}
"""Without them nothing but values and functions of its own can be reached, wherever in the text they stand."""
_SUSPICIOUS_BEGINNINGS = ("gi_", "ag_", "cr_", "tb_", "f_", "co_")
"""Of attributes that lead from generators, errors and functions to frames."""
_WORDS = re.compile(r"\w+")


@lru_cache(maxsize=4096)
def leaves_nothing(source: str) -> bool:
    """Whether no later check in the same process can notice that this one ran; False where it cannot be told."""
    if len(source) > _LONGEST_CHARS:
        return False
    # As Python reads names. A parser is many times slower than this.
    text = source if source.isascii() else unicodedata.normalize("NFKC", source)
    words = set(_WORDS.findall(text))
    beginnings = any(word.startswith(_SUSPICIOUS_BEGINNINGS) for word in words)
    if "__" not in text and not beginnings and words.isdisjoint(_SUSPICIOUS_WORDS):
        return True
    try:
        tree = ast.parse(source.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return all(_harmless(node) for node in ast.walk(tree))


def _harmless(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return isinstance(node.ctx, ast.Load) and node.attr in _ATTRIBUTES
    if isinstance(node, ast.Name):
        return not node.id.startswith("__") and node.id not in _FORBIDDEN_NAMES
    if isinstance(node, ast.Import):
        return all(alias.name in _IMPORTED for alias in node.names)
    if isinstance(node, ast.ImportFrom):
        allowed = _IMPORTED.get(node.module or "", frozenset())
        return not node.level and all(alias.name in allowed for alias in node.names)
    return not isinstance(node, _FORBIDDEN_NODES)
