"""Renames everything that a program may call as it likes, in its syntax tree: the same program in other words."""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Callable

_FIXED = {"success", "error", "message", "data"} | {
    name for kind in (builtins, dict, list, set, str, int, float) for name in dir(kind)
}
"""Keys of results, which the interface fixes, and names of the language: another one would be another program."""


def _imported(tree: ast.Module) -> set[str]:
    return {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _own_names(tree: ast.Module, fixed: set[str]) -> set[str]:
    """Names that the program itself defines: classes, functions, parameters, variables, state attributes, fields."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.arg(arg=name):
                names.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, value=ast.Name(id="self")):
                names.add(name)
    return {name for name in names - fixed if not name.startswith("__")}


class _Renamer(ast.NodeTransformer):
    def __init__(self, tree: ast.Module, rename: Callable[[str], str]) -> None:
        self.fixed = _FIXED | _imported(tree)
        self.names = _own_names(tree, self.fixed)
        self.classes = {part.name for part in tree.body if isinstance(part, ast.ClassDef)}
        self.rename = rename

    def new(self, name: str) -> str:
        if name not in self.names or keyword.iskeyword(name):
            return name
        private = "_" if name.startswith("_") else ""
        return private + self.rename(name.lstrip("_"))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self.new(node.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.new(node.name)
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.new(node.arg)
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.new(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        # What is no attribute of the instance is one of a type of the language.
        if isinstance(node.value, ast.Name) and node.value.id in {"self", *self.classes}:
            node.attr = self.new(node.attr)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        callee = node.func
        own = callee.value if isinstance(callee, ast.Attribute) else callee
        if (isinstance(own, ast.Name) and own.id in {"self", *self.names}) or ast.unparse(callee).endswith(".update"):
            # Keywords of the program's own functions, and those that are keys of records.
            for part in node.keywords:
                part.arg = self.new(part.arg) if part.arg is not None else None
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and node.value not in self.fixed:
            # Keys of records are texts too, so every text becomes another one, fields as their declarations do.
            node.value = self.new(node.value) if node.value in self.names else self.rename(node.value)
        elif type(node.value) is int and node.value > 1:
            node.value += 1
        return node


def renamed(source: str, class_name: str, tools: list[str], rename: Callable[[str], str]) -> tuple[str, str, list[str]]:
    """Source, class name and tools under other names; tools in reverse order."""
    tree = ast.parse(source)
    renamer = _Renamer(tree, rename)
    tree = ast.fix_missing_locations(renamer.visit(tree))
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == renamer.new(class_name):
            node.body.reverse()
    return ast.unparse(tree), renamer.new(class_name), [renamer.new(name) for name in reversed(tools)]
