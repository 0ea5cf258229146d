"""Goals that can be reached one after the other from a state, and the calls that reach them.

Every goal changes the state, none undoes an earlier one, and every call succeeds in the interpreter. How a goal reads
in a task is `tasks`' business, how its outcome is checked `checks`'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random

from envscaler.offline.blueprint import Blueprint, EntityPlan, OperationPlan, ParamPlan
from envscaler.offline.expression import CLOCK
from envscaler.offline.interpret import interpret, tool_parameter
from envscaler.offline.labels import Name, label, names, path_value
from envscaler.offline.lookups import Lookups, lookup_operations
from envscaler.offline.search import Search
from envscaler.offline.values import PLACEHOLDER, Maker
from envscaler.offline.wording import Wording
from envscaler.scenario import Binding, SolutionCall
from envscaler.state import JsonValue, State

_TRIES = 4
"""Sets of arguments tried for one operation before another one is taken."""
_FOLLOW_UP = 0.5
"""How often a goal uses a record that an earlier goal created, where it can."""

Evidence = tuple[str, str, str | None]
"""Entity, id and field that a goal changed; no field: the record was created or deleted."""


@dataclass(frozen=True)
class Goal:
    """One wish: an operation with arguments for which it succeeds."""

    operation: OperationPlan
    wish: str
    """The wish as a clause in the imperative."""
    records: tuple[tuple[str, str], ...]
    """(entity, id) of the records that it names."""
    evidence: frozenset[Evidence]
    """What it changed, time stamps and counters left aside."""
    after: State
    """The state once it is reached."""


@dataclass
class Plan:
    """A chain of goals with the calls that reach them."""

    goals: list[Goal] = field(default_factory=list)
    calls: tuple[SolutionCall, ...] = ()

    def final(self, initial: State) -> State:
        """The state at the end."""
        return self.goals[-1].after if self.goals else initial


def make_plan(blueprint: Blueprint, state: State, rng: Random, wording: Wording) -> Plan:
    """A plan of one to four goals; an empty one if no operation that people ask for can succeed."""
    return _Planner(blueprint, state, rng, wording).plan()


def evidence_of(blueprint: Blueprint, before: State, after: State) -> frozenset[Evidence]:
    """What differs between two states, time stamps and counters left aside."""
    out: set[Evidence] = set()
    for entity in blueprint.entities:
        old, new = before[entity.container], after[entity.container]
        if old is new:
            continue
        out |= {(entity.name, key, None) for key in old.keys() ^ new.keys()}
        for key in old.keys() & new.keys():
            if old[key] is not new[key]:
                out |= {
                    (entity.name, key, plan.name)
                    for plan in entity.fields
                    if not plan.stamp and old[key].get(plan.name) != new[key].get(plan.name)
                }
    return frozenset(out)


class _Planner:
    def __init__(self, blueprint: Blueprint, state: State, rng: Random, wording: Wording) -> None:
        self.blueprint = blueprint
        self.initial = state
        self.state = state
        self.rng = rng
        self.wording = wording
        self.maker = Maker(blueprint, rng, state[CLOCK])
        self.lookups = Lookups(blueprint, wording)
        self.goals: list[Goal] = []
        self._names: dict[str, dict[str, Name]] = {}

    def plan(self) -> Plan:
        wanted = self.rng.choices((1, 2, 3, 4), (2, 4, 4, 2))[0]
        operations = [op for op in self.blueprint.operations if op.effect == "update" and self._phrases(op)]
        misses = 0
        while len(self.goals) < wanted and misses < 2 and operations:
            if not self._add_goal(self._ordered(operations)):
                misses += 1
        return Plan(self.goals, tuple(self.lookups.calls))

    def _ordered(self, operations: Sequence[OperationPlan]) -> list[OperationPlan]:
        """Operations in drawn order, those used already last, more demanding ones more often first."""
        used = Counter(goal.operation.name for goal in self.goals)
        return sorted(
            operations,
            key=lambda op: (used[op.name], -(self.rng.random() ** (1 / (1 + min(3, len(op.requires)))))),
        )

    @staticmethod
    def _phrases(operation: OperationPlan) -> list[str]:
        """Ways of asking that leave out nothing that the operation needs."""
        needed = {param.name for param in operation.params if not param.optional}
        return [phrase for phrase in operation.ask if needed <= _named(phrase)]

    def _add_goal(self, operations: Sequence[OperationPlan]) -> bool:
        return any(self._reach(operation) for operation in operations)

    def _reach(self, operation: OperationPlan) -> bool:
        phrase = self.rng.choice(self._phrases(operation))
        search = Search(
            operation,
            self.state,
            self.maker,
            include={param.name for param in operation.params if param.optional and param.name in _named(phrase)},
            candidates=self._candidates,
        )
        for tried, arguments in enumerate(search.found()):
            if self._accept(operation, phrase, arguments):
                return True
            if tried + 1 >= _TRIES:
                break
        return False

    def _candidates(self, param: ParamPlan) -> list[str]:
        """Records that can be named and found: those of earlier goals where one follows up, else fresh ones first."""
        entity = self.blueprint.entity(param.ref or "")
        named = self._named(entity)
        keys = [key for key in named if key in self.state[entity.container]]
        self.rng.shuffle(keys)
        if not lookup_operations(self.blueprint, entity.name):
            keys = [key for key in keys if (entity.name, key) in self.lookups.known]
        used = {record for goal in self.goals for record in goal.records}
        follow_up = self.rng.random() < _FOLLOW_UP
        initial = self.initial[entity.container]
        return sorted(
            keys,
            key=lambda key: (not (follow_up and key not in initial), (entity.name, key) in used),
        )

    def _named(self, entity: EntityPlan) -> dict[str, Name]:
        if entity.name not in self._names:
            self._names[entity.name] = names(self.blueprint, self.state, entity, self.wording)
        return self._names[entity.name]

    def _accept(self, operation: OperationPlan, phrase: str, arguments: dict[str, JsonValue]) -> bool:
        """Take the goal into the plan unless it changes nothing to be seen, hides an earlier one or cannot be found."""
        prediction = interpret(self.blueprint, operation, self.state, arguments)
        if not prediction.success:
            return False
        evidence = evidence_of(self.blueprint, self.state, prediction.state)
        if not self._visible(evidence, prediction.state) or not self._distinct(prediction.state):
            return False
        lookups = self.lookups.fork()
        bindings: dict[str, Binding] = {}
        records: list[tuple[str, str]] = []
        for param in operation.params:
            parameter = tool_parameter(self.blueprint, param)
            if param.ref is None or arguments.get(parameter) is None:
                continue
            binding = lookups.locate(self.blueprint.entity(param.ref), arguments[parameter], self.state)
            if binding is None:
                return False
            bindings[f"/{parameter}"] = binding
            records.append((param.ref, arguments[parameter]))
        wish = self._wish(operation, phrase, arguments)
        if wish is None:
            return False
        self._learn(lookups, prediction.data, prediction.state)
        lookups.calls.append(SolutionCall(name=operation.name, arguments=arguments, bindings=bindings))
        self.lookups = lookups
        self.goals.append(Goal(operation, wish, tuple(records), evidence, prediction.state))
        self.state = prediction.state
        self._names.clear()
        return True

    def _visible(self, evidence: frozenset[Evidence], after: State) -> bool:
        """Whether every goal, the new one too, leaves at the end a mark of its own that was not there at the start."""
        overall = evidence_of(self.blueprint, self.initial, after)
        if not evidence & overall:
            return False
        later: set[Evidence] = set(evidence)
        for goal in reversed(self.goals):
            own = goal.evidence & overall
            # What a later goal changed again no longer shows that this one was reached.
            if not own - later:
                return False
            later |= goal.evidence
        return True

    def _distinct(self, after: State) -> bool:
        """Whether each record created so far is told apart from all others by its label and by its contents."""
        for entity in self.blueprint.created:
            rows = after[entity.container]
            new = [key for key in rows if key not in self.initial[entity.container]]
            fresh = [key for key in new if key not in self.state[entity.container]]
            if not fresh:
                continue
            labels = Counter(
                text.casefold()
                for row in rows.values()
                if (text := label(self.blueprint, after, entity, row, self.wording)) is not None
            )
            contents = Counter(contents_of(entity, rows[key]) for key in new)
            for key in fresh:
                text = label(self.blueprint, after, entity, rows[key], self.wording)
                if contents[contents_of(entity, rows[key])] > 1:
                    return False
                if entity.title is not None and (text is None or labels[text.casefold()] > 1):
                    return False
        return True

    def _learn(self, lookups: Lookups, returned: JsonValue, after: State) -> None:
        """Note the id of a created record where the call's result shows it."""
        if not isinstance(returned, dict):
            return
        for entity in self.blueprint.created:
            key = str(returned.get(entity.key))
            if key in after[entity.container] and key not in self.state[entity.container]:
                lookups.known[entity.name, key] = Binding(call=len(lookups.calls), pointer=f"/data/{entity.key}")

    def _wish(self, operation: OperationPlan, phrase: str, arguments: dict[str, JsonValue]) -> str | None:
        """The phrase with labels and values put in; None if a part of it has no value."""
        parts: dict[str, str] = {}
        for path in PLACEHOLDER.findall(phrase):
            head, _, rest = path.partition(".")
            param = operation.param(head)
            if param is None:
                return None
            value = arguments.get(tool_parameter(self.blueprint, param), param.default)
            if value is None:
                return None
            if param.ref is None:
                spoken = self.wording.spoken(value, param.type)
                parts[path] = spoken.replace("_", " ") if param.enum is not None else spoken
                continue
            entity = self.blueprint.entity(param.ref)
            if rest:
                record = self.state[entity.container][value]
                parts[path] = self.wording.spoken(*path_value(self.blueprint, self.state, entity, record, rest))
            else:
                parts[path] = self._named(entity)[value].text
        return PLACEHOLDER.sub(lambda match: parts[match.group(1)], phrase)


def contents_of(entity: EntityPlan, record: dict[str, JsonValue]) -> str:
    """What a record holds beside its id and its time stamps."""
    return repr([record.get(plan.name) for plan in entity.fields if not plan.stamp])


def _named(phrase: str) -> set[str]:
    return {path.partition(".")[0] for path in PLACEHOLDER.findall(phrase)}
