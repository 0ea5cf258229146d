"""Words the explanation of an episode for a terminal. What it says is found in `audit.explain`."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import zip_longest

from rich.console import Console
from rich.rule import Rule as Line
from rich.text import Text

from envscaler.audit.explain_faults import call_text, solution_text
from envscaler.audit.explain_records import (
    AlsoRead,
    CallMade,
    CheckOutline,
    CheckReading,
    EpisodeReading,
    Place,
    Remedy,
)
from envscaler.cli.output import Indented, text_of
from envscaler.cli.show_run import change_text
from envscaler.report.wording import compact, count, decimal, shortened, visible
from envscaler.state import JsonValue

_PATTERNS = 8
_OBSERVATION = 300
_FOUND_IN = {
    "solution": "as the recorded solution leaves it",
    "reset": "as it was at reset",
    "episode": "as it was while the check held",
    "text": "a value that the check's text names",
}


def show_reading(reading: EpisodeReading, out: Console) -> None:
    """The reward, what went wrong, and each check that is explained."""
    out.print(Line(text_of(reading.trajectory_id, "bold"), align="left", style="dim"))
    out.print(Indented(text_of(reading.task), 2))
    for note in reading.notes:
        out.print(text_of(f"Note: {note}.", "yellow"))
    _show_rewards(reading, out)
    for outline in reading.outlines:
        out.print(Indented(_outline_text(outline), 2))
    if not reading.checks:
        out.print(Text("Every check holds. Name one to see what it read: its number, or a part of its sentence."))
        return
    _show_faults(reading, out)
    for check in reading.checks:
        _show_check(check, out, told={fault.says for fault in reading.faults})


def _show_rewards(reading: EpisodeReading, out: Console) -> None:
    rewards = ", ".join(f"{mode} {decimal(value)}" for mode, value in reading.rewards.items())
    holding = sum(outline.holds for outline in reading.outlines)
    out.print(
        Text.assemble(
            ("Reward: ", "bold"), f"{rewards}; {holding} of {count(len(reading.outlines), 'check')} ",
            "holds" if len(reading.outlines) == 1 else "hold",
        )
    )  # fmt: skip
    recorded = {mode: value for mode, value in reading.recorded_rewards.items() if value is not None}
    if any(decimal(value) != decimal(reading.rewards[mode]) for mode, value in recorded.items()):
        told = ", ".join(f"{mode} {decimal(value)}" for mode, value in recorded.items())
        out.print(text_of(f"Recorded: {told}", "yellow"))


def _outline_text(outline: CheckOutline) -> Text:
    mark = ("✓ ", "green") if outline.holds else ("✗ ", "red")
    notes = ["guard"] if outline.is_guard else ["held at reset"] if outline.held_at_reset else []
    notes += [outline.error] if outline.error else []
    note = f"  ({'; '.join(notes)})" if notes else ""
    return Text.assemble(mark, f"{outline.number} ", visible(outline.description), (visible(note), "dim"))


def _show_faults(reading: EpisodeReading, out: Console) -> None:
    if reading.faults or reading.rules:
        out.print()
        out.print(Text("What went wrong", style="bold"))
    for fault in reading.faults:
        numbers = ", ".join(map(str, fault.checks))
        where = f" (check{'s' if len(fault.checks) > 1 else ''} {numbers}): "
        out.print(Indented(Text.assemble((fault.kind, "bold red"), where, visible(fault.says)), 2))
    told = {
        (fault.call.step, fault.call.number) for fault in reading.faults if fault.kind == "rule broken" and fault.call
    }
    for rule in reading.rules:
        if (rule.call.step, rule.call.number) not in told:
            says = f": since {call_text(rule.call)} this does not hold: {rule.text}"
            out.print(Indented(Text.assemble(("rule broken", "bold red"), visible(says)), 2))


# -- one check ----------------------------------------------------------------------------------------------


def _show_check(reading: CheckReading, out: Console, *, told: Collection[str]) -> None:
    outline = reading.check
    out.print()
    mark = ("✓", "green") if outline.holds else ("✗", "red")
    kind = "guard" if outline.is_guard else "goal"
    out.print(
        Text.assemble((f"Check {outline.number}", "bold cyan"), f" {kind} ", mark, " ", visible(outline.description))
    )
    for line in _course(reading):
        out.print(Indented(line, 2))
    if outline.error:
        out.print(Indented(text_of(f"It gave no boolean of the final state: {outline.error}", "red"), 2))
    _show_places(reading, out)
    if not outline.holds:
        _show_remedy(reading.remedy, out)
        if reading.fault is not None and reading.fault.says not in told:
            says = f": {reading.fault.says}"
            out.print(Indented(Text.assemble((reading.fault.kind, "bold red"), visible(says)), 2))
        elif reading.fault is None:
            out.print(Indented(text_of(_untold(outline), "yellow"), 2))
    out.print(Indented(Text("Code", style="dim"), 2))
    out.print(Indented(text_of(reading.source.strip("\n")), 4))


def _course(reading: CheckReading) -> Iterator[Text]:
    """When the check held."""
    outline = reading.check
    reset = {True: "held at reset", False: "did not hold at reset", None: "gave no boolean at reset"}
    began = f"It {reset[outline.held_at_reset]}"
    if not reading.turned:
        yield text_of(f"{began}{'; no call changed that' if reading.held_after else ', and no call was made'}.")
        if outline.holds and not outline.is_guard:
            yield Text("It would have been earned by doing nothing.", style="yellow")
        return
    yield text_of(f"{began}.")
    for turned in reading.turned:
        yield text_of(f"{'True' if turned.holds else 'False'} since {call_text(turned.call)}.")


def _untold(outline: CheckOutline) -> str:
    if outline.is_guard and not outline.held_at_reset:
        return "It did not hold at reset either: no call is to blame."
    return "Which call is to blame cannot be told."


def _show_places(reading: CheckReading, out: Console) -> None:
    deciding = [place for place in reading.places if place.decides]
    named = [place for place in reading.places if not place.decides]
    if deciding:
        out.print(Indented(Text("Places that decide", style="bold"), 2))
    elif named:
        out.print(Indented(Text("No place alone was seen to decide; its text names", style="bold"), 2))
    elif not reading.also_read:
        told = "Whatever single value of the state was changed, it said the same."
        out.print(Indented(Text(told, style="yellow"), 2))
    shown = [*deciding, *named]
    for place, following in zip_longest(shown, shown[1:]):
        _show_place(place, out, last=following is None or _story(following) != _story(place))
    if reading.also_read:
        lead = "It also reads, unchanged since reset: " if deciding or named else "It reads, unchanged since reset: "
        out.print(Indented(text_of(f"{lead}{_patterns(reading.also_read)}", "dim"), 2))
    if reading.untried:
        out.print(Indented(text_of(f"{count(reading.untried, 'place')} more could not be tried.", "dim"), 2))


def _show_place(place: Place, out: Console, *, last: bool) -> None:
    """One place with its values, and who changed it where the next place does not say the same.

    Args:
        last: whether the next place has another story.
    """
    label = f" ({place.label})" if place.label is not None else ""
    before = _value(place.at_reset, place.in_reset)
    after = _value(place.at_end, place.in_end)
    values = f"  {before} at reset, {after} at the end" if before != after else f"  {after} at reset and at the end"
    out.print(Indented(Text.assemble((visible(place.pointer), "bold"), visible(label), visible(values)), 4))
    if not last:
        return
    for change in place.changes:
        out.print(Indented(text_of(f"by {call_text(change.call)}"), 6))
        if len(place.changes) > 1:
            out.print(Indented(change_text(change.change), 8))
    if not place.changes:
        out.print(Indented(Text("no call changed it"), 6))
    for call in place.attempts:
        out.print(Indented(text_of(f"refused: {call_text(call)}", "yellow"), 6))
        out.print(Indented(_observed(call), 8))


def _story(place: Place) -> tuple[object, ...]:
    """What is told of how a place came to its value; of places changed more than once, all is told of each."""
    own = place.pointer if len(place.changes) > 1 else ""
    return own, [change.call for change in place.changes], list(place.attempts)


def _show_remedy(remedy: Remedy | None, out: Console) -> None:
    if remedy is None:
        told = "Nothing was found that would have satisfied it, neither in the states at hand nor in its text."
        out.print(Indented(Text(told, style="yellow"), 2))
        return
    out.print(Indented(Text.assemble(("It would hold with", "bold"), f"  ({_FOUND_IN[remedy.found_in]})"), 2))
    for change in remedy.changes:
        out.print(Indented(change_text(change), 4))
    for step in remedy.calls:
        says = f"{solution_text(step)}, call {step.number} of the recorded solution"
        made = {
            "as recorded": "made",
            "with other arguments": f"made with another {' and '.join(step.differing)}",
            "not made": "not made",
        }[step.made]
        if step.instead is not None:
            made += f" at step {step.instead.step}{', and refused' if step.instead.refused else ''}"
        out.print(Indented(text_of(f"by {says}: {made}"), 4))


def _patterns(also: tuple[AlsoRead, ...]) -> str:
    shown = [
        f"whether {one.pattern.removesuffix('/+')} has more records" if one.pattern.endswith("/+")
        else one.pattern + (f" ×{one.count}" if one.count > 1 else "")
        for one in also[:_PATTERNS]
    ]  # fmt: skip
    left = sum(one.count for one in also[_PATTERNS:])
    return ", ".join(shown) + (f" and {left} more" if left else "")


def _value(value: JsonValue, there: bool) -> str:
    return compact(value) if there else "not there"


def _observed(call: CallMade) -> Text:
    return text_of(f"← {shortened(call.observation, _OBSERVATION)}", "red")
