"""The testing agent: makes arguments that should succeed, or that are wrong in exactly one way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from envscaler.offline.blueprint import Blueprint, OperationPlan, ParamPlan
from envscaler.offline.expression import CLOCK
from envscaler.offline.interpret import Prediction, interpret, tool_parameter
from envscaler.offline.search import Search
from envscaler.offline.values import Maker
from envscaler.offline.wording import Wording, wording
from envscaler.probe import valid_arguments, wrong_arguments
from envscaler.roles.types import TestCallInputs, TestCallReply
from envscaler.state import JsonValue, State, encode

Arguments = dict[str, JsonValue]
Attempt = tuple[Arguments, str]
"""Arguments and what the call is to find out."""

_VIOLATIONS = 0.65
"""Share of negative calls that break a rule rather than a type, where the tool has rules."""
_REPEATS = 6
"""Attempts at a call that was not made before."""


def make_test_call(blueprint: Blueprint | None, inputs: TestCallInputs) -> TestCallReply:
    """One test call of `inputs.tool`; without a blueprint it is made from the tool's schema and the state."""
    operation = blueprint.operation(inputs.tool.name) if blueprint is not None else None
    rng = Random(f"{inputs.tool.name}/{inputs.seed}/{inputs.round}/{inputs.case}")
    if blueprint is None or operation is None or CLOCK not in inputs.state:
        return _from_schema(inputs, rng)
    tester = _Tester(blueprint, operation, inputs.state, rng, wording(inputs.language))
    attempts = tester.positive() if inputs.case == "positive" else tester.negative()
    first: Attempt | None = None
    for tried, attempt in enumerate(attempts):
        first = first or attempt
        if encode(attempt[0]).decode() not in inputs.history:
            first = attempt
            break
        if tried + 1 >= _REPEATS:
            break
    assert first is not None  # both ways end with a call that needs nothing of the state
    return TestCallReply(intent=first[1], arguments=first[0])


def _from_schema(inputs: TestCallInputs, rng: Random) -> TestCallReply:
    said = wording(inputs.language)
    if inputs.case == "positive":
        arguments = valid_arguments(inputs.tool, inputs.state, inputs.entities, rng)
        return TestCallReply(intent=said.say("intent_positive", detail=""), arguments=arguments)
    kind, arguments = wrong_arguments(inputs.tool, inputs.state, inputs.entities, rng)
    return TestCallReply(intent=said.say("intent_wrong", kind=kind.replace("_", " ")), arguments=arguments)


class _Tester:
    def __init__(
        self, blueprint: Blueprint, operation: OperationPlan, state: State, rng: Random, said: Wording
    ) -> None:
        self.blueprint = blueprint
        self.operation = operation
        self.state = state
        self.rng = rng
        self.said = said
        self.maker = Maker(blueprint, rng, state[CLOCK])

    # -- calls that succeed ---------------------------------------------------------------------------------

    def positive(self) -> Iterator[Attempt]:
        if not self.operation.params:
            yield {}, self.said.say("intent_plain")
            return
        for _ in range(_REPEATS):
            edge = bool(self.operation.requires) and self.rng.random() < 0.3
            include = self._some_optional()
            arguments = self._found(include=include, edges_first=edge)
            if arguments is None:
                break
            detail = self.said.say("intent_optional") if include else ""
            yield arguments, self.said.say("intent_positive", detail=detail)
        yield self._plausible(), self.said.say("intent_no_success")

    def _some_optional(self) -> set[str]:
        return {param.name for param in self.operation.params if param.optional and self.rng.random() < 0.5}

    def _found(self, **options: Any) -> Arguments | None:
        search = Search(self.operation, self.state, self.maker, **options)
        return next(search.found(), None)

    def _predict(self, arguments: Arguments) -> Prediction:
        return interpret(self.blueprint, self.operation, self.state, arguments)

    def _plausible(self) -> Arguments:
        """Existing records and values of the right type, whatever the rules say."""
        arguments: Arguments = {}
        for param in self.operation.params:
            if param.optional:
                continue
            name = tool_parameter(self.blueprint, param)
            if param.ref is None:
                arguments[name] = self.maker.argument(param, self._unknown)
                continue
            keys = list(self.state[self.blueprint.entity(param.ref).container])
            arguments[name] = self.rng.choice(keys) if keys else self._unused_id(param)
        return arguments

    def _unknown(self, path: str) -> JsonValue:
        raise KeyError(path)

    # -- calls that are refused -----------------------------------------------------------------------------

    def negative(self) -> Iterator[Attempt]:
        violations = list(range(len(self.operation.requires)))
        faults = [*self._faults()]
        self.rng.shuffle(violations)
        self.rng.shuffle(faults)
        by_rule = self._violations(violations)
        by_argument = self._broken(faults)
        order = (by_rule, by_argument) if self.rng.random() < _VIOLATIONS else (by_argument, by_rule)
        for attempts in order:
            yield from attempts
        if not self.operation.params:
            name = "unexpected"
            yield {name: True}, self.said.say("intent_unexpected", name=name)
        else:
            yield {}, self.said.say("intent_missing", name=tool_parameter(self.blueprint, self.operation.params[0]))

    def _violations(self, indexes: list[int]) -> Iterator[Attempt]:
        """Calls that break one rule each."""
        for index in indexes:
            arguments = self._found(violate=index, include=self._needed_for(index), edges_first=self.rng.random() < 0.5)
            if arguments is not None and self._predict(arguments).violated == index:
                yield arguments, self.said.say("intent_violation", rule=self.operation.requires[index].rule)

    def _needed_for(self, index: int) -> set[str]:
        """Optional parameters that a requirement reads: with their default it may never fail."""
        when = self.operation.requires[index].when
        return {param.name for param in self.operation.params if param.optional and param.name in when}

    def _broken(self, faults: list[tuple[ParamPlan, str]]) -> Iterator[Attempt]:
        """Calls with one wrong argument each, otherwise right where that is possible."""
        for param, kind in faults:
            arguments = self._found(include={param.name}) or self._plausible()
            name = tool_parameter(self.blueprint, param)
            noun = self.blueprint.entity(param.ref).noun if param.ref is not None else ""
            if kind == "missing":
                arguments.pop(name, None)
            else:
                arguments[name] = _WRONG[kind](self, param)
            if not self._predict(arguments).success:
                yield arguments, self.said.say(f"intent_{kind}", name=name, noun=noun)

    def _faults(self) -> Iterator[tuple[ParamPlan, str]]:
        """What can be wrong with each parameter."""
        for param in self.operation.params:
            yield param, "wrong_type"
            if not param.optional:
                yield param, "missing"
            if param.ref is not None:
                yield param, "unknown_id"
                yield param, "empty"
            elif param.type in {"int", "float"}:
                if param.minimum is not None or param.maximum is not None:
                    yield param, "extreme"
            elif param.type not in {"bool", "list[str]"}:
                yield param, "empty"
                if param.enum is not None or param.type != "str":
                    yield param, "not_allowed"

    def _unused_id(self, param: ParamPlan) -> str:
        entity = self.blueprint.entity(param.ref or "")
        rows = self.state[entity.container]
        number = self.rng.choice((0, 9000 + self.rng.randint(1, 900), self.rng.randint(1, 99)))
        while f"{entity.prefix}-{number:04d}" in rows:
            number += 1
        return f"{entity.prefix}-{number:04d}"

    def _of_wrong_type(self, param: ParamPlan) -> JsonValue:
        wrong: list[JsonValue] = [{"value": 1}, []]
        if param.type == "list[str]":
            wrong = ["one, two", {"first": "one"}, [1, 2]]
        elif param.type in {"int", "float"}:
            wrong += ["three", "12", True]
        elif param.type == "bool":
            wrong += ["yes", 1]
        else:
            wrong += [12345, True, 3.5]
        return self.rng.choice(wrong)

    def _out_of_range(self, param: ParamPlan) -> JsonValue:
        beyond: list[float] = []
        if param.minimum is not None:
            beyond += [param.minimum - 1, -(10**9)]
        if param.maximum is not None:
            beyond += [param.maximum + 1, 10**12]
        value = self.rng.choice(beyond)
        return int(value) if param.type == "int" else float(value)

    def _not_allowed(self, param: ParamPlan) -> JsonValue:
        wrong = {
            "date": ["tomorrow", "31/12/2025", "2025-13-40", "2025-1-5"],
            "time": ["noon", "25:10", "9:5"],
            "datetime": ["tomorrow at noon", "2025-02-30T10:00:00", "2025-02-10 25:00"],
        }
        if param.enum is not None:
            return self.rng.choice(["unheard_of", param.enum[0].upper() + "!", f"not {param.enum[0]}"])
        return self.rng.choice(wrong[param.type])


_WRONG: dict[str, Callable[[_Tester, ParamPlan], JsonValue]] = {
    "unknown_id": lambda tester, param: tester._unused_id(param),
    "wrong_type": lambda tester, param: tester._of_wrong_type(param),
    "empty": lambda tester, param: tester.rng.choice(["", "   "]),
    "extreme": lambda tester, param: tester._out_of_range(param),
    "not_allowed": lambda tester, param: tester._not_allowed(param),
}
