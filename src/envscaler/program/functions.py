"""`Functions`: functions out of code that defines several, each made to stand alone with what it uses of the rest.

Code of which a part does not parse still gives the other parts. What a function does is not looked at.
"""

from __future__ import annotations

import ast
import io
import re
import symtable
import textwrap
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from envscaler.errors import ProgramError

_DEFINES = re.compile(r"^(?:async\s+)?def\s+(\w+)", re.MULTILINE)
_BEGINS = re.compile(r"^(?!(?:else|elif|except|finally)\b)[^\s#)\]}]")
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)


@dataclass(frozen=True)
class _Statement:
    """One statement at the top level of a block."""

    place: tuple[int, int]
    """Index of the block, and of the statement in it."""
    node: ast.stmt
    source: str
    binds: frozenset[str]
    at_once: frozenset[str]
    """Names that it takes from around it when it is carried out; of a function those in its head."""
    inside: frozenset[str]
    """Those that bodies of functions in it take from there. Built-in names are among both."""


class Functions:
    """The functions of some blocks of code.

    Example:
        >>> code = "def near(a, b):\\n    return abs(a - b) < 1\\ndef one(x):\\n    return near(x, 1)"
        >>> print(Functions([code]).alone("one", "check"))
        def check(x):
            def near(a, b):
                return abs(a - b) < 1
            return near(x, 1)
        <BLANKLINE>
    """

    def __init__(self, blocks: Sequence[str], *, of_classes: bool = False) -> None:
        """
        Args:
            blocks: a name that several define is taken from the block that asks for it, else from the last one.
            of_classes: methods of classes count as functions too.
        """
        self._of_classes = of_classes
        self._broken: dict[str, str] = {}
        self._bound: dict[int, dict[str, _Statement]] = {}
        for number, block in enumerate(blocks):
            bound = self._bound.setdefault(number, {})
            for statement in self._statements(number, block):
                bound.update(dict.fromkeys(statement.binds, statement))

    def standing(self, name: str) -> str:
        """The source of function `name` below the imports and definitions that it uses, as it was written.

        Raises:
            ProgramError: saying why there is none.
        """
        function = self._function(name)
        used = self._used(function, function.at_once | function.inside)
        before = [part.source for part in used if not isinstance(part.node, ast.ClassDef) or not self._of_classes]
        return "".join(f"{part}\n" for part in before) + ("\n\n" if before else "") + f"{function.source}\n"

    def alone(self, name: str, called: str) -> str:
        """The source of function `name` as function `called`.

        What its body uses of the rest stands in its body, since who runs it may keep globals and locals apart; what
        its head uses, such as the type of an argument, stands before it.

        Raises:
            ProgramError: saying why there is none.
        """
        function = self._function(name)
        if isinstance(function.node, ast.AsyncFunctionDef):
            raise ProgramError(f"there is no function {name}")
        before = [_renamed(part.source, name, called) for part in self._used(function, function.at_once)]
        within = [_renamed(_plain(part), name, called) for part in self._used(function, function.inside)]
        alone = _with_first(_renamed(function.source, name, called), within)
        source = "".join(f"{part}\n" for part in before) + ("\n\n" if before else "") + alone
        try:
            _parsed(source)
        except _UNREADABLE as error:
            raise ProgramError(f"the code of {name} does not stand alone: {error}") from error
        return source

    def _function(self, name: str) -> _Statement:
        function = self._bound_to(name, len(self._bound) - 1)
        if function is None or not isinstance(function.node, ast.FunctionDef | ast.AsyncFunctionDef):
            if name in self._broken:
                raise ProgramError(f"the code of {name} does not parse: {self._broken[name]}")
            raise ProgramError(f"there is no function {name}")
        return function

    def _used(self, function: _Statement, names: Iterable[str]) -> list[_Statement]:
        """All that these names of a function stand for, with what that uses itself, in the order of definition."""
        found: dict[tuple[int, int], _Statement] = {}
        asked = [(name, function.place[0]) for name in names]
        while asked:
            used = self._bound_to(*asked.pop())
            if used is not None and used.place != function.place and used.place not in found:
                found[used.place] = used
                asked += [(name, used.place[0]) for name in used.at_once | used.inside]
        return [found[place] for place in sorted(found)]

    def _bound_to(self, name: str, block: int) -> _Statement | None:
        for number in (block, *reversed(self._bound)):
            if name in self._bound.get(number, {}):
                return self._bound[number][name]
        return None

    def _statements(self, number: int, block: str) -> Iterator[_Statement]:
        index = 0
        for part in _parsable(block):
            try:
                tree = _parsed(part)
            except _UNREADABLE as error:
                line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
                why = f"{getattr(error, 'msg', error)}{line}"
                self._broken.update(dict.fromkeys(_DEFINES.findall(part), why))
                continue
            lines = part.split("\n")
            for node in tree.body:
                for defined in (node, *self._methods_in(node)):
                    first = min([defined.lineno, *(one.lineno for one in getattr(defined, "decorator_list", []))])
                    source = "\n".join(lines[first - 1 : defined.end_lineno])
                    if defined is not node:
                        source = textwrap.dedent(source)
                    try:
                        names = _names(source)
                    except _UNREADABLE:
                        continue  # such as `return` outside a function
                    yield _Statement((number, index), defined, source, *names)
                    index += 1

    def _methods_in(self, node: ast.stmt) -> list[ast.stmt]:
        if not self._of_classes or not isinstance(node, ast.ClassDef):
            return []
        return [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]


def _parsed(source: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an odd escape in a string is no fault
        return ast.parse(source)


def _parsable(block: str) -> Iterator[str]:
    """The block, or where it does not parse its parts, parted where a line begins at the margin."""
    block = block.replace("\r\n", "\n").replace("\f", "")
    try:
        _parsed(block)
    except _UNREADABLE:
        part: list[str] = []
        for line in block.split("\n"):
            if part and _BEGINS.match(line) and not part[-1].startswith("@"):
                yield "\n".join(part)
                part = []
            part.append(line)
        yield "\n".join(part)
    else:
        yield block


def _names(source: str) -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    """What a statement binds, what it takes when it is carried out, and what functions in it take."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = symtable.symtable(source, "code", "exec")
    own = {symbol.get_name(): symbol for symbol in table.get_symbols()}
    inside: set[str] = set()
    tables = list(table.get_children())
    while tables:
        inner = tables.pop()
        inside.update(symbol.get_name() for symbol in inner.get_symbols() if symbol.is_global())
        tables += inner.get_children()
    return (
        frozenset(name for name, one in own.items() if one.is_assigned() or one.is_imported() or one.is_namespace()),
        frozenset(name for name, one in own.items() if one.is_referenced()),
        frozenset(inside),
    )


def _plain(statement: _Statement) -> str:
    """The source of a statement in a form that can be moved to the right."""
    strings = (part for part in ast.walk(statement.node) if isinstance(part, (ast.Constant, ast.JoinedStr)))
    if any(part.end_lineno != part.lineno for part in strings):
        return ast.unparse(statement.node)  # to move the lines of a string would change it
    return statement.source


def _renamed(source: str, name: str, called: str) -> str:
    if name == called or name not in source:
        return source
    lines = source.split("\n")
    found = [
        token.start
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.NAME and token.string == name
    ]
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = f"{line[:column]}{called}{line[column + len(name) :]}"
    return "\n".join(lines)


def _with_first(source: str, parts: Sequence[str]) -> str:
    """A function whose body begins with these statements, after its docstring."""
    if not parts:
        return f"{source}\n"
    function = _function(source)
    if function.body[0].lineno == function.lineno or _before(source, function).strip():
        source = ast.unparse(function)  # its body begins on the line of its head
        function = _function(source)
    first, margin, lines = function.body[0], _before(source, function), source.split("\n")
    at = first.lineno - 1
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        at = first.end_lineno or first.lineno  # a docstring stays the first
    while at > 1 and lines[at - 1].lstrip().startswith(("#", "@")):
        at -= 1
    moved = [textwrap.indent(part, margin) for part in parts]
    return "\n".join([*lines[:at], *moved, *lines[at:]]) + "\n"


def _function(source: str) -> ast.FunctionDef:
    node = _parsed(source).body[0]
    assert isinstance(node, ast.FunctionDef)
    return node


def _before(source: str, function: ast.FunctionDef) -> str:
    """What stands before the first statement of the body on its line."""
    first = function.body[0]
    return source.split("\n")[first.lineno - 1].encode()[: first.col_offset].decode()
