"""Finds arguments for which an operation succeeds, or for which exactly one of its requirements does not hold.

Backtracking over the parameters: a requirement is tested as soon as all that it names is bound.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from envscaler.offline.blueprint import OperationPlan, ParamPlan, Requirement
from envscaler.offline.expression import FUNCTIONS, Scope, evaluate, parse
from envscaler.offline.interpret import tool_parameter, value_fault
from envscaler.offline.labels import path_value
from envscaler.offline.values import Maker
from envscaler.state import JsonValue, State

Candidates = Callable[[ParamPlan], Sequence[str]]
"""Ids that a reference parameter can take, best first."""

_DRAWS = 6
"""Values tried for a parameter that is no reference."""


@dataclass
class Search:
    """One search over the arguments of one operation in one state."""

    operation: OperationPlan
    state: State
    maker: Maker
    violate: int | None = None
    """Index of the requirement that has to fail; None: all have to hold."""
    include: Collection[str] = ()
    """Optional parameters that are given; others are left out."""
    candidates: Candidates | None = None
    """None: all records, in drawn order."""
    budget: int = 500
    """Requirements evaluated at most."""
    edges_first: bool = False
    """Whether values at the border of a requirement are tried before drawn ones."""
    _scope: Scope = field(init=False)

    def found(self) -> Iterator[dict[str, JsonValue]]:
        """Arguments by the tool's parameter names."""
        blueprint = self.maker.blueprint
        self._scope = Scope(blueprint, self.state)
        given: list[ParamPlan] = []
        for param in self.operation.params:
            if not param.optional or param.name in self.include:
                given.append(param)
            else:
                self._scope.values[tool_parameter(blueprint, param)] = param.default if param.ref is None else None
        given.sort(key=lambda param: param.ref is None)
        position = {param.name: index + 1 for index, param in enumerate(given)}
        ready: list[list[int]] = [[] for _ in range(len(given) + 1)]
        for index, requirement in enumerate(self.operation.requires):
            named = parameters_in(requirement.when) & position.keys()
            ready[max((position[name] for name in named), default=0)].append(index)
        if self._hold(ready[0]):
            yield from self._descend(given, ready, 0, {})

    def _descend(
        self, given: list[ParamPlan], ready: list[list[int]], depth: int, arguments: dict[str, JsonValue]
    ) -> Iterator[dict[str, JsonValue]]:
        if depth == len(given):
            yield dict(arguments)
            return
        param = given[depth]
        name = tool_parameter(self.maker.blueprint, param)
        for value in self._domain(param):
            if self.budget <= 0:
                return
            if param.ref is not None:
                container = self.maker.blueprint.entity(param.ref).container
                self._scope.records[param.name] = (param.ref, self.state[container][value])
            self._scope.values[name] = value
            if self._hold(ready[depth + 1]):
                arguments[name] = value
                yield from self._descend(given, ready, depth + 1, arguments)

    def _hold(self, indexes: list[int]) -> bool:
        for index in indexes:
            self.budget -= 1
            try:
                holds = bool(evaluate(self.operation.requires[index].when, self._scope))
            except (KeyError, TypeError, ValueError):
                # An earlier requirement, which does not hold here, is what keeps this one from being read.
                return False
            if holds is (index == self.violate):
                return False
        return True

    def _domain(self, param: ParamPlan) -> Sequence[Any]:
        if param.ref is not None:
            if self.candidates is not None:
                return self.candidates(param)
            keys = list(self.state[self.maker.blueprint.entity(param.ref).container])
            self.maker.rng.shuffle(keys)
            return keys
        drawn = [self.maker.argument(param, self._known) for _ in range(_DRAWS)]
        edges = self._edges(param)
        self.maker.rng.shuffle(edges)
        values = [*edges, *drawn] if self.edges_first else [*drawn, *edges]
        distinct: list[Any] = []
        for value in values:
            if value not in distinct and value_fault(param, value, self.maker.blueprint.language) is None:
                distinct.append(value)
        return distinct

    def _known(self, path: str) -> JsonValue:
        """What templates of a parameter may name: parameters, and records already bound."""
        head, _, rest = path.partition(".")
        if not rest:
            return self._scope.values[head]
        entity_name, record = self._scope.records[head]
        blueprint = self.maker.blueprint
        value, _ = path_value(blueprint, self.state, blueprint.entity(entity_name), record, rest)
        return value

    def _edges(self, param: ParamPlan) -> list[JsonValue]:
        """Values with which a requirement just holds or just fails."""
        edges: list[JsonValue] = []
        for index, requirement in enumerate(self.operation.requires):
            if self.violate is None or index == self.violate:
                for text, entity in compared_with(requirement, param.name):
                    edges += self._evaluated(text, entity)
        if param.type in {"int", "float"}:
            edges += [bound for bound in (param.minimum, param.maximum) if bound is not None]
        out: list[JsonValue] = []
        for value in edges:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                out += _around(value, param.type)
            elif param.type == "int":
                out += [int(value) + step for step in (0, 1, -1)]
            else:
                out += [round(value + step, 2) for step in (0.0, 0.5, -0.5, 1.0)]
        return out

    def _evaluated(self, text: str, entity: str | None) -> list[JsonValue]:
        try:
            if entity is None:
                return [evaluate(text, self._scope)]
            rows = self._scope.rows(entity)[:4]
            return [evaluate(text, self._scope.with_it(entity, row)) for row in rows]
        except (KeyError, TypeError, ValueError):
            return []


def _around(value: JsonValue, kind: str) -> list[JsonValue]:
    if kind == "date" and isinstance(value, str):
        try:
            return [value[:10], *(FUNCTIONS["add_days"](value, step) for step in (1, -1))]
        except ValueError:
            return []
    if kind == "datetime" and isinstance(value, str):
        try:
            return [value, *(FUNCTIONS["add_hours"](value, step) for step in (1, -1))]
        except ValueError:
            return []
    return [value]


@lru_cache(maxsize=20_000)
def parameters_in(text: str) -> frozenset[str]:
    """Names in an expression that can be parameters; `book_id` also names `book`."""
    names = {node.id for node in ast.walk(parse(text)) if isinstance(node, ast.Name)}
    return frozenset(names | {name.removesuffix("_id") for name in names})


def compared_with(requirement: Requirement, name: str) -> list[tuple[str, str | None]]:
    """Expressions that a requirement compares a parameter with, and the entity whose rows they read as `it`."""
    return _compared_with(requirement.when, name)


@lru_cache(maxsize=20_000)
def _compared_with(text: str, name: str) -> list[tuple[str, str | None]]:
    out: list[tuple[str, str | None]] = []

    def visit(node: ast.AST, entity: str | None) -> None:
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in {"count", "exists", "total"}
        ):
            entity = node.args[0].id if node.args and isinstance(node.args[0], ast.Name) else entity
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for left, right in itertools.pairwise(sides):
                for one, other in ((left, right), (right, left)):
                    if isinstance(one, ast.Name) and one.id == name:
                        reads_row = any(isinstance(part, ast.Name) and part.id == "it" for part in ast.walk(other))
                        out.append((ast.unparse(other), entity if reads_row else None))
        for child in ast.iter_child_nodes(node):
            visit(child, entity)

    visit(parse(text), None)
    return out
