"""`ModuleFacts`: what a program defines, so that its own names can be told from those of the language.

It reads definitions only; what methods do is `expressions`' and `effects`' business.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from dataclasses import dataclass

from envscaler.program.state_class import Container, FunctionNode, class_node, containers, functions_of, parsed
from envscaler.record import JsonSchema

_STATIC = {"staticmethod"}


@dataclass(frozen=True)
class Called:
    """A function of the program that a call names."""

    node: FunctionNode
    bound: bool
    """Whether its first parameter is the instance (or the class)."""
    self_name: str | None
    """Name of that parameter."""


class ModuleFacts:
    """The state class of a program, and what stands around it.

    Raises:
        ProgramError: if the program does not parse or lacks the class.
    """

    def __init__(self, source: str, class_name: str) -> None:
        tree = parsed(source)
        node = class_node(source, class_name)
        self.functions = functions_of(node)
        self.own = {class_name, *(part.name for part in tree.body if isinstance(part, ast.ClassDef))}
        """Classes of the program."""
        self.records = self.own - {class_name}
        self._plain = {part.name: part for part in tree.body if isinstance(part, ast.FunctionDef)}
        self.constants: dict[str, ast.expr] = {}
        """Names that the module, or the class, gives to a value once and for all."""
        for statement in [*tree.body, *node.body]:
            targets: list[ast.expr] = []
            if isinstance(statement, ast.Assign):
                targets = statement.targets
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None and statement in tree.body:
                targets = [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and isinstance(statement, ast.Assign | ast.AnnAssign):
                    self.constants[target.id] = statement.value or ast.Constant(None)
        self._containers = containers(source, class_name)
        self._imported = {
            alias.asname or alias.name.split(".")[0]: alias.name
            for part in ast.walk(tree)
            if isinstance(part, ast.Import | ast.ImportFrom)
            for alias in part.names
        }
        names = {part.name for part in ast.walk(tree) if isinstance(part, ast.FunctionDef | ast.ClassDef)}
        self._defined = names | set(self.constants)
        self._kinds = {
            (name, field.name): schema_kind(field.schema)
            for name, container in self._containers.items()
            for field in container.fields
        }

    def outside(self, name: str) -> str:
        """A name that the program does not choose, as it is; of one that it chooses only that it does."""
        if name in self._imported:
            return self._imported[name]
        return "own" if name in self._defined and not hasattr(builtins, name) else name

    def kind(self, container: str, name: str) -> str:
        """What an attribute of the records of a container can hold."""
        return self._kinds.get((container, name), "")

    def container_kind(self, name: str) -> tuple[str, bool]:
        """What a state attribute is, and whether it maps ids to values."""
        found: Container | None = self._containers.get(name)
        if found is None:
            return "unknown", True
        if found.mapping:
            return "mapping", True
        # Without an annotation, what it starts as tells.
        kind = schema_kind(found.schema)
        return kind, kind in {"", "object"}

    def called(self, tree: ast.Call, is_self: Callable[[str], bool]) -> Called | None:
        """The function of the program that a call names, if it does."""
        function = tree.func
        if isinstance(function, ast.Name) and function.id in self._plain:
            return Called(self._plain[function.id], bound=False, self_name=None)
        if not isinstance(function, ast.Attribute) or not isinstance(function.value, ast.Name):
            return None
        owner = function.value.id
        node = self.functions.get(function.attr)
        if node is None or not (is_self(owner) or owner in self.own):
            return None
        static = any(isinstance(part, ast.Name) and part.id in _STATIC for part in node.decorator_list)
        parameters = [*node.args.posonlyargs, *node.args.args]
        bound = not static and bool(parameters) and is_self(owner)
        return Called(node, bound=bound, self_name=parameters[0].arg if parameters and not static else None)


def schema_kind(schema: JsonSchema) -> str:
    """A schema without its names: which JSON types it allows."""
    union = schema.get("anyOf") or schema.get("oneOf")
    if union:
        return " or ".join(sorted({schema_kind(part) for part in union}))
    if "enum" in schema or "const" in schema:
        return "enumerated"
    kind = schema.get("type", "")
    return " or ".join(sorted(kind)) if isinstance(kind, list) else str(kind)
