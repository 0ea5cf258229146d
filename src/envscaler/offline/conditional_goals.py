"""Wishes that the state decides: if something is so, the one thing is to be done, otherwise another or nothing.

Both branches are said, and only a query tells which of them is right.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from envscaler.offline.blueprint import EntityPlan, OperationPlan, ParamPlan
from envscaler.offline.expression import FUNCTIONS, parse
from envscaler.offline.goals import Evidence, Proposal, Read, Step, would_change
from envscaler.offline.interpret import refusal
from envscaler.offline.labels import Row
from envscaler.offline.lookups import lookup_operations
from envscaler.offline.selections import Filter, Relation, Selection, compared, is_noun, noun_of, spoken
from envscaler.offline.situation import Arguments, Situation
from envscaler.offline.standing_rules import conjuncts
from envscaler.state import JsonValue, State

_RELEVANT = 0.7
"""How often a condition is one that a rule of one of the branches is about, where there is such a rule."""
_ONLY_IF = 0.3
"""How often nothing is to be done in the other case."""
_OTHERS = 4
"""Operations looked at for the other branch."""


@dataclass(frozen=True)
class _Condition:
    """Something that is so or not."""

    text: str
    short: str
    """The same where the record has been named just before."""
    holds: bool
    reading: tuple[str, str] | Selection
    reads: frozenset[Read]

    @property
    def selection(self) -> Selection:
        """The records that it is about, if it is about several."""
        assert isinstance(self.reading, Selection)
        return self.reading


@dataclass(frozen=True)
class _Branch:
    """What is done in one of two cases."""

    step: Step
    param: ParamPlan
    """The parameter that names the record that the condition is about."""
    text: str
    short: str
    """The wish where the record has been named just before."""


def conditional(situation: Situation, operation: OperationPlan) -> Iterator[Proposal]:
    """The operation in the case that is given, another one in the other."""
    for taken in _branches(situation, operation):
        entity = situation.blueprint.entity(taken.param.ref or "")
        key = _record_of(situation, taken)
        if key not in situation.untouched(entity):
            continue
        only = _only_if(situation, entity, key, taken)
        first = only is not None and situation.rng.random() < _ONLY_IF
        if only is not None and first:
            yield only
        for other in _others(situation, operation, entity, key):
            proposal = _between(situation, entity, key, taken, other)
            if proposal is not None:
                yield proposal
        if only is not None and not first:
            yield only


def _branches(situation: Situation, operation: OperationPlan) -> Iterator[_Branch]:
    phrases = _phrases(situation, operation)
    for param in situation.references(operation)[: 2 if phrases else 0]:
        phrase = situation.rng.choice(phrases)
        for arguments in situation.found(operation, phrase, most=2):
            wish = situation.wish(operation, phrase, arguments)
            if wish is not None:
                short = _short(situation, operation, phrase, arguments, param) or wish
                yield _Branch(Step(operation, arguments), param, wish, short)


def _short(
    situation: Situation, operation: OperationPlan, phrase: str, arguments: Arguments, param: ParamPlan
) -> str | None:
    phrases = situation.wording.phrases
    place = phrase.replace(f"{{{param.name}}}", "@")
    if not situation.stands_alone(phrase, param) or any(re.search(stop, place) for stop in phrases["no_pronoun"]):
        return None
    entity = situation.blueprint.entity(param.ref or "")
    pronoun = situation.wording.say(f"pronoun_{_kind(entity)}", noun=entity.noun)
    wish = situation.wish(operation, phrase, arguments, {param.name: pronoun})
    for long, short in zip(phrases["of_pronoun"], phrases["own"], strict=True):
        wish = re.sub(long, short, wish) if wish is not None else None
    return wish


def _kind(entity: EntityPlan) -> str:
    """Whether a record is spoken of as a person or as a thing."""
    title = entity.field(entity.title or "")
    return "person" if title is not None and title.make.pick == "person_names" else "thing"


def _said(situation: Situation, key: str, /, **parts: _Branch | _Condition) -> str:
    """A sentence with branches and a condition: the record has its name the first time, where that leaves no doubt."""
    sentence = situation.rng.choice(situation.wording.phrases[key])
    order = sorted(parts, key=lambda name: sentence.index(f"{{{name}}}"))
    first = parts[order[0]]
    # Of several records that were named just before, which one is meant could be misread.
    clear = isinstance(first, _Condition) or (
        len(situation.records(first.step)) == 1
        and all(effect.create is None for effect in first.step.operation.effects)
    )
    if any(isinstance(part, _Condition) and isinstance(part.reading, Selection) for part in parts.values()):
        clear = False
    said = {name: part.short if clear and name != order[0] else part.text for name, part in parts.items()}
    return sentence.format(**said)


def _phrases(situation: Situation, operation: OperationPlan) -> list[str]:
    """Ways of asking in one clause."""
    stops = situation.wording.phrases["clause_stops"]
    return [phrase for phrase in situation.phrases(operation) if not any(stop in phrase for stop in stops)]


def _record_of(situation: Situation, branch: _Branch) -> str:
    named = {param.name: key for param, (_, key) in zip(_given(branch), situation.records(branch.step), strict=True)}
    return named[branch.param.name]


def _given(branch: _Branch) -> list[ParamPlan]:
    arguments = branch.step.arguments
    return [
        param
        for param in branch.step.operation.params
        if param.ref is not None and arguments.get(f"{param.name}_id") is not None
    ]


def _others(situation: Situation, operation: OperationPlan, entity: EntityPlan, key: str) -> Iterator[_Branch]:
    """What else can be asked for with the record; at best something that would work as well."""
    operations = [op for op in situation.asked_for() if op.name != operation.name and _phrases(situation, op)]
    situation.rng.shuffle(operations)
    for op in islice((op for op in operations if any(p.ref == entity.name for p in op.params)), _OTHERS):
        for param in situation.references(op):
            if param.ref != entity.name:
                continue
            phrase = situation.rng.choice(_phrases(situation, op))
            for violate in (None, *range(len(op.requires))):
                found = situation.found(op, phrase, fixed={param.name: key}, violate=violate, most=1, budget=60)
                arguments = next(found, None)
                wish = situation.wish(op, phrase, arguments) if arguments is not None else None
                if arguments is not None and wish is not None:
                    short = _short(situation, op, phrase, arguments, param) or wish
                    yield _Branch(Step(op, arguments), param, wish, short)
                    break


def _between(situation: Situation, entity: EntityPlan, key: str, taken: _Branch, other: _Branch) -> Proposal | None:
    refused = not situation.allowed(other.step.operation, other.step.arguments)
    spared = would_change(situation.blueprint, other.step, situation.state)
    if refused and situation.rng.random() < 0.3:
        if not spared or situation.violated(other.step.operation, other.step.arguments) is None:
            return None
        wish = _said(situation, "conditional_rules", then=other, otherwise=taken)
        return _proposal(situation, wish, taken, (entity.name, key), frozenset(), spared, (other.step,))
    condition = _condition(situation, entity, key, taken, other)
    if condition is None:
        return None
    first, second = (taken, other) if condition.holds else (other, taken)
    wish = _said(situation, "conditional", condition=condition, then=first, otherwise=second)
    return _proposal(situation, wish, taken, condition.reading, condition.reads, spared, ())


def _only_if(situation: Situation, entity: EntityPlan, key: str, taken: _Branch) -> Proposal | None:
    """The operation in one case and nothing in the other."""
    condition = _condition(situation, entity, key, taken, None)
    if condition is None:
        return None
    wish = _said(situation, "only_if", condition=condition, then=taken)
    if condition.holds:
        return _proposal(situation, wish, taken, condition.reading, condition.reads, frozenset(), ())
    spared = would_change(situation.blueprint, taken.step, situation.state)
    return Proposal(
        "conditional",
        wish,
        (),
        situation.records(taken.step),
        (condition.reading,),
        condition.reads,
        spared,
    )


def _proposal(
    situation: Situation,
    wish: str,
    taken: _Branch,
    reading: tuple[str, str] | Selection,
    reads: frozenset[Read],
    spared: frozenset[Evidence],
    refused: tuple[Step, ...],
) -> Proposal:
    records = situation.records(taken.step)
    return Proposal("conditional", wish, (taken.step,), records, (reading,), reads, spared, refused)


# -- conditions ---------------------------------------------------------------------------------------------


def _condition(
    situation: Situation, entity: EntityPlan, key: str, taken: _Branch, other: _Branch | None
) -> _Condition | None:
    """One that decides between the branches: at best one that a rule of theirs is about."""
    rng = situation.rng
    row = situation.state[entity.container][key]
    ruled = [*_ruled(entity, taken), *(_ruled(entity, other) if other is not None else ())]
    general = [*_general(situation, entity, row), *ruled]
    first, second = (ruled, general) if rng.random() < _RELEVANT else (general, ruled)
    pool = first or second
    counted = [
        condition
        for condition in _counted(situation, entity, key)
        if _concerns(condition.selection.entity.name, taken, other)
        and _conceivable(
            situation, _otherwise_counted(situation, condition), other or taken, condition.selection.entity.name
        )
    ]
    if counted and rng.random() < (0.3 if pool else 1.0):
        return rng.choice(counted)
    told = situation.named(entity)[key].fields
    pool = [
        condition
        for condition in pool
        if is_noun(condition.field, situation.wording)
        and condition.field.name not in told
        and not _idle(condition, taken, other)
        and _open(situation, entity, condition)
        and (
            (other is None and condition.fits(row))
            or _conceivable(
                situation, _otherwise(situation, entity, key, condition), other or taken, condition.field.name
            )
        )
    ]
    if not pool:
        return None
    condition = rng.choice(pool)
    wording = situation.wording
    field = noun_of(condition.field, wording)
    label = situation.named(entity)[key].text
    text = wording.say(
        f"condition_{condition.relation}",
        field=field,
        label=label,
        value=spoken(wording, condition.field, condition.value),
        degree=compared(condition.field, condition.relation, wording),
    )
    long, short = wording.say("field_of", field=field, label=label), wording.say(f"field_{_kind(entity)}", field=field)
    reads: frozenset[Read] = frozenset({(entity.name, key, condition.field.name)})
    return _Condition(text, text.replace(long, short), condition.fits(row), (entity.name, key), reads)


def _idle(condition: Filter, taken: _Branch, other: _Branch | None) -> bool:
    """Whether a branch gives the very value that is asked about: nobody says that."""
    branches = (taken, other) if other is not None else (taken,)
    return condition.relation == "is" and any(
        value == condition.value for branch in branches for value in branch.step.arguments.values()
    )


def _open(situation: Situation, entity: EntityPlan, condition: Filter) -> bool:
    """Whether it could as well be otherwise: of an amount that is never less than one nobody asks if it is."""
    return condition.relation == "is" or len(set(map(condition.fits, situation.state[entity.container].values()))) == 2


def _concerns(counted: str, taken: _Branch, other: _Branch | None) -> bool:
    """Whether a branch has to do with records of the kind that a condition counts."""
    operations = [branch.step.operation for branch in (taken, other) if branch is not None]
    return any(
        any(part.id == counted for requirement in operation.requires for part in _names(requirement.when))
        or any(counted in {effect.create, effect.each} for effect in operation.effects)
        for operation in operations
    )


def _names(expression: str) -> list[ast.Name]:
    return [node for node in ast.walk(parse(expression)) if isinstance(node, ast.Name)]


def _conceivable(situation: Situation, states: Iterable[State], branch: _Branch, word: str) -> bool:
    """Whether what is not done now could be done in one of the states in which the condition is otherwise.

    If a rule that reads what the condition is about (`word`) stands against it there too, it had decided before.
    """
    for state in states:
        try:
            refused = refusal(situation.blueprint, branch.step.operation, state, branch.step.arguments)
        except TypeError:
            # With that value alone changed, another one is missing that would come with it.
            continue
        if refused is None or refused.violated is None or not _reads(branch, refused.violated, word):
            return True
    return False


def _otherwise(situation: Situation, entity: EntityPlan, key: str, condition: Filter) -> Iterator[State]:
    """States in which a property of a record is as the condition does not have it now."""
    rows: dict[str, Row] = situation.state[entity.container]
    row, name = rows[key], condition.field.name
    for value in condition.field.enum or dict.fromkeys(there[name] for there in rows.values()):
        changed = {**row, name: value}
        if condition.fits(changed) is not condition.fits(row):
            yield {**situation.state, entity.container: {**rows, key: changed}}


def _otherwise_counted(situation: Situation, condition: _Condition) -> Iterator[State]:
    """States in which there is no such record where there is one now, or one where there is none."""
    selection = condition.selection
    rows: dict[str, Row] = situation.state[selection.entity.container]
    if condition.holds:
        fitting = selection.fitting(situation.state)
        left = {key: row for key, row in rows.items() if key not in fitting}
        yield {**situation.state, selection.entity.container: left}
    else:
        given = {property.field.name: property.value for property in selection.filters}
        for key, row in islice(rows.items(), 2):
            yield {**situation.state, selection.entity.container: {**rows, key: {**row, **given}}}


def _reads(branch: _Branch, index: int, word: str) -> bool:
    """Whether a rule of a branch reads a field or records of an entity by that name."""
    tree = parse(branch.step.operation.requires[index].when)
    return any(word in {getattr(node, "attr", None), getattr(node, "id", None)} for node in ast.walk(tree))


_RELATIONS: dict[type[ast.cmpop], tuple[Relation, int]] = {
    ast.Eq: ("is", 0),
    ast.NotEq: ("is", 0),
    ast.Lt: ("below", 0),
    ast.LtE: ("below", 1),
    ast.Gt: ("above", 0),
    ast.GtE: ("above", -1),
}
"""The relation that decides the same, and what is added to a whole number for it."""


def _ruled(entity: EntityPlan, branch: _Branch) -> Iterator[Filter]:
    """Conditions that a branch's own rules compare a field of the record with."""
    for requirement in branch.step.operation.requires:
        for node in conjuncts(parse(requirement.when)):
            match node:
                case ast.Compare(
                    left=ast.Attribute(value=ast.Name(id=name), attr=attribute),
                    ops=[operator],
                    comparators=[ast.Constant(value=value)],
                ) if name == branch.param.name and type(operator) in _RELATIONS:
                    field = entity.field(attribute)
                    relation, added = _RELATIONS[type(operator)]
                    if field is None or field.type == "bool" or not isinstance(value, (str, int, float)):
                        continue
                    if not added:
                        yield Filter(field, relation, value)
                    elif field.type == "int" and isinstance(value, int):
                        yield Filter(field, relation, value + added)


def _general(situation: Situation, entity: EntityPlan, row: dict[str, JsonValue]) -> Iterator[Filter]:
    """Conditions on any field of the record, one step from being otherwise."""
    for field in entity.fields:
        value = row[field.name]
        if value is None or field.ref is not None:
            continue
        if field.enum is not None:
            for other in (value, *situation.rng.sample(field.enum, min(2, len(field.enum)))):
                yield Filter(field, "is", other)
        elif field.type == "int":
            step = _step(value)
            yield from (Filter(field, "below", value + more) for more in (0, step) if value + more > 0)
            yield from (Filter(field, "above", value - less) for less in (0, step) if value - less >= 0)
        elif field.type == "float":
            step = _step(int(value))
            lower = float(int(value) // step * step)
            yield from (Filter(field, "above", amount) for amount in (lower, lower + step))
        elif field.type == "date":
            yield Filter(field, "before", value)
            yield Filter(field, "before", FUNCTIONS["add_days"](value, 1))
            yield Filter(field, "after", FUNCTIONS["add_days"](value, -1))


def _step(value: int) -> int:
    """The step in which people count such a number: nobody asks whether 700 is below 701."""
    return next(step for step in (100, 50, 10, 5, 1) if (value % step == 0 and value > 2 * step) or step == 1)


def _counted(situation: Situation, entity: EntityPlan, key: str) -> Iterator[_Condition]:
    """Whether there is any record of another kind that names this one."""
    label = situation.named(entity)[key].text
    for other in situation.blueprint.entities:
        if not lookup_operations(situation.blueprint, other.name):
            continue
        for field in other.fields:
            if field.ref != entity.name or not is_noun(field, situation.wording):
                continue
            owned = Filter(field, "of", key, label)
            status = next((plan for plan in other.fields if plan.enum is not None), None)
            for value in status.enum or () if status is not None else ():
                assert status is not None
                selection = Selection(other, (owned, Filter(status, "is", value)))
                reads: frozenset[Read] = frozenset((other.name, None, column) for column in selection.columns)
                holds = bool(selection.fitting(situation.state))
                text = selection.any_phrase(situation.wording)
                yield _Condition(text, text, holds, selection, reads)
