"""`Graph`: a graph with labelled nodes and edges, and its refined colours (Weisfeiler–Lehman).

A node's colour says what it is and, round by round, what surrounds it. It knows nothing of environments.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b

Node = int
Colours = Counter[int]
"""How often each colour occurs in a graph."""

_NEAR = 2
"""Rounds of refinement by which likeness is measured: more of them, and one difference is seen everywhere."""


class Graph:
    """Nodes with labels, and directed edges with roles."""

    def __init__(self) -> None:
        self._labels: list[str] = []
        self._edges: list[list[tuple[str, Node]]] = []

    def node(self, label: str) -> Node:
        """A new node."""
        self._labels.append(label)
        self._edges.append([])
        return len(self._labels) - 1

    def edge(self, source: Node, role: str, target: Node) -> None:
        """An edge; both its ends see it."""
        self._edges[source].append((f">{role}", target))
        self._edges[target].append((f"<{role}", source))

    def signature(self) -> str:
        """The same for two graphs that differ only in the order of nodes and edges."""
        colours = [_hash([label]) for label in self._labels]
        kinds = len(set(colours))
        while True:
            colours = self._refined(colours)
            if len(set(colours)) == kinds:
                break
            kinds = len(set(colours))
        return _hash(sorted(colours)).hex()

    def colours(self) -> Colours:
        """How often each colour occurs, in the first rounds taken together."""
        colours = [_hash([label]) for label in self._labels]
        counted = Counter(colours)
        for _ in range(_NEAR):
            colours = self._refined(colours)
            counted.update(colours)
        return Counter({int.from_bytes(colour[:8]): count for colour, count in counted.items()})

    def _refined(self, colours: Sequence[bytes]) -> list[bytes]:
        return [
            _hash([own, *sorted(role.encode() + colours[other] for role, other in edges)])
            for own, edges in zip(colours, self._edges, strict=True)
        ]


def colour_distance(first: Colours, second: Colours) -> float:
    """Share of node colours that two graphs do not share: 0.0 all shared, 1.0 nothing in common."""
    every = first | second
    return round(1.0 - (first & second).total() / every.total(), 4) if every else 0.0


def _hash(parts: Sequence[str | bytes]) -> bytes:
    hasher = blake2b(digest_size=16)
    for part in parts:
        # A separator that no colour can imitate, since a length stands before each part.
        raw = part.encode() if isinstance(part, str) else part
        hasher.update(len(raw).to_bytes(4) + raw)
    return hasher.digest()
