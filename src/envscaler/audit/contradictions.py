"""`Contradictions`: states that contradict what the sentence of a check names, made from one that the check accepts.

A check that accepts one of them takes wrong for right. Only what the sentence names literally counts; what takes a
judgement is marked as suspected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Literal

from envscaler.audit.demands import Reading
from envscaler.audit.mentions import BOUND, DENIED, EACH, GONE, NEW, PART, Mentions, folded, named_records
from envscaler.editing import Edit, edit
from envscaler.proof.fields import Fields, moment, near_misses, records_of
from envscaler.state import JsonValue, State, copied

ProbeName = Literal[
    "undone", "near_miss", "altered", "entity_swapped", "existing", "not_removed", "entity_missing", "field_dropped"
]
"""How the wrong state is made. `existing`: an old record, altered, in place of a new one; `not_removed`: what was to go
is there under another key."""
_AT_MOST = 120
_OTHERS = 3
"""Other records that are tried in place of the one named."""


@dataclass(frozen=True)
class Base:
    """A state that the check accepts."""

    edits: tuple[Edit, ...]
    """What makes it of the state at reset."""
    way: str
    """As `search.Candidate.way`; `reset` for the state at reset, `solved` for that of a solution."""
    records: tuple[tuple[str, str], ...]
    """The records that it is about: container and key."""


@dataclass(frozen=True)
class Contradiction:
    """A state that is wrong, as the sentence has it."""

    probe: ProbeName
    says: str
    edits: tuple[Edit, ...]
    """What makes it of the state at reset."""
    suspected: bool = False
    part_of_text: bool = False
    """Whether a check that accepts it looks for part of a text."""


class Contradictions:
    """The contradictions of one check.

    Args:
        state: the state at reset.
    """

    def __init__(self, state: State, fields: Fields, reading: Reading, mentioned: Mentions) -> None:
        self._state = state
        self._fields = fields
        self._reading = reading
        self._mentioned = mentioned
        sentence = mentioned.bare
        self._named = list(dict.fromkeys(named_records(mentioned, state)))
        self._asks_for_part = PART.search(sentence) is not None
        self._turned = DENIED.search(sentence) is not None
        self._is_of_several = EACH.search(sentence) is not None
        self._is_new = NEW.search(sentence) is not None
        self._is_gone = GONE.search(sentence) is not None

    def of(self, base: Base) -> list[Contradiction]:
        """The contradictions that begin at a state which the check accepts."""
        return list(islice(self._made(base), _AT_MOST))

    def _made(self, base: Base) -> Iterator[Contradiction]:
        accepted: State = edit(copied(self._state), base.edits)
        if base.way == "removed":
            yield from self._not_removed(base)
        if self._is_gone and not self._is_what_is_named(base, accepted):
            return
        old = [container for container, _ in self._named]
        if base.way == "made" and not self._is_new and base.records[0][0] in old:
            return  # a second record of the name that the sentence has for one
        alone = len(base.records) == 1 or base.way in ("reset", "solved")
        for container, key in base.records if alone else ():
            record = records_of(accepted, container).get(key)
            if isinstance(record, dict):
                for name, value in record.items():
                    yield from self._altered(base, (container, key, name), value, accepted)
                yield from self._left_out(base, container, key, record)
        yield from self._swapped(base)
        yield from self._existing(base, accepted)
        yield from self._missing(base, accepted)

    def _is_what_is_named(self, base: Base, accepted: State) -> bool:
        """Whether the word that says that something is gone is a value that a record is to have: `cancelled`, say."""
        word = GONE.search(self._mentioned.bare)
        if word is None or base.way == "removed":
            return False
        return any(
            isinstance(value, str) and folded(value) == folded(word.group())
            for container, key in base.records
            if isinstance(record := records_of(accepted, container).get(key), dict)
            for value in record.values()
        )

    # -- values ---------------------------------------------------------------------------------------------

    def _altered(
        self, base: Base, path: tuple[str, str, str], value: JsonValue, accepted: State
    ) -> Iterator[Contradiction]:
        """A value that the sentence names, replaced."""
        if isinstance(value, (dict, list)) or not self._is_meant(base, path, value):
            return
        others: list[tuple[JsonValue, bool]] = [
            (other.value, other.near) for other in self._fields.others(path, value, accepted)
        ]
        if isinstance(value, str) and moment(value) is None:
            others += [(text, True) for text in (*near_misses(value), f"No {value}", f"{value}0")]
        others += [(demand.value, False) for demand in self._reading.demands if demand.path[-1:] == path[2:]]
        bounded = isinstance(value, (int, float)) and BOUND.search(self._mentioned.bare) is not None
        # What the check does not read may only tell which record is meant.
        unread = (base.way == "reset" and path[2] not in self._reading.keys) or self._is_of_several
        for other, near in others:
            same = folded(str(other)) == folded(str(value))
            if same or type(other) is not type(value) or self._mentioned.names(other):
                continue
            longer = isinstance(other, str) and isinstance(value, str) and folded(value) in folded(other)
            yield Contradiction(
                "near_miss" if near else "altered",
                f"{'/'.join(path)} is {other!r}; the sentence names {value!r}",
                (*base.edits, [list(path), other]),
                suspected=bounded or unread or (longer and self._asks_for_part) or self._turned,
                part_of_text=longer,
            )
        yield Contradiction(
            "field_dropped",
            f"{'/'.join(path)} is not there; the sentence names {value!r}",
            (*base.edits, [list(path)]),
            suspected=bounded or unread or self._turned,
        )

    def _is_meant(self, base: Base, path: tuple[str, str, str], value: JsonValue) -> bool:
        """Whether the sentence names a value as one to be brought about, and not only to say which record it means."""
        container, key, name = path
        if value == key or value is None or isinstance(value, bool) or not self._mentioned.names(value):
            return False
        old = records_of(self._state, container).get(key)
        if not isinstance(old, dict) or old.get(name) != value:
            return True
        return base.way == "reset" and self._fields.kind(path, value, self._state) in ("category", "number", "moment")

    def _left_out(self, base: Base, container: str, key: str, record: dict[str, JsonValue]) -> Iterator[Contradiction]:
        """A value that the sentence names, and that the accepted record has not where it would have to be."""
        values = [value for value in record.values() if not isinstance(value, (dict, list))]
        held = {folded(str(value)) for value in values}
        for text in self._mentioned.texts:
            if folded(text) in held or len(base.records) != 1:
                continue
            places = [
                name
                for name, value in record.items()
                if isinstance(value, str) and text in self._seen(container, name) and not self._mentioned.names(value)
            ]
            if len(places) == 1 and not self._turned:
                yield Contradiction(
                    "undone",
                    f"{container}/{key}/{places[0]} is {record[places[0]]!r}; the sentence names {text!r}",
                    base.edits,
                )
        for other, wanted in self._named:
            if other == container or len(base.records) != 1:
                continue
            ids = self._fields.containers.get(other, ())
            places = [name for name, value in record.items() if isinstance(value, str) and value in ids]
            alone = sum(named == other for named, _ in self._named) == 1
            if alone and len(places) == 1 and record[places[0]] != wanted and not self._turned:
                yield Contradiction(
                    "entity_swapped",
                    f"{container}/{key}/{places[0]} is {record[places[0]]!r}; the sentence names {wanted!r}",
                    base.edits,
                )

    def _seen(self, container: str, name: str) -> list[JsonValue]:
        records = records_of(self._state, container)
        return [record.get(name) for record in records.values() if isinstance(record, dict)]

    # -- records --------------------------------------------------------------------------------------------

    def _swapped(self, base: Base) -> Iterator[Contradiction]:
        """Another record has what is asked for of the one that the sentence names."""
        for container, key in self._named:
            if (container, key) not in base.records or len(base.records) != 1 or self._is_new or self._turned:
                continue
            others = [other for other in self._fields.containers.get(container, ()) if other != key]
            changes = [change for change in base.edits if change[0][:2] == [container, key] and len(change[0]) > 2]
            if not changes or len(changes) != len(base.edits):
                continue
            for other in others[:_OTHERS]:
                moved = tuple([[container, other, *change[0][2:]], *change[1:]] for change in changes)
                yield Contradiction(
                    "entity_swapped",
                    f"{container}/{other} was changed; the sentence names {self._told(container, key)}",
                    moved,
                )

    def _existing(self, base: Base, accepted: State) -> Iterator[Contradiction]:
        """An old record, altered, where the sentence asks for a new one."""
        if not self._is_new or base.way != "made" or len(base.edits) != 1:
            return
        (container, made), *_ = base.records
        record = records_of(accepted, container).get(made)
        if not isinstance(record, dict) or not self._speaks_of(container):
            return
        for old in self._fields.containers.get(container, ())[:_OTHERS]:
            kept = self._state[container][old]
            if not isinstance(kept, dict):
                continue
            changed = {name: kept.get(name) if value == made else value for name, value in record.items()}
            yield Contradiction(
                "existing",
                f"no record of {container} is new: {old} was altered",
                ([[container, old], changed],),
            )

    def _speaks_of(self, container: str) -> bool:
        """Whether the sentence speaks of the records of a container by their own noun."""
        nouns = [word for word in re.split(r"[_\W]+", container.casefold()) if word]
        stems = [word.removesuffix("ies") or word if word.endswith("ies") else word.removesuffix("s") for word in nouns]
        return any(word.startswith(stem) for stem in stems if len(stem) > 2 for word in self._mentioned.words)

    def _missing(self, base: Base, accepted: State) -> Iterator[Contradiction]:
        """The record that the sentence names is not there."""
        if self._turned:
            return
        read = {demand.path[0] for demand in self._reading.demands if demand.path}
        if len(base.records) != 1 and base.way != "reset":
            return
        for container, key in self._named:
            if container in read and (container, key) in base.records and key in records_of(accepted, container):
                yield Contradiction(
                    "entity_missing",
                    f"there is no {self._told(container, key)}, which the sentence names",
                    (*[change for change in base.edits if change[0][:2] != [container, key]], [[container, key]]),
                    suspected=self._is_of_several,
                )

    def _not_removed(self, base: Base) -> Iterator[Contradiction]:
        """What was to go is still there under another key."""
        if not self._is_gone or len(base.records) != 1:
            return
        container, key = base.records[0]
        record = records_of(self._state, container).get(key)
        if not isinstance(record, dict):
            return
        if (container, key) in self._named:
            for other in [other for other in records_of(self._state, container) if other != key][:_OTHERS]:
                yield Contradiction(
                    "entity_swapped",
                    f"{self._told(container, other)} was removed; the sentence names {self._told(container, key)}",
                    ([[container, other]],),
                    suspected=self._is_of_several,
                )
        new = f"{key}-2"
        kept = {name: new if value == key else value for name, value in record.items()}
        yield Contradiction(
            "not_removed",
            f"{self._told(container, key)} is still there, as {new}",
            ([[container, key]], [[container, new], kept]),
            suspected=True,  # no tool does that, as a rule
        )

    def _told(self, container: str, key: str) -> str:
        return f"{container}/{key}"


def shown_edits(edits: Sequence[Edit]) -> list[JsonValue]:
    """Edits as a finding shows them: JSON pointer and value, the pointer alone where something is removed."""
    return [["/" + "/".join(map(str, change[0])), *change[1:]] for change in edits]
