"""One layout for every program: blank lines, indentation, place of docstrings. Comments and code are not touched."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import libcst as cst

INDENT = "    "
Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement
_StatementT = TypeVar("_StatementT", bound=cst.CSTNode)
_BLANK = cst.EmptyLine(indent=False)
_QUOTES = re.compile(r"(?i)([ru]{0,2})(\"\"\"|''')")


def parse(source: str) -> cst.Module:
    """The concrete syntax tree.

    Raises:
        SyntaxError: if it does not parse.
    """
    try:
        return cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise SyntaxError(error.message, ("program", error.raw_line, error.raw_column, None)) from error
    except (RecursionError, UnicodeError) as error:
        raise SyntaxError(str(error), ("program", None, None, None)) from error


def rendered(header: Sequence[cst.EmptyLine], body: Sequence[cst.CSTNode], footer: Sequence[cst.EmptyLine]) -> str:
    """The text of a module made of these statements, in the one layout, ending in one newline."""
    module = cst.Module(
        body=spaced(body, around_definitions=2),  # type: ignore[arg-type]
        header=_without_edges(header),
        footer=_without_edges(footer),
        default_indent=INDENT,
        default_newline="\n",
    )
    module = module.visit(_Layout())
    return module.code.strip("\n") + "\n"


def spaced(body: Sequence[cst.CSTNode], *, around_definitions: int) -> list[cst.CSTNode]:
    """The statements with the usual blank lines between them; comments above a statement stay there."""
    out: list[cst.CSTNode] = []
    for node in body:
        lines: Sequence[cst.EmptyLine] = getattr(node, "leading_lines", ())
        comments = _without_edges(lines)
        blank = 0
        if out:
            defines = isinstance(node, (cst.FunctionDef, cst.ClassDef))
            after_definition = isinstance(out[-1], (cst.FunctionDef, cst.ClassDef))
            blank = around_definitions if defines or after_definition else min(1, len(lines) - len(comments))
            if isinstance(node, cst.SimpleStatementLine) and is_import(node) != is_import(out[-1]):
                blank = max(blank, 1)
        out.append(node.with_changes(leading_lines=[_BLANK] * blank + list(comments)))
    return out


def is_import(node: cst.CSTNode) -> bool:
    """Whether a statement line does nothing but import."""
    return isinstance(node, cst.SimpleStatementLine) and all(
        isinstance(part, (cst.Import, cst.ImportFrom)) for part in node.body
    )


def block_of(node: cst.ClassDef | cst.FunctionDef) -> cst.IndentedBlock:
    """The body as an indented block, also when it was written on one line."""
    if isinstance(node.body, cst.IndentedBlock):
        return node.body
    return cst.IndentedBlock(
        body=[cst.SimpleStatementLine(body=list(cst.ensure_type(node.body, cst.SimpleStatementSuite).body))]
    )


def is_docstring(node: cst.CSTNode) -> bool:
    """Whether a statement is nothing but a string."""
    return (
        isinstance(node, cst.SimpleStatementLine)
        and len(node.body) == 1
        and isinstance(node.body[0], cst.Expr)
        and isinstance(node.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def _without_edges(lines: Sequence[cst.EmptyLine]) -> list[cst.EmptyLine]:
    """The lines from the first comment to the last."""
    kept = list(lines)
    while kept and kept[0].comment is None:
        kept.pop(0)
    while kept and kept[-1].comment is None:
        kept.pop()
    return kept


def _empty_line(line: cst.EmptyLine) -> cst.EmptyLine:
    """A blank line without spaces; a comment line at the depth of its block, where it belongs even if it was not."""
    if line.comment is None:
        return _BLANK
    return line.with_changes(indent=True, whitespace=cst.SimpleWhitespace(""))


class _Layout(cst.CSTTransformer):
    """Indents everything by the default, empties blank lines, moves docstrings to their depth."""

    def __init__(self) -> None:
        super().__init__()
        self._depth = 0

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> None:
        self._depth += 1

    def leave_IndentedBlock(self, original: cst.IndentedBlock, updated: cst.IndentedBlock) -> cst.BaseSuite:
        self._depth -= 1
        return updated.with_changes(indent=None, footer=_without_edges(updated.footer))

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> bool:
        # Expressions are most of a program and have no layout of ours: looking into them took two thirds of the time.
        return False

    def leave_SimpleStatementLine(
        self, original: cst.SimpleStatementLine, updated: cst.SimpleStatementLine
    ) -> cst.BaseStatement:
        return updated.with_changes(leading_lines=[_empty_line(line) for line in updated.leading_lines])

    def leave_EmptyLine(self, original: cst.EmptyLine, updated: cst.EmptyLine) -> cst.EmptyLine:
        return _empty_line(updated)

    def leave_FunctionDef(self, original: cst.FunctionDef, updated: cst.FunctionDef) -> cst.FunctionDef:
        return self._with_docstring(updated)

    def leave_ClassDef(self, original: cst.ClassDef, updated: cst.ClassDef) -> cst.ClassDef:
        return self._with_docstring(updated)

    def _with_docstring(self, node: _StatementT) -> _StatementT:
        block = getattr(node, "body", None)
        if not isinstance(block, cst.IndentedBlock) or not block.body or not is_docstring(block.body[0]):
            return node
        line = cst.ensure_type(block.body[0], cst.SimpleStatementLine)
        string = cst.ensure_type(line.body[0], cst.Expr).value
        if not isinstance(string, cst.SimpleString):
            return node
        moved = string.with_changes(value=_indented(string.value, INDENT * (self._depth + 1)))
        line = line.with_changes(body=[cst.Expr(value=moved)])
        return node.with_changes(body=block.with_changes(body=[line, *block.body[1:]]))


def _indented(token: str, indent: str) -> str:
    """A docstring token whose lines after the first stand at `indent`."""
    match = _QUOTES.match(token)
    if match is None or "\n" not in token:
        return token
    opening, quotes = match.group(0), match.group(2)
    lines = token[len(opening) : -len(quotes)].expandtabs().split("\n")
    margins = [len(line) - len(line.lstrip()) for line in lines[1:] if line.strip()]
    margin = min(margins, default=0)
    # A backslash at the end of a line joins it to the next, whose blanks then belong to the text.
    if any(line.endswith("\\") for line in lines):
        return token
    rest = [f"{indent}{line[margin:]}".rstrip() for line in lines[1:]]
    if not lines[-1].strip():
        rest[-1] = indent
    return "\n".join([opening + lines[0].rstrip(), *rest]) + quotes
