"""`complaint`: what the writer of a method is told when calls of it fail, or something else is wrong with it.

Of the state only what the call touched is told: a whole state would cost more than the rest of the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from envscaler.assessment import Finding
from envscaler.env.oracles import ExaminedCall
from envscaler.env.tool_examination import ToolExamination
from envscaler.messages import ToolCall
from envscaler.state import Change, JsonValue, State, diff, encode, pointer_of
from envscaler.synth.assess import Trial

_CALLS = 3
"""Failing calls that are told of one method, and findings."""
_CHANGES = 6
_RECORDS = 4
_LENGTH = 400
"""Characters of a value."""


def complaint(failing: Sequence[Trial], refused: Sequence[str], examined: ToolExamination | None = None) -> str:
    """What is wrong with one method: calls that fail, with what they did.

    Args:
        refused: why earlier versions were not taken.
        examined: what was found of it without test calls.
    """
    found = examined.findings if examined is not None and examined.faults else {}
    parts = []
    if found and examined is not None:
        parts.append("These calls of it show what is wrong.")
        parts += ["\n".join(_shown(finding, examined.shown.get(oracle))) for oracle, finding in found.items()][:_CALLS]
    if failing:
        parts.append(f"{len(failing)} test calls fail." if len(failing) > 1 else "A test call fails.")
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
    yield f"- {_written(case.call)}, a call that {expected}"
    yield from _before(tried.state, case.call)
    if tried.examined is not None:
        yield from _did(tried.examined)
    else:
        yield f"  never reached it: {_cut(tried.refused or '')}"
    yield f"  what is wrong: {_cut(case.reason)}"


def _shown(finding: Finding, examined: ExaminedCall | None) -> Iterator[str]:
    """A finding with the call that shows it, or alone where it is seen in the text."""
    if examined is None:
        yield f"- {_cut(finding.detail)}"
        return
    yield f"- {_written(examined.call)}"
    yield from _before(examined.before, examined.call)
    yield from _did(examined)
    yield f"  what is wrong: {_cut(finding.detail)}"


def _before(state: State, call: ToolCall) -> Iterator[str]:
    concerned = list(_concerned(state, call.arguments))
    if concerned:
        yield "  the state before it, as far as it is named: " + "; ".join(concerned[:_RECORDS])


def _did(examined: ExaminedCall) -> Iterator[str]:
    """What a call gave and changed."""
    if examined.error is not None:
        yield f"  raised or was ended: {_cut(examined.error)}"
        if examined.line is not None:
            yield f"  at the line: {_cut(examined.line)}"
    else:
        yield f"  returned: {_json(examined.outcome.result)}"
    changes = () if examined.after is examined.before else diff(examined.before, examined.after)
    if changes:
        more = f"; and {len(changes) - _CHANGES} more" if len(changes) > _CHANGES else ""
        yield "  changed the state: " + "; ".join(map(_change, changes[:_CHANGES])) + more
    else:
        yield "  changed nothing"


def _written(call: ToolCall) -> str:
    return f"{call.name}(**{_json(call.arguments)})"


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
