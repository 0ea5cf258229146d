"""The structure of a finished program with all names taken away, as one signature and as a distance between two.

What is left is a labelled graph, read from the methods' syntax trees, whoever wrote them: which containers reference
which, and per tool what it reads, what each condition that leads to a refusal looks like, and what it changes. Names,
texts, constants, docstrings, the order of tools and attributes that no tool uses do not count. Whether a program is
any good is not asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from envscaler.program.colours import Colours, Graph, Node, colour_distance
from envscaler.program.effects import Effects, Fact
from envscaler.program.module_facts import ModuleFacts, schema_kind
from envscaler.program.schemas import tool_schemas
from envscaler.program.terms import Sorts, Term, Terms
from envscaler.skeleton import Entity, EnvSkeleton

MEASURE = 2
"""Version of the measure: signatures of different versions do not compare."""


@dataclass(frozen=True)
class Structure:
    """What is left of a program without its names."""

    signature: str
    """The same for two programs that differ only in names, texts, constants, order and unused attributes."""
    colours: Colours
    """How often each kind of node occurs, with what is around it."""


def structure_of(skeleton: EnvSkeleton) -> Structure:
    """The structure of an environment.

    Colour refinement never tells apart what is the same, so that two different signatures prove a difference. It
    overlooks differences only between graphs that are regular in an unusual way.

    Raises:
        ProgramError: if the program does not parse or lacks the class.
    """
    graph = program_graph(
        skeleton.source, skeleton.class_name, [tool.name for tool in skeleton.tools], skeleton.entities
    )
    return Structure(graph.signature(), graph.colours())


def structure_signature(skeleton: EnvSkeleton) -> str:
    """The signature of an environment's structure."""
    return structure_of(skeleton).signature


def structure_distance(first: EnvSkeleton, second: EnvSkeleton) -> float:
    """Share of node colours that two environments do not share: 0.0 same structure, 1.0 nothing in common."""
    return colour_distance(structure_of(first).colours, structure_of(second).colours)


def program_graph(source: str, class_name: str, tools: Iterable[str], entities: Iterable[Entity] = ()) -> Graph:
    """The graph of a program.

    Args:
        tools: names of the methods that are tools.
        entities: the state schema, where it is known; it may declare references that no tool shows by using them.

    Raises:
        ProgramError: if the program does not parse or lacks the class.
    """
    builder = _Builder(source, class_name)
    for name in dict.fromkeys(tools):
        builder.tool(name)
    builder.references(entities)
    return builder.graph


class _Builder:
    """Adds a tool at a time; a container or an attribute becomes a node when something first uses it."""

    def __init__(self, source: str, class_name: str) -> None:
        self.graph = Graph()
        self._module = ModuleFacts(source, class_name)
        self._schemas = tool_schemas(source, class_name)
        self._terms = Terms()
        self._sorts = Sorts()
        self._effects = Effects(self._module, self._terms, self._sorts)
        self._state: dict[Term, Node] = {}
        """Nodes of containers and attributes, which all tools share."""
        self._containers: dict[str, Node] = {}
        self._late: list[tuple[Node, tuple[tuple[Term, Term], ...], dict[Term, Node]]] = []

    def tool(self, name: str) -> None:
        """Add what one tool requires, changes and gives back."""
        function = self._module.functions.get(name)
        if function is None:
            return
        schema = self._schemas.get(name, {})
        required = set(schema.get("required", ()))
        parameters = {
            parameter: self._terms.term(
                f"parameter {schema_kind(part)}{'' if parameter in required else ' or none'}",
                identity=f"{name}\n{parameter}",
            )
            for parameter, part in schema.get("properties", {}).items()
        }
        node = self.graph.node("tool")
        drawn: dict[Term, Node] = {}
        for parameter in parameters.values():
            self.graph.edge(node, "takes", self._node(parameter, drawn))
        for fact in self._effects.tool(function, parameters):
            self._fact(node, fact, drawn)

    def references(self, entities: Iterable[Entity]) -> None:
        """Add which attribute holds ids of which container, and the defaults of attributes that are used."""
        for node, defaults, drawn in self._late:
            for attribute, value in defaults:
                if attribute in self._state:
                    self._set(node, attribute, value, drawn)
        held: dict[Term, set[str]] = {}
        for term, container in self._sorts.keys:
            held.setdefault(self._sorts.root(term), set()).add(container)
        named = {self._terms.identity(term): node for term, node in self._state.items()}
        edges = {
            (node, container)
            for term, node in self._state.items()
            if self._terms.label(term).startswith("attribute")
            for container in held.get(self._sorts.root(term), ())
        }
        entities = tuple(entities)
        places = {entity.name: entity.container for entity in entities}
        for entity in entities:
            for declared in entity.attributes:
                own = named.get(f"{entity.container}\n{declared.name}")
                target = places.get(declared.references or "")
                if own is not None and target is not None:
                    edges.add((own, target))
        for node, container in sorted(edges):
            if container in self._containers:
                self.graph.edge(node, "references", self._containers[container])

    def _fact(self, tool: Node, fact: Fact, drawn: dict[Term, Node]) -> None:
        node = self.graph.node(fact.kind)
        self.graph.edge(tool, "does", node)
        for role, term in fact.parts:
            self.graph.edge(node, role, self._node(term, drawn))
        for attribute, value in fact.sets:
            self._set(node, attribute, value, drawn)
        if fact.defaults:
            self._late.append((node, fact.defaults, drawn))

    def _set(self, node: Node, attribute: Term, value: Term, drawn: dict[Term, Node]) -> None:
        made = self.graph.node("set")
        self.graph.edge(node, "sets", made)
        self.graph.edge(made, "attribute", self._node(attribute, drawn))
        self.graph.edge(made, "value", self._node(value, drawn))

    def _node(self, term: Term, drawn: dict[Term, Node]) -> Node:
        label = self._terms.label(term)
        shared = label.startswith(("container ", "attribute "))
        known = (self._state if shared else drawn).get(term)
        if known is not None and not label.startswith("constant"):
            return known
        node = self.graph.node(label)
        (self._state if shared else drawn)[term] = node
        identity = self._terms.identity(term)
        if label.startswith("container "):
            self._containers[identity] = node
        elif label.startswith("attribute "):
            container = identity.split("\n")[0]
            if container:
                owner = self._node(self._effects.container(container).term, drawn)
                self.graph.edge(owner, "has", node)
        for role, part in self._terms.parts(term):
            self.graph.edge(node, role, self._node(part, drawn))
        return node
