"""The structure of a blueprint with all names taken away, as one signature and as a distance between two.

It lets the generator choose before anything is written; what a finished program is, `program.structure` measures.
What is left is a labelled graph: which entities reference which, and per operation what it reads, what its requirements
look like and what it changes. Names, texts, constants and attributes that no tool or rule uses do not count, nor does
the order in which things are written. How graphs are coloured is `program.colours`' business.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from envscaler.offline.blueprint import Blueprint, EffectPlan, EntityPlan, OperationPlan
from envscaler.offline.expression import parse
from envscaler.program.colours import Colours, Graph, Node, colour_distance


def signature(blueprint: Blueprint) -> str:
    """The same text for two environments that differ only in names, texts, constants, order and unused attributes.

    Colour refinement never tells apart what is the same, so that two different signatures prove a difference. It
    overlooks differences only between graphs that are regular in an unusual way.
    """
    return _graph(blueprint).signature()


def distance(first: Blueprint, second: Blueprint) -> float:
    """Share of refined node colours that two environments do not share: 0.0 same structure, 1.0 nothing in common."""
    return colour_distance(_colours(first), _colours(second))


@lru_cache(maxsize=2_000)
def _colours(blueprint: Blueprint) -> Colours:
    return _graph(blueprint).colours()


def _graph(blueprint: Blueprint) -> Graph:
    builder = _Builder(blueprint)
    builder.build()
    return builder.graph


class _Builder:
    """Adds entities, references and operations; an attribute becomes a node when something first uses it."""

    def __init__(self, blueprint: Blueprint) -> None:
        self.blueprint = blueprint
        self.graph = Graph()
        self.entities = {entity.name: self.graph.node("entity") for entity in blueprint.entities}
        self._attributes: dict[tuple[str, str], Node] = {}
        self._defaults: list[tuple[Node, EntityPlan, str, ast.expr]] = []
        """Constants that creation gives to attributes; they count where something else uses the attribute."""

    def build(self) -> None:
        for entity in self.blueprint.entities:
            for field in entity.fields:
                if field.ref is not None:
                    self.attribute(entity, field.name)
        for invariant in self.blueprint.invariants:
            node = self.graph.node("invariant")
            entity = self.blueprint.entity(invariant.entity)
            self.graph.edge(node, "of", self.entities[entity.name])
            self._claims(node, "holds", invariant.holds, _Names(self).looking_at(entity, node))
        for operation in self.blueprint.operations:
            if not self._is_plain(operation):
                self._operation(operation)
        for made, entity, name, value in self._defaults:
            if (entity.name, name) in self._attributes:
                self._set(made, entity, name, value, _Names(self))

    def _is_plain(self, operation: OperationPlan) -> bool:
        """Whether it is one of the queries that every entity has without being asked for, which say nothing."""
        query = operation.query
        if query is None or operation.requires:
            return False
        if query.kind == "find":
            return query.field == self.blueprint.entity(query.entity or "").title
        return query.kind == "get" or (query.kind == "list" and query.where is None and query.sort is None)

    def attribute(self, entity: EntityPlan, name: str) -> Node:
        """The node of an attribute."""
        name = "id" if name == entity.key else name
        known = self._attributes.get((entity.name, name))
        if known is not None:
            return known
        field = entity.field(name)
        node = self.graph.node("key" if field is None else f"attribute {_kind(field)}")
        if field is not None and field.ref is not None:
            self.graph.edge(node, "references", self.entities[field.ref])
        self._attributes[entity.name, name] = node
        self.graph.edge(self.entities[entity.name], "has", node)
        return node

    def _operation(self, operation: OperationPlan) -> None:
        node = self.graph.node(operation.effect)
        names = _Names(self)
        for param in operation.params:
            given = self.graph.node(f"parameter {_kind(param)}")
            self.graph.edge(node, "takes", given)
            names.values[param.name] = given
            if param.ref is not None:
                self.graph.edge(given, "names", self.entities[param.ref])
                names.records[param.name] = (self.blueprint.entity(param.ref), given)
                names.values[f"{param.name}_id"] = given
        for requirement in operation.requires:
            self._claims(node, "requires", requirement.when, names)
        if operation.query is not None:
            self._query(node, operation, names)
        for effect in operation.effects:
            self._effect(node, effect, names)

    def _query(self, node: Node, operation: OperationPlan, names: _Names) -> None:
        query = operation.query
        assert query is not None
        read = self.graph.node(f"{query.kind}{' descending' if query.descending else ''}")
        self.graph.edge(node, "reads", read)
        if query.value is not None:
            self.graph.edge(read, "value", names.expression(parse(query.value)))
        if query.entity is None:
            return
        entity = self.blueprint.entity(query.entity)
        self.graph.edge(read, "of", self.entities[entity.name])
        for role, name in (("searched", query.field), ("sorted", query.sort)):
            if name is not None:
                self.graph.edge(read, role, self.attribute(entity, name))
        if query.kind == "list":
            for param in operation.params:
                name = f"{param.name}_id" if param.ref is not None else param.name
                if entity.field(name) is not None:
                    self.graph.edge(names.values[param.name], "filters", self.attribute(entity, name))
        if query.where is not None:
            self._claims(read, "where", query.where, names.looking_at(entity, read))

    def _effect(self, node: Node, effect: EffectPlan, names: _Names) -> None:
        kind = next(name for name in ("create", "change", "delete", "each") if getattr(effect, name) is not None)
        done = self.graph.node(kind)
        self.graph.edge(node, "does", done)
        named = effect.change or effect.delete
        if named is not None:
            entity, record = names.records[named]
            self.graph.edge(done, "to", record)
        else:
            entity = self.blueprint.entity(effect.create or effect.each or "")
        self.graph.edge(done, "of", self.entities[entity.name])
        inner = names.looking_at(entity, done) if effect.each is not None else names
        for name, text in effect.values.items():
            value = parse(text)
            if effect.create is not None and isinstance(value, ast.Constant):
                self._defaults.append((done, entity, name, value))
            else:
                self._set(done, entity, name, value, inner)
        if effect.where is not None:
            self._claims(done, "where", effect.where, inner)
        if effect.when is not None:
            self._claims(done, "when", effect.when, names)
        if effect.create is not None:
            names.records[effect.var or entity.variable] = (entity, done)

    def _set(self, done: Node, entity: EntityPlan, name: str, value: ast.expr, names: _Names) -> None:
        made = self.graph.node("set")
        self.graph.edge(done, "sets", made)
        self.graph.edge(made, "attribute", self.attribute(entity, name))
        self.graph.edge(made, "value", names.expression(value))

    def _claims(self, node: Node, role: str, text: str, names: _Names) -> None:
        # `a and b` asks for the same as two requirements do.
        tree = parse(text)
        joined = isinstance(tree, ast.BoolOp) and isinstance(tree.op, ast.And)
        for claim in tree.values if joined and isinstance(tree, ast.BoolOp) else [tree]:
            self.graph.edge(node, role, names.expression(claim))


def _kind(part: object) -> str:
    """What an attribute or a parameter can hold, names of values aside."""
    reference, enum = getattr(part, "ref", None), getattr(part, "enum", None)
    kind = (
        "reference" if reference is not None else "enumerated" if enum is not None else str(getattr(part, "type", ""))
    )
    return f"{kind} or none" if getattr(part, "optional", False) else kind


class _Names:
    """What names in an expression stand for, as nodes."""

    def __init__(
        self,
        builder: _Builder,
        records: Mapping[str, tuple[EntityPlan, Node]] | None = None,
        values: Mapping[str, Node] | None = None,
    ) -> None:
        self.builder = builder
        self.records = dict(records or {})
        self.values = dict(values or {})

    def looking_at(self, entity: EntityPlan, node: Node) -> _Names:
        """The same names, with `it` a record of the entity, as `expression.Scope.with_it` has them."""
        own = {entity.variable: (entity, node)}
        return _Names(self.builder, {**own, **self.records, "it": (entity, node)}, self.values)

    def expression(self, tree: ast.expr) -> Node:
        """The node of an expression, with those of its parts."""
        graph = self.builder.graph
        match tree:
            case ast.Constant(value=value):
                return graph.node(f"constant {'number' if type(value) in (int, float) else type(value).__name__}")
            case ast.Name(id="now" | "today" as clock):
                return graph.node(clock)
            case ast.Name(id=name):
                return self.values[name]
            case ast.Attribute(value=ast.Name(id=name), attr=attribute):
                entity, record = self.records[name]
                node = graph.node("field")
                graph.edge(node, "record", record)
                graph.edge(node, "attribute", self.builder.attribute(entity, attribute))
                return node
            case ast.Call(func=ast.Name(id="count" | "exists" | "total" as name), args=[ast.Name(id=named), *rest]):
                entity = self.builder.blueprint.entity(named)
                node = graph.node(name)
                graph.edge(node, "over", self.builder.entities[entity.name])
                inner = self.looking_at(entity, node)
                if name == "total":
                    graph.edge(node, "of", inner.expression(rest[0]))
                for where in rest[1:] if name == "total" else rest:
                    joined = isinstance(where, ast.BoolOp) and isinstance(where.op, ast.And)
                    for claim in where.values if joined and isinstance(where, ast.BoolOp) else [where]:
                        graph.edge(node, "where", inner.expression(claim))
                return node
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._compared(left, op, right)
            case ast.Call(func=ast.Name(id=name), args=parts):
                return self._joined(name, parts, ordered=name not in {"least", "most"})
            case ast.BoolOp(op=op, values=parts):
                return self._joined(type(op).__name__, parts, ordered=False)
            case ast.BinOp(left=left, op=op, right=right):
                return self._joined(type(op).__name__, [left, right], ordered=not isinstance(op, ast.Add | ast.Mult))
            case ast.List() | ast.Tuple():
                return graph.node("constants")
        parts = [child for child in ast.iter_child_nodes(tree) if isinstance(child, ast.expr)]
        kinds = [
            type(child).__name__ for child in ast.iter_child_nodes(tree) if isinstance(child, ast.cmpop | ast.unaryop)
        ]
        return self._joined(" ".join([type(tree).__name__, *kinds]), parts, ordered=True)

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Node:
        if isinstance(op, ast.Gt | ast.GtE):
            # `a > b` is `b < a`.
            left, right, op = right, left, ast.Lt() if isinstance(op, ast.Gt) else ast.LtE()
        return self._joined(type(op).__name__, [left, right], ordered=not isinstance(op, ast.Eq | ast.NotEq))

    def _joined(self, label: str, parts: list[ast.expr], *, ordered: bool) -> Node:
        node = self.builder.graph.node(label)
        for position, part in enumerate(parts):
            self.builder.graph.edge(node, str(position) if ordered else "part", self.expression(part))
        return node
