"""Makes initial states that a blueprint allows, the same for the same seed.

Which records are pressed against the limits of requirements is `limits`' business.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Literal

from envscaler.offline.blueprint import Blueprint, EntityPlan, FieldPlan, Invariant
from envscaler.offline.expression import CLOCK, Scope, evaluate, parse
from envscaler.offline.labels import Row, names_value, path_value
from envscaler.offline.limits import press
from envscaler.offline.standing_rules import Unique, limits_kept, uniques
from envscaler.offline.values import PLACEHOLDER, Maker, plain
from envscaler.offline.wording import telling_words, wording
from envscaler.state import JsonValue, State

Purpose = Literal["assessment", "scenario"]
Direction = Literal["harder", "easier"]

_PRESSED: dict[Direction | None, float] = {None: 0.7, "harder": 1.0, "easier": 0.0}
"""How often records are pressed against the limits of a requirement."""
_ALIKE: dict[Direction | None, float] = {None: 0.4, "harder": 1.0, "easier": 0.0}
"""How often a title is chosen that is easily taken for another record's."""

_ROUNDS = 12
"""Attempts at mending records that break an invariant; the last ones drop some of them, later ones all."""


def make_state(
    blueprint: Blueprint,
    *,
    seed: int,
    index: int,
    purpose: Purpose,
    clock: str | None = None,
    direction: Direction | None = None,
) -> State:
    """An initial state: a container per entity, a counter per created entity, the clock.

    Args:
        direction: make tasks in it harder (more records, titles that are easily taken for one another, records at the
            limits of all requirements) or easier (few records, none of that).
        clock: time of the state, ISO 8601 to the second; None draws one.
    """
    rng = Random(f"{blueprint.slug}/{seed}/{index}/{purpose}")
    return _Draft(blueprint, rng, clock or _some_clock(rng), direction).finished()


def _some_clock(rng: Random) -> str:
    day = datetime(2025, 1, 6) + timedelta(
        days=rng.randint(0, 500), hours=rng.randint(8, 17), minutes=15 * rng.randint(0, 3)
    )
    return day.isoformat()


class _Draft:
    """A state in the making: values as they were drawn, and the state that follows from them."""

    def __init__(self, blueprint: Blueprint, rng: Random, clock: str, direction: Direction | None = None) -> None:
        self.direction = direction
        self.pressed = _PRESSED[direction]
        self.blueprint = blueprint
        self.rng = rng
        self.maker = Maker(blueprint, rng, clock)
        self.state: State = {CLOCK: clock}
        self.drawn: dict[str, dict[str, Row]] = {}
        """Entity → id → values before `only_if` and `derive`."""
        self.numbers: dict[str, int] = {}
        for entity in blueprint.entities:
            self.state[entity.container] = {}
            self.drawn[entity.name] = {}
            self.numbers[entity.name] = rng.choice((1, 1, rng.randint(2, 60)))

    def finished(self) -> State:
        for entity in self.blueprint.entities:
            number = self._number(entity)
            decks = {field.name: deck for field in entity.fields if (deck := self._deck(field, number))}
            for position in range(number):
                key = self.add(entity)
                for name, deck in decks.items():
                    self.drawn[entity.name][key][name] = deck[position]
        if self.pressed:
            press(self)
        self._settle()
        for attempt in count():
            broken, doubled = self._violations(), self._doubled()
            if not broken and not doubled:
                break
            for unique, key in doubled:
                self._tell_apart(unique, key, attempt)
            for invariant, key in broken:
                self._mend(invariant, key, attempt)
            self._settle()
        created = {entity.name for entity in self.blueprint.created}
        for entity in self.blueprint.entities:
            if entity.name in created:
                self.state[entity.counter] = self.numbers[entity.name]
        return self.state

    def _number(self, entity: EntityPlan) -> int:
        least, most = entity.count
        if self.direction == "easier":
            return least
        return most + self.rng.randint(1, 3) if self.direction == "harder" else self.rng.randint(least, most)

    def add(self, entity: EntityPlan) -> str:
        """Draw one more record; its id."""
        number = self.numbers[entity.name]
        self.numbers[entity.name] = number + self.rng.choice((1, 1, 1, 1, 2, 3))
        key = f"{entity.prefix}-{number:04d}"
        self.drawn[entity.name][key] = {entity.key: key}
        self._draw(entity, key)
        return key

    def _draw(self, entity: EntityPlan, key: str) -> None:
        """Values of a record, templates after what they may name; one that is made anew keeps its title."""
        old = self.drawn[entity.name][key]
        record: Row = {entity.key: key}
        self.drawn[entity.name][key] = self.state[entity.container][key] = record
        for field in entity.fields:
            record[field.name] = None
        for templates in (False, True):
            for field in entity.fields:
                if (field.make.text is not None) is templates and field.make.derive is None:
                    named = field.name == entity.title and field.name in old
                    record[field.name] = old[field.name] if named else self._value(entity, record, field)

    def _value(self, entity: EntityPlan, record: Row, field: FieldPlan) -> JsonValue:
        ids: list[str] = []
        if field.ref is not None:
            ids = [key for key in self.state[self.blueprint.entity(field.ref).container] if key != record[entity.key]]
        title = field.name == entity.title or (entity.title is None and field.name == "name")

        def known(path: str) -> JsonValue:
            # What a text says of other values is filled in at the end, when they no longer change; a title has to
            # be told apart from others at once.
            if not title and names_value(entity, path):
                return f"{{{path}}}"
            return path_value(self.blueprint, self.state, entity, record, path)[0]

        def one() -> JsonValue:
            return self.maker.draw(field.make, field.type, enum=field.enum, ids=ids, known=known)

        if title:
            several = self.rng.random() < _ALIKE[self.direction]
            return self._title(entity, record, field, [one() for _ in range(1 + 7 * several)], one)
        return one()

    def _title(
        self, entity: EntityPlan, record: Row, field: FieldPlan, drawn: list[JsonValue], one: Callable[[], JsonValue]
    ) -> JsonValue:
        """A title that no other record has; of several the one that is most easily taken for another record's."""
        own = record[entity.key]
        taken = {str(row[field.name]).casefold() for key, row in self.drawn[entity.name].items() if key != own}
        words = {word for title in taken for word in telling_words(title)}
        free = [title for title in drawn if str(title).casefold() not in taken]
        for _ in range(30):
            if free:
                break
            free = [title for title in (one(),) if str(title).casefold() not in taken]
        if not free:
            # A vocabulary smaller than the container: numbered as shelves, rooms and batches are.
            return wording(self.blueprint.language).say("numbered", title=drawn[0], number=len(taken) + 1)
        return max(free, key=lambda title: len(words & telling_words(str(title))))

    def _deck(self, field: FieldPlan, count: int) -> list[JsonValue]:
        """Values of an enumerated field for all records of an entity: each value once, as far as they go."""
        weights = field.make.weights
        if weights is None or field.make.derive is not None:
            return []
        must = [value for value, weight in weights.items() if weight > 0]
        if count < len(must):
            return []
        rest = self.rng.choices(list(weights), list(weights.values()), k=count - len(must))
        deck = [*must, *rest]
        self.rng.shuffle(deck)
        return list(deck) if field.type == "str" else []

    def _settle(self) -> None:
        """Bring the state in line with the values drawn: `only_if`, then `derive`, until nothing changes."""
        for entity in self.blueprint.entities:
            rows = self.state[entity.container]
            rows.clear()
            rows.update({key: dict(record) for key, record in sorted(self.drawn[entity.name].items())})
        dependent = [
            (entity, field)
            for entity in self.blueprint.entities
            for field in entity.fields
            if field.make.derive is not None
            or field.make.only_if is not None
            or (field.make.text is not None and field.name != entity.title)
        ]
        scope = Scope(self.blueprint, self.state)
        for _ in range(4):
            changed = False
            for entity, field in dependent:
                for key, row in self.state[entity.container].items():
                    inner = scope.with_it(entity.name, row)
                    value = self._dependent(inner, entity, field, self.drawn[entity.name][key][field.name])
                    changed |= row[field.name] != value
                    row[field.name] = value
            if not changed:
                return

    def _dependent(self, scope: Scope, entity: EntityPlan, field: FieldPlan, drawn: JsonValue) -> JsonValue:
        # On the first pass a field that the expression reads may not be there yet; the next pass sees it.
        try:
            if field.make.only_if is not None and not evaluate(field.make.only_if, scope):
                return None
            if field.make.derive is not None:
                return evaluate(field.make.derive, scope)
        except TypeError:
            return None
        if field.make.text is None:
            return drawn
        record = scope.records["it"][1]
        if isinstance(drawn, list):
            return [self._filled(entity, record, text) for text in drawn]
        return self._filled(entity, record, str(drawn))

    def _filled(self, entity: EntityPlan, record: Row, text: str) -> str:
        """A text with the values put in that it names; nothing where there is none."""

        def part(match: re.Match[str]) -> str:
            try:
                value, _ = path_value(self.blueprint, self.state, entity, record, match.group(1))
            except KeyError:
                return ""
            return "" if value is None else plain(value)

        return PLACEHOLDER.sub(part, text) if "{" in text else text

    def _violations(self) -> list[tuple[Invariant, str]]:
        scope = Scope(self.blueprint, self.state)
        return [
            (invariant, key)
            for invariant in (*self.blueprint.invariants, *limits_kept(self.blueprint))
            for key, row in self.state[self.blueprint.entity(invariant.entity).container].items()
            if not _holds(invariant, scope.with_it(invariant.entity, row))
        ]

    def _doubled(self) -> list[tuple[Unique, str]]:
        """Records of which another one is there already that leaves no room for them."""
        scope = Scope(self.blueprint, self.state)
        out: list[tuple[Unique, str]] = []
        for unique in uniques(self.blueprint):
            seen: set[str] = set()
            for key, row in self.state[self.blueprint.entity(unique.entity).container].items():
                if evaluate(unique.among, scope.with_it(unique.entity, row)):
                    values = repr([row[name] for name in unique.fields])
                    if values in seen:
                        out.append((unique, key))
                    seen.add(values)
        return out

    def _tell_apart(self, unique: Unique, key: str, attempt: int) -> None:
        """Change as little of a doubled record as can be; it goes where all other values are taken."""
        entity = self.blueprint.entity(unique.entity)
        rows = self.drawn[entity.name]
        if key not in rows:
            return
        taken = {repr([row[name] for name in unique.fields]) for other, row in rows.items() if other != key}
        choices: list[Row] = []
        for field in entity.fields:
            if field.name in unique.fields and field.make.derive is None:
                known = self.drawn[field.ref] if field.ref is not None else ()
                values = list(known) or [self._value(entity, dict(rows[key]), field) for _ in range(5)]
                choices += [{field.name: value} for value in values]
        self.rng.shuffle(choices)
        free = (row for row in choices if repr([{**rows[key], **row}[name] for name in unique.fields]) not in taken)
        change = next(free, None)
        if change is None or attempt >= _ROUNDS:
            self._drop(entity, key)
        else:
            rows[key].update(change)

    def _mend(self, invariant: Invariant, key: str, attempt: int) -> None:
        entity = self.blueprint.entity(invariant.entity)
        if key not in self.drawn[entity.name]:
            return
        # Where records are counted, it is mostly one of them that is too many.
        readers = self._readers(invariant, entity, key)
        dropping = attempt >= _ROUNDS - 4
        if readers and (dropping or attempt % 3 != 2):
            reader = self.rng.choice(readers)
            if dropping:
                self._drop(*reader)
            else:
                self._draw(*reader)
        elif attempt < _ROUNDS - 1:
            self._draw(entity, key)
        else:
            self._drop(entity, key)

    def _readers(self, invariant: Invariant, entity: EntityPlan, key: str) -> list[tuple[EntityPlan, str]]:
        """Records that the invariant counts and that reference the record."""
        named = {node.id for node in ast.walk(parse(invariant.holds)) if isinstance(node, ast.Name)}
        return [
            (other, other_key)
            for other in self.blueprint.entities
            if other.name in named
            for field in other.fields
            if field.ref == entity.name
            for other_key, row in self.drawn[other.name].items()
            if row[field.name] == key and other_key != key
        ]

    def _drop(self, entity: EntityPlan, key: str) -> None:
        """Remove a record and, so that references hold, those that name it."""
        if self.drawn[entity.name].pop(key, None) is None:
            return
        for other in self.blueprint.entities:
            for field in other.fields:
                if field.ref == entity.name:
                    for other_key, row in list(self.drawn[other.name].items()):
                        if row[field.name] == key:
                            if field.optional:
                                row[field.name] = None
                            else:
                                self._drop(other, other_key)


def _holds(invariant: Invariant, scope: Scope) -> bool:
    try:
        return bool(evaluate(invariant.holds, scope))
    except TypeError:
        return False
