"""`Terms`: what the expressions of a program stand for, without names: equal meanings are one term.

Terms are nodes of a shared tree: a label, and parts with roles. Which expression has which term is `expressions`'
business, what becomes of them `structure`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Term = int
Role = str

_OPPOSITES = {
    "Eq": "NotEq",
    "NotEq": "Eq",
    "In": "NotIn",
    "NotIn": "In",
    "Is": "IsNot",
    "IsNot": "Is",
    "present": "absent",
    "absent": "present",
    "And": "Or",
    "Or": "And",
}
_UNORDERED = frozenset({"Eq", "NotEq", "And", "Or", "Add", "Mult", "Is", "IsNot"})


class Terms:
    """The terms of one program; a term is a number, and the same label with the same parts is the same number."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, tuple[tuple[Role, Term], ...]], Term] = {}
        self._labels: list[str] = []
        self._parts: list[tuple[tuple[Role, Term], ...]] = []
        self._identities: list[str] = []

    def term(self, label: str, *parts: tuple[Role, Term], identity: str = "") -> Term:
        """The term of that label with those parts.

        Args:
            identity: keeps apart terms that are different things under one label; it is no part of what they are.
        """
        key = (label, identity, parts)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self._labels)
            self._labels.append(label)
            self._parts.append(parts)
            self._identities.append(identity)
        return known

    def operation(self, label: str, parts: Iterable[Term]) -> Term:
        """An operation; the order of its parts counts only where it does for the operation."""
        listed = list(parts)
        if label in {"And", "Or"}:
            listed = list(self._flattened(label, listed))
            if len(listed) == 1:
                return listed[0]
        if label in _UNORDERED:
            return self.term(label, *sorted(("part", part) for part in listed))
        return self.term(label, *((str(position), part) for position, part in enumerate(listed)))

    def negated(self, term: Term) -> Term:
        """The term that holds where this one does not."""
        label, parts = self._labels[term], self._parts[term]
        if label == "not":
            return parts[0][1]
        if label in {"And", "Or"}:
            return self.operation(_OPPOSITES[label], [self.negated(part) for _, part in parts])
        if label in _OPPOSITES:
            return self.term(_OPPOSITES[label], *parts)
        if label in {"Lt", "LtE"}:
            # not (a < b) is b <= a
            return self.operation("LtE" if label == "Lt" else "Lt", [part for _, part in reversed(parts)])
        return self.term("not", ("0", term))

    def alternatives(self, term: Term, kind: Literal["And", "Or"]) -> tuple[Term, ...]:
        """The parts of a conjunction or disjunction; of anything else the term itself."""
        return tuple(part for _, part in self._parts[term]) if self._labels[term] == kind else (term,)

    def label(self, term: Term) -> str:
        """What kind of thing a term is."""
        return self._labels[term]

    def identity(self, term: Term) -> str:
        """Which of several things of a kind it is."""
        return self._identities[term]

    def parts(self, term: Term) -> tuple[tuple[Role, Term], ...]:
        """The parts of a term with their roles."""
        return self._parts[term]

    def _flattened(self, label: str, parts: Iterable[Term]) -> Iterator[Term]:
        for part in parts:
            if self._labels[part] == label:
                yield from (inner for _, inner in self._parts[part])
            else:
                yield part


class Sorts:
    """Which terms hold the same kind of value, such as ids of one container: learnt from how they are compared."""

    def __init__(self) -> None:
        self._above: dict[Term, Term] = {}
        self.keys: list[tuple[Term, str]] = []
        """Terms that are keys of a container."""

    def same(self, first: Term, second: Term) -> None:
        """Two terms hold the same kind of value."""
        one, other = self.root(first), self.root(second)
        if one != other:
            self._above[max(one, other)] = min(one, other)

    def key(self, term: Term, container: str) -> None:
        """A term is a key of a container."""
        self.keys.append((term, container))

    def root(self, term: Term) -> Term:
        """The term that stands for all that hold the same."""
        while term in self._above:
            term = self._above[term]
        return term


@dataclass(frozen=True, eq=False)
class Constant:
    """A literal of the program; what it is never counts, whether it is true may."""

    value: object


@dataclass(frozen=True, eq=False)
class Value:
    """What an expression gives, as far as its text tells."""

    term: Term
    container: str | None = None
    """The state attribute that it is."""
    record: str | None = None
    """The state attribute that it is a part (or a copy of a part) of."""
    stored: bool = False
    """Whether a change of it changes the state."""
    key: Term | None = None
    """The key under which it stands in its container."""
    element: Value | None = None
    """What going through it gives."""
    fields: dict[str, Value] | None = None
    """The entries of a dict that was written with its keys."""
    members: tuple[Value, ...] | None = None
    """The members of a tuple that was written out."""
    cases: tuple[tuple[tuple[Term, ...], Value], ...] = ()
    """What it can be, in order, each with what must hold for it."""
    constant: Constant | None = None
    text: bool = False
    """Whether it is a text put together for somebody to read."""

    @property
    def truth(self) -> bool | None:
        """Whether it counts as true; None: not known."""
        if self.constant is not None:
            return bool(self.constant.value)
        if self.fields is not None:
            return bool(self.fields)
        return True if self.text else None

    @property
    def is_none(self) -> bool | None:
        """Whether it is None; None: not known."""
        if self.constant is not None:
            return self.constant.value is None
        return False if self.text or self.fields is not None else None
