"""`Search`: changes of a state under which a check may hold, made from what the check's code and sentence say.

They are candidates only: which of them the check accepts is found by running it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from envscaler.audit.demands import ANY, TODAY, Demand, Reading
from envscaler.audit.mentions import Mentions, named_records
from envscaler.editing import Edit
from envscaler.proof.fields import Fields
from envscaler.state import JsonValue, State

MADE = "audit-1"
"""Id of a record that is made."""
_MOST = 400
_RECORDS = 8
"""Records of a container that are tried in turn."""
_ALTERNATIVES = 3
"""Values for one place that are tried in turn."""
_COMBINED = 40


@dataclass(frozen=True)
class Candidate:
    """Changes of a state."""

    edits: tuple[Edit, ...]
    way: str
    """`named`: records that the check names; `made`: a new record; `old`: a record that was there; `every`: all of a
    container; `removed`; `told`: a value that the sentence names, somewhere."""
    records: tuple[tuple[str, str], ...]
    """The records that are changed, made or removed: container and key."""


class Search:
    """Candidates for one check."""

    def __init__(self, state: State, clock: str, fields: Fields, reading: Reading, sentence: Mentions) -> None:
        """
        Args:
            clock: the time at which the check is to run.
        """
        self._state = state
        self._clock = clock
        self._spelled = {key.lower(): key for ids in fields.containers.values() for key in ids}
        self._fields = fields
        self._sentence = sentence
        self._named = list(dict.fromkeys(named_records(sentence, state)))
        self._fixed: dict[tuple[str, str], list[Demand]] = {}
        self._free: dict[str, list[Demand]] = {}
        self._top: list[Demand] = []
        self._gone: list[tuple[str, str]] = []
        for demand in reading.demands:
            self._sort(self._literal(demand))

    def candidates(self) -> list[Candidate]:
        """All of them, the likely ones first."""
        return [_tidy(candidate) for candidate in itertools.islice(self._candidates(), _MOST)]

    # -- what is asked for ----------------------------------------------------------------------------------

    def _literal(self, demand: Demand) -> Demand:
        """The demand with the value that it means: a date for today, an id as it is spelled, something for a yes."""
        path, relation, value = demand.path, demand.relation, demand.value
        if value == TODAY:
            return Demand(path, relation, self._clock[:10])
        if isinstance(value, str) and value in self._spelled:
            return Demand(path, relation, self._spelled[value])
        if relation == "yes" or (value is None and relation in ("is", "is_not")) or (value == "" and relation == "is"):
            usual = [other for other in self._usual(path) if other not in (None, False, "")]
            timely = path and any(word in path[-1] for word in ("date", "time", "_at", "_on"))
            return Demand(path, "yes", usual[0] if usual else self._clock if timely else True)
        return demand

    def _usual(self, path: tuple[str, ...]) -> list[JsonValue]:
        """The values that such a part has in the state."""
        records = self._state.get(path[0]) if path else None
        if len(path) != 3 or not isinstance(records, dict):
            return []
        return [record.get(path[2]) for record in records.values() if isinstance(record, dict)]

    def _sort(self, demand: Demand) -> None:
        path = demand.path
        is_container = bool(path) and (path[0] in self._fields.containers or self._state.get(path[0]) == {})
        if len(path) == 1 and is_container and isinstance(demand.value, str):
            if demand.relation == "gone":
                self._gone.append((path[0], demand.value))
            elif demand.relation == "there":
                self._fixed.setdefault((path[0], demand.value), [])
        elif len(path) >= 2 and is_container and path[1] != ANY:
            self._fixed.setdefault((path[0], path[1]), [])
            if len(path) > 2:
                self._fixed[path[0], path[1]].append(demand)
        elif len(path) > 2 and is_container:
            self._free.setdefault(path[0], []).append(demand)
        elif path and not is_container:
            self._top.append(demand)

    # -- candidates -----------------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Candidate]:
        fixed = [
            change for (container, key), asked in self._fixed.items() for change in self._set(container, key, asked)
        ]
        records = tuple(self._fixed)
        top = [edit for demand in self._top for edit in self._top_edits(demand)]
        if fixed or top:
            yield Candidate((*fixed, *top), "named", records)
            yield Candidate(tuple(fixed), "named", records)
        yield from self._removed()
        choices = [list(self._free_choices(container, asked)) for container, asked in self._free.items()]
        for chosen in itertools.islice(itertools.product(*choices), _COMBINED) if choices else ():
            parts = [part for part in chosen if part is not None]
            if parts:
                edits = tuple(edit for part in parts for edit in part.edits)
                touched = tuple(record for part in parts for record in part.records)
                yield Candidate((*fixed, *top, *edits), parts[0].way, (*touched, *(records if fixed else ())))
        for options in choices:
            for option in options:
                if option is not None:
                    yield option
                    if fixed:
                        yield Candidate((*fixed, *option.edits), option.way, (*option.records, *records))
        for container, asked in self._free.items():
            yield from self._every(container, asked)
        yield from self._told()

    def _set(self, container: str, key: str, asked: Sequence[Demand]) -> Iterator[Edit]:
        records = self._state.get(container)
        if not isinstance(records, dict):
            return
        if key not in records:
            yield [[container, key], self._new(container, key, next(iter(records), None), asked, 0)]
            return
        for demand in asked:
            yield from _edits(records[key], (container, key), demand.path[2:], demand)

    def _new(self, container: str, key: str, like: str | None, asked: Sequence[Demand], choice: int) -> JsonValue:
        model = self._state[container].get(like) if like is not None else None
        record: Any = {}
        if isinstance(model, dict):
            record = {name: key if value == like else value for name, value in model.items()}
        for demand in _picked(asked, choice):
            for change in _edits(record, (), demand.path[2:], demand):
                _put(record, change)
        return record

    def _free_choices(self, container: str, asked: Sequence[Demand]) -> Iterator[Candidate | None]:
        """Ways to have one record that is as asked for; None where there is one."""
        records = self._state.get(container)
        if not isinstance(records, dict):
            return
        own = [key for named, key in self._named if named == container and key in records]
        others = [key for key in records if key not in own]
        if any(_satisfies(records[key], asked) for key in records):
            yield None
        order = [*own, *others][:_RECORDS]
        choices = range(_ALTERNATIVES if _has_alternatives(asked) else 1)
        references = [demand for demand in asked if demand.relation == "refers"]
        plain = [demand for demand in asked if demand.relation != "refers"]
        for choice in choices:
            for like in order[:3] or [None]:
                for filled in self._referring(references):
                    made = self._new(container, MADE, like, [*plain, *filled], choice)
                    yield Candidate(([[container, MADE], made],), "made", ((container, MADE),))
        for choice in choices:
            for key in order:
                for filled in self._referring(references):
                    edits = [
                        edit
                        for demand in _picked([*plain, *filled], choice)
                        for edit in _edits(records[key], (container, key), demand.path[2:], demand)
                    ]
                    if edits:
                        yield Candidate(tuple(edits), "old", ((container, key),))

    def _referring(self, references: Sequence[Demand]) -> Iterator[list[Demand]]:
        """The references filled with ids: those of records that the sentence names, else of the first ones."""
        if not references:
            yield []
            return
        for number in range(2):
            out = []
            for demand in references:
                container = str(demand.value)
                ids = [key for named, key in self._named if named == container]
                ids += [key for key in self._fields.containers.get(container, ()) if key not in ids]
                if ids:
                    out.append(Demand(demand.path, "is", ids[min(number, len(ids) - 1)]))
            yield out

    def _every(self, container: str, asked: Sequence[Demand]) -> Iterator[Candidate]:
        """All records as asked for, or none of them as it is asked about."""
        records = self._state.get(container)
        if not isinstance(records, dict) or len(records) > 200:
            return
        touched = tuple((container, key) for key in records)
        edits = [
            edit
            for key, record in records.items()
            for demand in asked
            for edit in _edits(record, (container, key), demand.path[2:], demand)
        ]
        if edits:
            yield Candidate(tuple(edits), "every", touched)
        for demand in asked:
            if demand.relation != "is" or len(demand.path) != 3:
                continue
            name = demand.path[2]
            matching = [
                key for key, record in records.items() if isinstance(record, dict) and record.get(name) == demand.value
            ]
            for text in self._sentence.texts[:3]:
                if matching and text != demand.value:
                    yield Candidate(
                        tuple([[container, key, name], text] for key in matching),
                        "every",
                        tuple((container, key) for key in matching),
                    )

    def _removed(self) -> Iterator[Candidate]:
        wanted = [record for record in self._gone if record[1] in (self._state.get(record[0]) or {})]
        if wanted:
            yield Candidate(tuple([list(record)] for record in wanted), "removed", tuple(wanted))
        for record in self._named:
            yield Candidate(([list(record)],), "removed", (record,))
            container, key = record
            # What belongs to it may be what is to go.
            for other, records in self._state.items():
                if other == container or not isinstance(records, dict):
                    continue
                owned = [name for name, value in records.items() if isinstance(value, dict) and key in value.values()]
                if owned:
                    yield Candidate(
                        tuple([[other, name]] for name in owned), "removed", tuple((other, name) for name in owned)
                    )

    def _told(self) -> Iterator[Candidate]:
        """Each field of the records that the sentence names with each value that it names."""
        values: list[JsonValue] = [*self._sentence.texts, *self._sentence.numbers]
        for container, key in self._named[:4]:
            record = self._state[container][key]
            if not isinstance(record, dict):
                continue
            for name, value in record.items():
                for wanted in values:
                    if isinstance(wanted, str) == isinstance(value, str) and not isinstance(value, (dict, list, bool)):
                        number = int(wanted) if type(value) is int and isinstance(wanted, float) else wanted
                        yield Candidate(([[container, key, name], number],), "told", ((container, key),))

    def _top_edits(self, demand: Demand) -> Iterator[Edit]:
        yield from _edits(self._state.get(demand.path[0]), (demand.path[0],), demand.path[1:], demand)


def _edits(value: JsonValue, at: tuple[str, ...], rest: Sequence[str], demand: Demand) -> Iterator[Edit]:
    """Changes of `value`, which stands `at` a path, that make the part at `rest` as asked for."""
    if not rest:
        wanted = _wanted(value, demand)
        if wanted is not _NOTHING:
            yield [list(at), wanted]
        return
    head, *tail = rest
    if head == ANY:
        if isinstance(value, list):
            if not tail:
                wanted = _wanted(None, demand)
                if wanted is not _NOTHING:
                    yield [[*at, len(value)], wanted]
            else:
                for index in range(min(len(value), 1)):
                    yield from _edits(value[index], (*at, str(index)), tail, demand)
        elif isinstance(value, dict):
            for key in list(value)[:1]:
                yield from _edits(value[key], (*at, key), tail, demand)
        elif isinstance(value, str):
            yield from _edits(value, at, tail, demand)  # a part of a text that the check takes apart
        return
    if isinstance(value, dict):
        if head in value or not tail:
            yield from _edits(value.get(head), (*at, head), tail, demand)
    elif value is None and at and not tail:
        wanted = _wanted(None, demand)
        if wanted is not _NOTHING:
            yield [list(at), {head: wanted}]


def _tidy(candidate: Candidate) -> Candidate:
    """The same without edits that later ones make void."""
    last = {tuple(map(str, change[0])): change for change in candidate.edits}
    return replace(candidate, edits=tuple(last.values()))


_NOTHING = object()


def _wanted(value: JsonValue, demand: Demand) -> Any:
    asked = demand.value
    match demand.relation:
        case "is" | "among":
            return asked
        case "is_not":
            # As a rule it is `if x != wanted: return False`.
            return asked if value != asked else f"{asked} other" if isinstance(asked, str) else _NOTHING
        case "above" | "below":
            step = 1 if demand.relation == "above" else -1
            return asked + step if isinstance(asked, (int, float)) and not isinstance(asked, bool) else _NOTHING
        case "contains" | "there":
            if isinstance(value, list):
                return [*value, asked] if asked not in value else _NOTHING
            if isinstance(value, dict):
                return {**value, str(asked): True} if str(asked) not in value else _NOTHING
            return asked if not isinstance(value, (int, float)) else _NOTHING
        case "yes":
            # `if entry["deleted"]: return False` asks for the contrary.
            return False if value is True else asked if value in (None, False, "") else _NOTHING
        case _:
            return _NOTHING


def _put(record: Any, change: Edit) -> None:
    container = record
    for token in change[0][:-1]:
        container = container[int(token)] if isinstance(container, list) else container.setdefault(token, {})
    if isinstance(container, list):
        container.append(change[1])
    elif change[0]:
        container[change[0][-1]] = change[1]


def _satisfies(record: JsonValue, asked: Sequence[Demand]) -> bool:
    return isinstance(record, dict) and all(
        record.get(demand.path[2]) == demand.value
        for demand in asked
        if demand.relation == "is" and len(demand.path) == 3
    )


def _picked(asked: Sequence[Demand], choice: int) -> list[Demand]:
    """One demand for each place: of several the one with that number."""
    by_place: dict[tuple[str, ...], list[Demand]] = {}
    for demand in asked:
        by_place.setdefault(demand.path, []).append(demand)
    return [demands[min(choice, len(demands) - 1)] for demands in by_place.values()]


def _has_alternatives(asked: Sequence[Demand]) -> bool:
    return len({demand.path for demand in asked}) != len(asked)
