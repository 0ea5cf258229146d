"""Holds an episode against a recorded solution: which created record is which, and which call stands for which.

Pure. What the differences mean is `explain_faults`' business.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.audit.explain_playback import Playback, PlayedCall
from envscaler.audit.explain_records import SolutionStep
from envscaler.audit.reading_places import renamed, same_value
from envscaler.state import JsonValue, State

_LIKE = 0.5
"""Share of fields in which two created records must agree to be taken for the same one."""


def created_names(reset: State, ours: State, solved: State) -> dict[str, str]:
    """For keys of records that the solution created the keys that the same records have in the episode.

    Records are the same when they hold the same, or nearly so; one that the episode has not gets a key that is free.
    """
    names: dict[str, str] = {}
    for container, rows in solved.items():
        old, present = reset.get(container), ours.get(container)
        if not isinstance(rows, dict) or not isinstance(old, dict) or not isinstance(present, dict):
            continue
        theirs = {key: row for key, row in rows.items() if key not in old and isinstance(row, dict)}
        free = {key: row for key, row in present.items() if key not in old and isinstance(row, dict)}
        pairs = sorted(
            ((_likeness(key, row, other, free[other]), key, other) for key, row in theirs.items() for other in free),
            key=lambda pair: -pair[0],
        )
        taken: set[str] = set()
        for likeness, key, other in pairs:
            if likeness >= _LIKE and key not in names and other not in taken:
                names[key] = other
                taken.add(other)
        for number, key in enumerate(key for key in theirs if key not in names):
            names[key] = key if key not in present else f"a new {container} record{f' {number + 1}' if number else ''}"
    return names


def _likeness(key: str, row: dict[str, JsonValue], other: str, present: dict[str, JsonValue]) -> float:
    """Share of the fields in which two records agree, what repeats their keys left aside."""
    fields = [name for name in row if row[name] != key or present.get(name) != other]
    if not fields:
        return 1.0
    return sum(name in present and same_value(row[name], present[name]) for name in fields) / len(fields)


@dataclass(frozen=True)
class Matched:
    """A solution's call and what stands for it in the episode."""

    step: SolutionStep
    played: PlayedCall
    """As the solution was played."""
    instead: int | None
    """Index of the episode's call."""

    @property
    def as_recorded(self) -> bool:
        """Whether the episode made the very call and it was not refused."""
        return self.step.made == "as recorded" and self.step.instead is not None and not self.step.instead.refused


def matched_calls(episode: Playback, solution: Playback, names: dict[str, str]) -> tuple[Matched, ...]:
    """For each call of the solution that changes something the call of the episode that stands for it.

    The very same calls are paired first, those that were carried out before those that were refused; then calls of the
    same tool, those with most arguments in common first, then those that change most of the same places.

    Args:
        names: ids of created records in the solution → in the episode.
    """
    wanted = [(number, played) for number, played in enumerate(solution.calls) if played.changes]
    pairs = sorted(
        (
            (
                (like := _argument_likeness(played, own, names)) < 1.0,
                own.made.refused,
                -like,
                -_places_in_common(played, own, names),
                abs(place - number),
                number,
                place,
            )
            for number, played in wanted
            for place, own in enumerate(episode.calls)
            if own.made.name == played.made.name and (own.changes or own.made.refused)
        ),
    )
    chosen: dict[int, int] = {}
    for *_, number, place in pairs:
        if number not in chosen and place not in chosen.values():
            chosen[number] = place
    return tuple(_matched(number, played, chosen.get(number), episode, names) for number, played in wanted)


def exact_matches(matched: Sequence[Matched]) -> int:
    """Calls of the solution that the episode made as recorded."""
    return sum(one.as_recorded for one in matched)


def _argument_likeness(played: PlayedCall, own: PlayedCall, names: dict[str, str]) -> float:
    differing = _differing(played, own, names)
    count = len({*played.made.arguments, *own.made.arguments})
    return 1.0 - len(differing) / count if count else 1.0


def _places_in_common(played: PlayedCall, own: PlayedCall, names: dict[str, str]) -> int:
    theirs = {"/".join(names.get(part, part) for part in change.pointer.split("/")) for change in played.changes}
    return len(theirs.intersection(change.pointer for change in own.changes))


def _differing(played: PlayedCall, own: PlayedCall, names: dict[str, str]) -> tuple[str, ...]:
    theirs, ours = renamed(dict(played.made.arguments), names), own.made.arguments
    assert isinstance(theirs, dict)
    return tuple(
        name
        for name in {**theirs, **ours}
        if (name in theirs) != (name in ours) or not same_value(theirs[name], ours[name])
    )


def _matched(number: int, played: PlayedCall, place: int | None, episode: Playback, names: dict[str, str]) -> Matched:
    own = episode.calls[place] if place is not None else None
    differing = _differing(played, own, names) if own is not None else ()
    arguments = renamed(dict(played.made.arguments), names)
    assert isinstance(arguments, dict)
    step = SolutionStep(
        number=number + 1,
        name=played.made.name,
        arguments=arguments,
        made="not made" if own is None else "with other arguments" if differing else "as recorded",
        instead=own.made if own is not None else None,
        differing=differing,
    )
    return Matched(step, played, place)
