"""`with_copied_results`: a method that returns copies of what it returned, so that no result is a part of the state.

Whether results are such parts is found by `env.aliasing`, and whether the method still works by whoever tries it.
"""

from __future__ import annotations

import libcst as cst

_PLAIN = (
    cst.SimpleString, cst.ConcatenatedString, cst.FormattedString, cst.Integer, cst.Float, cst.Comparison,
    cst.UnaryOperation,
)  # fmt: skip
"""Expressions of which no value is an object or a list."""
_CONSTANTS = frozenset({"True", "False", "None"})
_COUNTING = frozenset({"bool", "float", "int", "len", "round", "str"})
"""Functions that return neither."""


def with_copied_results(method: str) -> str | None:
    """The text of a method with what it returns copied; None where nothing is returned that could be copied."""
    copying = _Copying()
    module = cst.parse_module(method)
    changed = module.visit(copying)
    return changed.code if copying.copies else None


class _Copying(cst.CSTTransformer):
    def __init__(self) -> None:
        super().__init__()
        self.copies = 0
        self._depth = 0

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        self._depth += 1
        return True

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        self._depth -= 1
        return updated_node

    def leave_Return(self, original_node: cst.Return, updated_node: cst.Return) -> cst.Return:
        if self._depth != 1 or updated_node.value is None:
            return updated_node
        return updated_node.with_changes(value=self._copied(updated_node.value))

    def _copied(self, value: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(value, cst.Dict):
            return value.with_changes(elements=[self._element(element) for element in value.elements])
        if _is_plain(value):
            return value
        self.copies += 1
        return cst.Call(cst.Attribute(cst.Name("copy"), cst.Name("deepcopy")), [cst.Arg(value)])

    def _element(self, element: cst.BaseDictElement) -> cst.BaseDictElement:
        return element.with_changes(value=self._copied(element.value))


def _is_plain(value: cst.BaseExpression) -> bool:
    match value:
        case cst.Name(value=name):
            return name in _CONSTANTS
        case cst.Call(func=cst.Name(value=name)):
            return name in _COUNTING
    return isinstance(value, _PLAIN)
