"""`Situation`: the state that goals are proposed in, with what can be named, found, asked for and is allowed in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from random import Random

from inflection import singularize

from envscaler.offline.blueprint import Blueprint, EntityPlan, OperationPlan, ParamPlan
from envscaler.offline.expression import CLOCK
from envscaler.offline.goals import Goal, Step
from envscaler.offline.interpret import refusal, tool_parameter
from envscaler.offline.labels import Name, path_value
from envscaler.offline.lookups import lookup_operations
from envscaler.offline.name_book import NameBook
from envscaler.offline.search import Search
from envscaler.offline.values import PLACEHOLDER, Maker
from envscaler.offline.wording import Wording
from envscaler.state import JsonValue, State

Arguments = dict[str, JsonValue]

_FOLLOW_UP = 0.5
"""How often a goal uses a record that an earlier goal created, where it can."""
_BUDGET = 250
"""Requirements evaluated at most in one search."""


@dataclass
class Situation:
    """Where a plan has come to."""

    blueprint: Blueprint
    initial: State
    state: State
    rng: Random
    book: NameBook
    goals: list[Goal]
    located: Collection[tuple[str, str]] = ()
    """(entity, id) of records whose ids earlier calls have shown."""
    wording: Wording = field(init=False)
    maker: Maker = field(init=False)
    _names: dict[str, dict[str, Name]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.wording = self.book.wording
        self.maker = Maker(self.blueprint, self.rng, self.state[CLOCK])

    # -- names ----------------------------------------------------------------------------------------------

    def named(self, entity: EntityPlan) -> dict[str, Name]:
        """The records of an entity that people can name and an agent can find."""
        if entity.name not in self._names:
            found = self.book.of(self.state, entity)
            if not lookup_operations(self.blueprint, entity.name):
                found = {key: name for key, name in found.items() if (entity.name, key) in self.located}
            self._names[entity.name] = found
        return self._names[entity.name]

    def texts(self, entity: EntityPlan) -> dict[str, str]:
        """What people call the records of an entity."""
        return {key: name.text for key, name in self.named(entity).items()}

    def untouched(self, entity: EntityPlan) -> list[str]:
        """Records that can be named, were there at the start and that no goal is about, in drawn order."""
        used = {record for goal in self.goals for record in goal.proposal.records}
        written = {(name, key) for goal in self.goals for name, key, _ in goal.evidence}
        keys = [
            key
            for key in self.named(entity)
            if key in self.initial[entity.container] and not {(entity.name, key)} & (used | written)
        ]
        self.rng.shuffle(keys)
        return keys

    # -- operations -----------------------------------------------------------------------------------------

    @staticmethod
    def phrases(operation: OperationPlan) -> list[str]:
        """Ways of asking that leave out nothing that the operation needs."""
        needed = {param.name for param in operation.params if not param.optional}
        return [phrase for phrase in operation.ask if needed <= named_in(phrase)]

    def asked_for(self) -> list[OperationPlan]:
        """Updates that people ask for."""
        return [op for op in self.blueprint.operations if op.effect == "update" and self.phrases(op)]

    def references(self, operation: OperationPlan) -> list[ParamPlan]:
        """Parameters that name a record and that every call gives, in drawn order."""
        params = [param for param in operation.params if param.ref is not None and not param.optional]
        self.rng.shuffle(params)
        return params

    def found(
        self,
        operation: OperationPlan,
        phrase: str,
        *,
        fixed: Mapping[str, str] | None = None,
        violate: int | None = None,
        most: int = 3,
        budget: int = _BUDGET,
    ) -> Iterator[Arguments]:
        """Arguments that can be named, with which the operation succeeds or just one requirement fails.

        Args:
            fixed: parameter → id that it has to have.
        """
        fixed = fixed or {}

        def candidates(param: ParamPlan) -> list[str]:
            return [fixed[param.name]] if param.name in fixed else self._candidates(param)

        search = Search(
            operation,
            self.state,
            self.maker,
            violate=violate,
            include={param.name for param in operation.params if param.optional and param.name in named_in(phrase)},
            candidates=candidates,
            budget=budget,
        )
        return islice(search.found(), most)

    def _candidates(self, param: ParamPlan) -> list[str]:
        """Records of earlier goals where one follows up, else fresh ones first."""
        entity = self.blueprint.entity(param.ref or "")
        keys = [key for key in self.named(entity) if key in self.state[entity.container]]
        self.rng.shuffle(keys)
        used = {record for goal in self.goals for record in goal.proposal.records}
        follow_up = self.rng.random() < _FOLLOW_UP
        initial = self.initial[entity.container]
        return sorted(keys, key=lambda key: (not (follow_up and key not in initial), (entity.name, key) in used))

    def violated(self, operation: OperationPlan, arguments: Mapping[str, JsonValue]) -> int | None:
        """Index of the requirement that stands against a call now; None if there is none."""
        refused = refusal(self.blueprint, operation, self.state, arguments)
        return refused.violated if refused is not None else None

    def allowed(self, operation: OperationPlan, arguments: Mapping[str, JsonValue]) -> bool:
        """Whether a call would succeed now."""
        return refusal(self.blueprint, operation, self.state, arguments) is None

    def records(self, step: Step) -> tuple[tuple[str, str], ...]:
        """(entity, id) of the records that a call names."""
        return tuple(
            (param.ref, str(step.arguments[parameter]))
            for param in step.operation.params
            if param.ref is not None
            and step.arguments.get(parameter := tool_parameter(self.blueprint, param)) is not None
        )

    # -- words ----------------------------------------------------------------------------------------------

    def wish(
        self,
        operation: OperationPlan,
        phrase: str,
        arguments: Mapping[str, JsonValue],
        instead: Mapping[str, str] | None = None,
    ) -> str | None:
        """The phrase with labels and values put in; None if a part of it has no value.

        Args:
            instead: parameter → text that stands in its place.
        """
        instead = instead or {}
        parts: dict[str, str] = {}
        for path in PLACEHOLDER.findall(phrase):
            head, _, rest = path.partition(".")
            name, _, choice = path.partition(":")
            param = operation.param(name if choice else head)
            if param is None or (rest and head in instead):
                return None
            if head in instead:
                parts[path] = instead[head]
                continue
            value = arguments.get(tool_parameter(self.blueprint, param), param.default)
            text = self._part(param, value, rest, choice) if value is not None else None
            if text is None:
                return None
            parts[path] = text
            if value == 1 and param.type in {"int", "float"}:
                phrase = re.sub(
                    rf"(?<={re.escape(f'{{{path}}}')} )[a-z]+s\b", lambda unit: singularize(unit[0]), phrase
                )
        return PLACEHOLDER.sub(lambda match: parts[match.group(1)], phrase)

    def _part(self, param: ParamPlan, value: JsonValue, rest: str, choice: str) -> str | None:
        if choice:
            yes, _, no = choice.partition("|")
            return yes if value is True else no
        if param.ref is None:
            text = self.wording.spoken(value, param.type)
            return text.replace("_", " ") if param.enum is not None else text
        entity = self.blueprint.entity(param.ref)
        if rest:
            record = self.state[entity.container][value]
            return self.wording.spoken(*path_value(self.blueprint, self.state, entity, record, rest))
        name = self.named(entity).get(value)
        return name.text if name is not None else None

    @staticmethod
    def stands_alone(phrase: str, param: ParamPlan) -> bool:
        """Whether a phrase names a parameter just once and as a whole."""
        places = [path for path in PLACEHOLDER.findall(phrase) if re.split("[.:]", path)[0] == param.name]
        return places == [param.name]


def named_in(phrase: str) -> set[str]:
    """Parameters that a way of asking names."""
    return {re.split("[.:]", path)[0] for path in PLACEHOLDER.findall(phrase)}
