"""The refusals of a method: the `if` statements that end a call with a failure, and the method without one of them.

Which one may go, and what is then recorded, is `synth`'s business.

Source: ours. Weak models write refusals that raise; a tool without one of them is worth more than no tool.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_WORD = re.compile(r"[A-Za-z]{4,}")


@dataclass(frozen=True)
class Refusal:
    """One `if` that ends the call with a failure."""

    first_line: int
    last_line: int
    condition: str
    source: str


def refusals_of(source: str, name: str) -> tuple[Refusal, ...]:
    """The refusals of function `name`, in order; none where the code does not parse.

    A branch of a longer decision (`elif`, or an `if` with an `else`) is none: something else would happen instead.
    """
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    lines = textwrap.dedent(source).split("\n")
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name)
    found = [node for function in functions for node in _refusals_in(function.body)]
    return tuple(
        Refusal(
            node.lineno,
            node.end_lineno or node.lineno,
            ast.unparse(node.test),
            "\n".join(lines[node.lineno - 1 : node.end_lineno]),
        )
        for node in found
        if lines[node.lineno - 1].lstrip().startswith("if")
    )


def without_refusal(source: str, refusal: Refusal, *, keep_condition: bool = False) -> str | None:
    """The method without a refusal; None where it cannot be taken out by itself.

    Args:
        keep_condition: only what is done where the condition holds is taken out; the condition is still evaluated.
    """
    lines = textwrap.dedent(source).split("\n")
    margin = lines[refusal.first_line - 1]
    margin = margin[: len(margin) - len(margin.lstrip())]
    before, after = lines[: refusal.first_line - 1], lines[refusal.last_line :]
    # A block that held nothing else still needs a statement.
    kept_ones = (
        [[f"{margin}if {refusal.condition}:", f"{margin}    pass"]] if keep_condition else [[], [f"{margin}pass"]]
    )
    for kept in kept_ones:
        left = "\n".join([*before, *kept, *after])
        try:
            ast.parse(left)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        return left
    return None


def rule_behind(refusal: Refusal, rules: Sequence[str]) -> int | None:
    """Index of the rule that a refusal seems to enforce: the one that shares most words with it, two at least."""
    said = _words(refusal.source)
    shared = [len(said & _words(rule)) for rule in rules]
    best = max(shared, default=0)
    return shared.index(best) if best >= 2 else None


def _refusals_in(body: Sequence[ast.stmt]) -> Iterator[ast.If]:
    for node in body:
        if isinstance(node, ast.If) and not node.orelse and _fails(node.body[-1]):
            yield node
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for inner in ("body", "orelse", "finalbody"):
                yield from _refusals_in(getattr(node, inner, []))


def _fails(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        return True
    if not isinstance(node, ast.Return) or not isinstance(node.value, ast.Dict):
        return False
    told = {
        key.value: value
        for key, value in zip(node.value.keys, node.value.values, strict=True)
        if isinstance(key, ast.Constant)
    }
    success = told.get("success")
    return isinstance(success, ast.Constant) and success.value is False


def _words(text: str) -> set[str]:
    return {word.lower().rstrip("s") for word in _WORD.findall(text.replace("_", " "))} - _EMPTY


_EMPTY = {"return", "success", "false", "error", "self", "none", "that", "this", "with", "must", "only", "have"}
_EMPTY |= {"there", "which", "than", "when", "from", "they", "each", "cannot", "before", "after", "isinstance"}
_EMPTY = {word.rstrip("s") for word in _EMPTY}
