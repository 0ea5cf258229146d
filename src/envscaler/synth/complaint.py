"""`complaint`: what the writer of a method is told when test calls of it fail.

Of the state only what the call touched is told: a whole state would cost more than the rest of the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envscaler.state import Change, JsonValue, State, diff, encode, pointer_of
from envscaler.synth.assess import Trial

_CALLS = 3
"""Failing calls that are told of one method."""
_CHANGES = 6
_RECORDS = 4
_LENGTH = 400
"""Characters of a value."""


def complaint(failing: Sequence[Trial], refused: Sequence[str]) -> str:
    """The failing calls of one method, with what they did and what is wrong with it.

    Args:
        refused: why earlier versions were not taken.
    """
    parts = [f"{len(failing)} test calls fail." if len(failing) > 1 else "A test call fails."]
    parts += ["\n".join(_told(trial)) for trial in _telling(failing)]
    parts += [f"Another version was refused: {reason}" for reason in refused[-2:]]
    parts.append("What is right about the method has to stay as it is, to the letter.")
    return "\n".join(parts)


def _telling(failing: Sequence[Trial]) -> list[Trial]:
    """Those that tell most: first one of each reason, calls meant to succeed before wrong ones."""
    ordered = sorted(failing, key=lambda trial: trial.case.case != "positive")
    first = {trial.case.reason: trial.case.round for trial in reversed(ordered)}
    return sorted(ordered, key=lambda trial: first[trial.case.reason] != trial.case.round)[:_CALLS]


def _told(trial: Trial) -> Iterator[str]:
    tried, case = trial.tried, trial.case
    expected = "has to succeed" if case.case == "positive" else "is wrong on purpose and has to be refused"
    yield f"- {case.call.name}(**{_json(case.call.arguments)}), a call that {expected}"
    concerned = list(_concerned(tried.state, case.call.arguments))
    if concerned:
        yield "  the state before it, as far as it is named: " + "; ".join(concerned[:_RECORDS])
    if case.error is not None:
        yield f"  raised or was ended: {_cut(case.error)}"
    else:
        yield f"  returned: {_json(tried.result)}"
    changes = diff(tried.state, tried.examined.after) if tried.examined is not None else ()
    if changes:
        more = f"; and {len(changes) - _CHANGES} more" if len(changes) > _CHANGES else ""
        yield "  changed the state: " + "; ".join(map(_change, changes[:_CHANGES])) + more
    else:
        yield "  changed nothing"
    yield f"  what is wrong: {_cut(case.reason)}"


def _concerned(state: State, arguments: JsonValue) -> Iterator[str]:
    """The records whose keys are among the arguments."""
    values = arguments.values() if isinstance(arguments, dict) else ()
    named = [value for value in values if isinstance(value, str)]
    named += [one for value in values if isinstance(value, list) for one in value if isinstance(one, str)]
    for container, records in state.items():
        if isinstance(records, dict):
            for key in named:
                if key in records:
                    yield f"{pointer_of(container, key)} = {_json(records[key])}"


def _change(change: Change) -> str:
    before = f" from {_json(change.before)}" if change.kind != "added" else ""
    after = f" to {_json(change.after)}" if change.kind != "removed" else ""
    return f"{change.kind} {change.pointer or '/'}{before}{after}"


def _json(value: JsonValue) -> str:
    return _cut(encode(value).decode("utf-8", "replace"))


def _cut(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[:_LENGTH]} …"
