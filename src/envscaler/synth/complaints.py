"""`complaints`: what a proof holds against single checks, in the words in which it goes back to their writer.

The writer learns which wrong final state was accepted, or that a right one was not; nothing else of the solution. What
becomes of a complaint is `mending`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from envscaler.editing import Edit
from envscaler.evidence import WRONG
from envscaler.proof import Examined
from envscaler.proof.sameness import created_keys
from envscaler.scenario import Check, Scenario
from envscaler.state import JsonValue, State, diff, edits_of, encode, leaves

_TOLD = 4
"""Wrong final states that one complaint names at most, and places of one state."""
_SHOWN = 80
"""Characters of a value that are told."""
_MADE_BY_CALLS = ("left_out", "misdirected")
"""Kinds of wrong states that are known by the call that was not made: what it would have changed is tried as well."""

_RUN_FAULTS = {
    "raises": "it raised {detail}; it never raises, whatever the state is",
    "not_bool": "it gave no bool: {detail}",
    "mutates": "it changed the state that it was given; it may only read",
    "nondeterministic": "asked twice about the same state it did not say the same",
}


def complaints(scenario: Scenario, examined: Examined, rivals: Sequence[State]) -> dict[int, str]:
    """By index of a check what is wrong with it.

    Args:
        rivals: final states that are wrong and that every check accepts.
    """
    proof = examined.proof
    told: dict[int, list[str]] = {}
    for fault in proof.faults:
        detail = fault.detail.partition(": ")[2] or fault.detail
        told.setdefault(fault.check, []).append(_RUN_FAULTS[fault.kind].format(detail=detail))
    for index in proof.true_at_reset:
        told.setdefault(index, []).append("it is True of the state at the beginning, before anything was done")
    missed = {index for probe in proof.of("solution") for index in probe.failed}
    for index in missed:
        told.setdefault(index, []).append(
            "it is False of a final state in which the task was carried out as its writer meant it; ask for nothing "
            "that does not follow from the task and the question"
        )
    for index in {index for probe in proof.of("variant", "alternative") for index in probe.failed} - missed:
        told.setdefault(index, []).append(
            "it is False of a final state in which the task was carried out as well, in another order, at another "
            "time or with other ids for what was created"
        )
    # A check that was to see a change and sees none passes for a guard, one that never notices anything.
    candidates = [index for index, kind in enumerate(proof.kinds) if kind == "goal"]
    candidates += _idle(examined)
    accepted: dict[int, list[str]] = {}
    for edits in (*_survivors(examined), *(edits_of(diff(examined.played.final, rival)) for rival in rivals)):
        to_blame = blamed(scenario.checks, candidates, *_words(edits, examined))
        if to_blame is not None:
            accepted.setdefault(to_blame, []).append(in_words(edits, examined))
    for index, states in accepted.items():
        listed = "; or ".join(dict.fromkeys(states[:_TOLD]))
        clause = f"it accepted a final state that is wrong. All was as the task asks for, except that {listed}"
        if proof.kinds[index] == "guard":
            clause += ". It is True of the state at the beginning as well, before anything was done"
        told.setdefault(index, []).append(clause)
    return {index: "; ".join(clauses) for index, clauses in sorted(told.items())}


def blamed(checks: Sequence[Check], candidates: Sequence[int], keys: Sequence[str], told: Sequence[str]) -> int | None:
    """The check that should have noticed: the one that names most words, in its sentence or its source.

    Args:
        candidates: indices of checks, the first ones before others that name as many.
        keys: container and record of the place, which several checks may name.
        told: field and values, of which it has to name one.
    """

    def named(index: int, words: Sequence[str]) -> int:
        text = f"{checks[index].description}\n{checks[index].source}"
        return sum(_names(text, word) for word in dict.fromkeys(words))

    able = [index for index in candidates if named(index, told)]
    return max(able, key=lambda index: named(index, (*keys, *told)), default=None)


def _names(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) is not None


def _idle(examined: Examined) -> Iterator[int]:
    """Guards that no wrong final state was noticed by."""
    proof = examined.proof
    tried = [probe for probe in proof.probes if probe.kind in WRONG]
    for index, kind in enumerate(proof.kinds):
        if kind == "guard" and tried and not any(index in probe.failed for probe in tried):
            yield index


def _survivors(examined: Examined) -> Iterator[Sequence[Edit]]:
    for mutant, failed in examined.wrong:
        if failed or mutant.kind in (*_MADE_BY_CALLS, "over_edit"):
            continue
        # Texts are compared without regard to case, as writers are told.
        if not all(value and _alike(value[0], _at(examined.played.final, path)) for path, *value in mutant.edits):
            yield mutant.edits


def _alike(value: JsonValue, other: JsonValue) -> bool:
    return isinstance(value, str) and isinstance(other, str) and value.casefold() == other.casefold()


def _words(edits: Sequence[Edit], examined: Examined) -> tuple[list[str], list[str]]:
    """What names the places of some edits: containers and records; fields and values, those that were right too."""
    created = created_keys(examined.played.reset, examined.played.final)
    keys: list[str] = []
    told: list[str] = []
    for path, *value in edits:
        names = list(map(str, path))
        keys += names[:2] if len(names) > 1 else []
        told += [name for name in (names[2:] if len(names) > 1 else names) if not name.isdigit()]
        for part in (*value, _at(examined.played.final, path)):
            told += [str(leaf) for _, leaf in leaves(part) if isinstance(leaf, (str, int, float)) and leaf != ""]
    return [word for word in keys if word not in created], [word for word in told if word not in created]


def in_words(edits: Sequence[Edit], examined: Examined) -> str:
    """Edits of the solved state, as clauses; ids that were made on the way are not told."""
    created = created_keys(examined.played.reset, examined.played.final)
    parts = []
    for path, *value in edits[:_TOLD]:
        names = list(map(str, path))
        made = len(names) > 1 and names[1] in created
        record = f"the new record in {names[0]}" if made else "/".join(names[:2])
        place = f"{'/'.join(names[2:])} of {record}" if names[2:] else record
        parts.append(f"{place} was {_shown(value[0])}" if value else f"{place} was not there")
    more = len(edits) - len(parts)
    return " and ".join(parts) + (f" and {more} more places were otherwise" if more > 0 else "")


def _shown(value: JsonValue) -> str:
    text = encode(value).decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _at(state: JsonValue, path: Sequence[str]) -> JsonValue:
    value = state
    for token in path:
        if isinstance(value, dict):
            value = value.get(token)
        elif isinstance(value, list) and str(token).isdigit() and int(token) < len(value):
            value = value[int(token)]
        else:
            return None
    return value
