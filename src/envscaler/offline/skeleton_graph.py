"""The structure of a finished environment as a graph: what its record says, whoever wrote the program.

Attributes count where a reference, a tool's effect, a tool's parameter of the same name or a rule's predicate uses
them. What the program's text says beyond that is not looked at.
"""

from __future__ import annotations

import ast

from envscaler.offline.colours import Graph, Node
from envscaler.record import JsonSchema
from envscaler.skeleton import Attribute, EnvSkeleton, Rule, ToolSpec


def skeleton_graph(skeleton: EnvSkeleton) -> Graph:
    """The graph of entities, references, tools and rules."""
    return _Builder(skeleton).graph


class _Builder:
    def __init__(self, skeleton: EnvSkeleton) -> None:
        self.graph = Graph()
        self.plans = {entity.name: entity for entity in skeleton.entities}
        self.entities = {entity.name: self.graph.node("entity") for entity in skeleton.entities}
        self._attributes: dict[tuple[str, str], Node] = {}
        for entity in skeleton.entities:
            for attribute in entity.attributes:
                if attribute.references is not None:
                    self._attribute(entity.name, attribute.name)
        tools = {tool.name: self._tool(tool) for tool in skeleton.tools}
        for rule in skeleton.rules:
            self._rule(rule, tools)

    def _attribute(self, entity: str, name: str) -> Node:
        known = self._attributes.get((entity, name))
        if known is not None:
            return known
        plan = next(attribute for attribute in self.plans[entity].attributes if attribute.name == name)
        node = self.graph.node("key" if name == self.plans[entity].key else f"attribute {_kind(plan)}")
        if plan.references in self.entities:
            self.graph.edge(node, "references", self.entities[plan.references])
        self._attributes[entity, name] = node
        self.graph.edge(self.entities[entity], "has", node)
        return node

    def _has(self, entity: str, name: str) -> bool:
        return any(attribute.name == name for attribute in self.plans[entity].attributes)

    def _tool(self, tool: ToolSpec) -> Node:
        node = self.graph.node(tool.effect)
        touched = [effect.entity for effect in tool.effects or () if effect.entity in self.entities]
        required = set(tool.parameters.get("required", ()))
        for name, schema in tool.parameters.get("properties", {}).items():
            given = self.graph.node(f"parameter {_json_kind(schema)}{'' if name in required else ' or none'}")
            self.graph.edge(node, "takes", given)
            for entity, plan in self.plans.items():
                if plan.key == name:
                    self.graph.edge(given, "names", self.entities[entity])
            for entity in dict.fromkeys(touched):
                if self._has(entity, name):
                    self.graph.edge(given, "fills", self._attribute(entity, name))
        for effect in tool.effects or ():
            if effect.entity not in self.entities:
                continue
            done = self.graph.node(effect.kind)
            self.graph.edge(node, "does", done)
            self.graph.edge(done, "of", self.entities[effect.entity])
            for name in effect.attributes:
                if self._has(effect.entity, name):
                    self.graph.edge(done, "attribute", self._attribute(effect.entity, name))
        return node

    def _rule(self, rule: Rule, tools: dict[str, Node]) -> None:
        if rule.predicate is None and not rule.tools:
            return
        node = self.graph.node("rule")
        for name in rule.tools:
            if name in tools:
                self.graph.edge(tools[name], "respects", node)
        if rule.predicate is not None:
            try:
                tree = ast.parse(rule.predicate, mode="eval").body
            except SyntaxError:
                return
            self.graph.edge(node, "holds", self._predicate(tree))

    def _predicate(self, tree: ast.AST) -> Node:
        """A Python expression over `state`; its names, texts and numbers are left out, its attributes are not."""
        match tree:
            case ast.Constant(value=str(name)):
                containers = {plan.container: entity for entity, plan in self.plans.items() if plan.container}
                if name in containers:
                    return self.entities[containers[name]]
                owners = [entity for entity in self.plans if self._has(entity, name)]
                # A name that several entities have is no proof of which one is meant.
                return self._attribute(owners[0], name) if len(owners) == 1 else self.graph.node("text")
            case ast.Constant(value=value):
                return self.graph.node("number" if type(value) in (int, float) else type(value).__name__)
            case ast.Name():
                return self.graph.node("name")
        node = self.graph.node(type(tree).__name__)
        for position, child in enumerate(ast.iter_child_nodes(tree)):
            if not isinstance(child, ast.expr_context):
                self.graph.edge(node, str(position), self._predicate(child))
        return node


def _kind(attribute: Attribute) -> str:
    if attribute.references is not None:
        return "reference"
    return "enumerated" if attribute.enum is not None else attribute.type


def _json_kind(schema: JsonSchema) -> str:
    kinds = schema.get("anyOf") or [schema]
    return "/".join(
        sorted("enumerated" if "enum" in kind or "const" in kind else str(kind.get("type")) for kind in kinds)
    )
