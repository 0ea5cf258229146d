"""What was found by reading the checks of the release: those that accept a wrong state, and those that look like them.

The states stand in false_positives.yaml and sound_checks.yaml, this module reads them. That they are wrong is told
there, in words; that the checks accept or refuse them is what the tests show.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

WAYS: Final = {
    "substring": "it looks for a part of a text, so that a longer or a negated text passes",
    "any_value": "it asks only that there is some value, or not the old one, where the sentence says which",
    "truthy": "it takes whatever is not empty for a yes",
    "condition": "it leaves out a condition that the sentence states",
    "any_entity": "another entity than the one that the sentence means satisfies it",
    "existing": "an old entity, altered, passes for the new one",
    "created": "a new entity passes for the change of the old one, which stays as it was",
    "id_only": "it compares an id and not the properties that the sentence gives of what has it",
    "not_removed": "what was to go is still there, under another name or key",
    "existence": "it asks only whether there is something of that id",
    "wrong_field": "it reads another field than the one that the sentence speaks of",
    "missing_field": "an entity that lacks a field, or has it in another form, is passed over",
    "counting": "it counts, or asks for one, where the sentence says each",
    "vacuous": "it says something of all that it selects, and in the wrong state that is nothing",
    "hard_coded": "it compares with values copied from the start, or mistaken ones, not with those of the state",
    "boundary": "it draws the line in another place than the sentence",
    "proxy": "it takes what may follow from the deed for the deed",
}
"""How a check comes to accept a wrong state."""

PROBES: Final = {
    "undone": "what the sentence requires was not done, or done to something beside it",
    "near_miss": "a value that the sentence names was replaced by one that is like it",
    "negation": "a value that the sentence names was replaced by its negation",
    "entity_swapped": "another entity has what the sentence requires of the one that it is about",
    "field_dropped": "a field that the check reads is not there",
    "entity_missing": "the entity that the sentence is about is not there",
}
"""By which change a program could find the wrong state."""


class _Removed:
    def __repr__(self) -> str:
        return "REMOVED"


REMOVED: Final = _Removed()
"""In place of a value: what the pointer names is taken out."""

Edits = tuple[tuple[str, Any], ...]
"""JSON pointers and the values put there; all components but the last must exist."""


@dataclass(frozen=True, slots=True)
class FalsePositive:
    """A check that says True of a wrong state."""

    task_id: str
    check: int
    """Index in the scenario's list."""
    way: str
    """One of `WAYS`."""
    probe: str
    """One of `PROBES`."""
    contradicts: str | None
    """Words of the check's sentence that the state contradicts; None: it takes judgement to see that it is wrong."""
    edits: Edits
    """What makes the wrong state from the initial one; nothing where that is wrong already."""
    why: str
    """Why the state is wrong."""


@dataclass(frozen=True, slots=True)
class Sound:
    """A check that looks like one of the others and tells right from wrong all the same."""

    task_id: str
    check: int
    """Index in the scenario's list."""
    right: Edits
    """What makes, from the initial state, one that the check must accept."""
    wrong: Edits
    """What makes of that one a state which it must refuse."""
    why: str
    """What it sees that its like do not."""


def edited(state: dict[str, Any], edits: Edits) -> dict[str, Any]:
    """A copy of `state` with the edits carried out one after the other.

    Raises:
        KeyError, IndexError: if a pointer leads through nothing, or there is nothing to take out.
    """
    changed = copy.deepcopy(state)
    for pointer, value in edits:
        *path, last = (part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
        place: Any = changed
        for part in path:
            place = place[int(part) if isinstance(place, list) else part]
        key = int(last) if isinstance(place, list) else last
        if value is REMOVED:
            del place[key]
        else:
            place[key] = copy.deepcopy(value)
    return changed


def _entries(name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    by_scenario = yaml.safe_load((Path(__file__).parent / name).read_text(encoding="utf-8"))
    return ((task_id, entry) for task_id, entries in by_scenario.items() for entry in entries)


def _edits(written: list[list[Any]] | None) -> Edits:
    return tuple((one[0], one[1] if len(one) == 2 else REMOVED) for one in written or ())


FALSE_POSITIVES: Final = tuple(
    FalsePositive(
        task_id,
        entry["check"],
        entry["way"],
        entry["probe"],
        entry.get("contradicts"),
        _edits(entry.get("edits")),
        entry["why"],
    )
    for task_id, entry in _entries("false_positives.yaml")
)
SOUND: Final = tuple(
    Sound(task_id, entry["check"], _edits(entry.get("right")), _edits(entry["wrong"]), entry["why"])
    for task_id, entry in _entries("sound_checks.yaml")
)
