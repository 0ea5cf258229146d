"""`Scene`: one operation with one of its records left open, and the selections that could say which is meant."""

from __future__ import annotations

import re
from collections.abc import Iterator

from envscaler.offline.blueprint import EntityPlan, OperationPlan, ParamPlan
from envscaler.offline.goals import Step
from envscaler.offline.interpret import tool_parameter
from envscaler.offline.selections import Filter, Order, Selection, can_order, filters_of
from envscaler.offline.situation import Arguments, Situation

_UNFILTERED = 0.3
"""How often records are put in order without being filtered first."""


def scenes(situation: Situation, operation: OperationPlan) -> Iterator[Scene]:
    """The operation with each of its records left open in turn and everything else fixed."""
    phrases = situation.phrases(operation)
    situation.rng.shuffle(phrases)
    for phrase in phrases[:2]:
        for param in situation.references(operation):
            # Two records of the same kind in one wish: which one a description means is hard to follow.
            if not situation.stands_alone(phrase, param) or sum(p.ref == param.ref for p in operation.params) > 1:
                continue
            for arguments in situation.found(operation, phrase, most=1):
                yield Scene(situation, operation, phrase, param, arguments)


class Scene:
    """One operation with one record left open."""

    def __init__(
        self, situation: Situation, operation: OperationPlan, phrase: str, param: ParamPlan, arguments: Arguments
    ) -> None:
        self.situation = situation
        self.operation = operation
        self.phrase = phrase
        self.param = param
        self.arguments = arguments
        self.parameter = tool_parameter(situation.blueprint, param)
        self.entity: EntityPlan = situation.blueprint.entity(param.ref or "")
        rows = situation.initial[self.entity.container]
        self.allowed = {
            key: key in rows and situation.allowed(operation, {**arguments, self.parameter: key})
            for key in situation.state[self.entity.container]
        }
        """Record → whether the operation would succeed with it."""
        self._filters = self._filters_by_field()

    def step(self, key: str) -> Step:
        """The operation with a record put in."""
        return Step(self.operation, {**self.arguments, self.parameter: key})

    def personal(self) -> bool:
        """Whether the wish gives the record a text of its own, such as a telephone number, that none shares."""
        for param in self.operation.params:
            field = self.entity.field(param.name)
            if param.type == "str" and param.enum is None and param.ref is None and field is not None:
                return not field.optional
        return False

    def reads_well(self, places: str) -> bool:
        """Whether the record stands where a description reads well; `places` is a key of the wording."""
        phrase = self.phrase.replace(f"{{{self.param.name}}}", "@")
        return any(re.search(place, phrase) for place in self.situation.wording.phrases[places])

    def wish(self, text: str) -> str | None:
        """The wish with a text in the place of the record."""
        return self.situation.wish(self.operation, self.phrase, self.arguments, {self.param.name: text})

    def one(self, tries: int) -> Iterator[Selection]:
        """Selections of the first record in an order, among all or among some; half of them as the rules allow."""
        for order in self._orders(tries, counts=(1,)):
            yield Selection(self.entity, self._drawn_filters(_UNFILTERED), order, self.situation.rng.random() < 0.5)

    def several(self, tries: int) -> Iterator[Selection]:
        """Selections of all records that fit one or two properties, and of the first few in an order."""
        rng = self.situation.rng
        orders = self._orders(tries, counts=(2, 3))
        for _ in range(tries):
            order = next(orders, None) if rng.random() < 0.4 else None
            filters = self._drawn_filters(_UNFILTERED if order is not None else 0.0)
            if order is None and rng.random() < 0.5:
                filters = (*filters, *self._drawn_filters(0.0))
            if filters or order is not None:
                yield Selection(self.entity, filters, order)

    def _orders(self, tries: int, counts: tuple[int, ...]) -> Iterator[Order]:
        rng = self.situation.rng
        # Of two hours on different days neither is the earlier one.
        dated = any(field.type == "date" for field in self.entity.fields)
        fields = [
            field
            for field in self.entity.fields
            if can_order(field, self.situation.wording) and not (dated and field.type == "time")
        ]
        for _ in range(tries if fields else 0):
            yield Order(rng.choice(fields), rng.random() < 0.5, rng.choice(counts))

    def _drawn_filters(self, none: float) -> tuple[Filter, ...]:
        rng = self.situation.rng
        if not self._filters or rng.random() < none:
            return ()
        return (rng.choice(rng.choice(self._filters)),)

    def _filters_by_field(self) -> list[list[Filter]]:
        situation = self.situation
        names = {
            entity.name: situation.texts(entity)
            for entity in situation.blueprint.entities
            if any(field.ref == entity.name for field in self.entity.fields)
        }
        by_field: dict[str, list[Filter]] = {}
        for condition in filters_of(self.entity, situation.state, names, situation.wording):
            by_field.setdefault(condition.field.name, []).append(condition)
        return list(by_field.values())
