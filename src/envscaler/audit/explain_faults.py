"""Names the fault behind a check that does not hold: which call did it, or which one is missing.

It rests on what was seen: what the check said after each call, which calls changed the places that decide, and which
calls of the recorded solution have no counterpart. Where that leaves it open, nothing is named.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from envscaler.audit.explain_matching import Matched
from envscaler.audit.explain_playback import Playback
from envscaler.audit.explain_records import CallMade, Fault, RuleBroken, SolutionStep
from envscaler.audit.reading_places import keys_of_records, label_of, records, same_value, touches, value_at, words_in
from envscaler.state import Change, JsonValue, leaves, pointer_of, tokens

_SHOWN_CHARS = 300


@dataclass(frozen=True)
class Case:
    """What is known of a check that does not hold."""

    held: Sequence[bool | None]
    """At reset and after each call."""
    is_guard: bool
    remedy: Sequence[Change]
    """Changes of the final state under which it would hold; empty when none was found."""
    relevant: Sequence[Matched]
    """Calls of the recorded solution that make these changes; empty without a solution."""
    has_solution: bool
    wanted: Collection[str] = ()
    """Changed places of which other checks ask what they hold; known only without a solution."""


def fault_of(
    case: Case, episode: Playback, matched: Sequence[Matched], rules: Mapping[int, RuleBroken], number: int
) -> Fault | None:
    """The fault behind one check; None where it cannot be told.

    Args:
        matched: all calls of the solution that change something.
        rules: by the index of the call that broke it.
        number: the check's, from 1.
    """
    writer = _Writer(case, episode, matched, rules, number)
    lost = next((place for place in reversed(range(len(episode.calls))) if _lost(case.held, place)), None)
    gained = any(case.held[place] is not True and case.held[place + 1] is True for place in range(len(episode.calls)))
    if lost is not None:
        # Where the solution makes this call as well, it goes on and mends what the call did: so something is missing.
        missing = writer.not_made() if any(one.instead == lost and one.as_recorded for one in matched) else None
        if missing is not None:
            return missing
        return writer.undone(lost) if gained and not case.is_guard else writer.extra(lost)
    if case.is_guard:
        return None  # it did not hold at reset either, and nobody made it hold
    return writer.by_solution() if case.has_solution else writer.by_state()


def together(faults: Sequence[Fault]) -> tuple[Fault, ...]:
    """The faults with those of one call, or of one missing call, made one; in the order of the calls."""
    merged: dict[tuple[int, int, str], Fault] = {}
    for fault in faults:
        key = _key(fault)
        known = merged.get(key)
        if known is None:
            merged[key] = fault
            continue
        # That a call went to the wrong record says more than that it changed what was to stay.
        telling = known if known.kind != "extra edit" or fault.kind == "extra edit" else fault
        merged[key] = telling.model_copy(update={"checks": tuple(sorted({*known.checks, *fault.checks}))})
    return tuple(merged[key] for key in sorted(merged))


def _key(fault: Fault) -> tuple[int, int, str]:
    if fault.call is not None:
        return fault.call.step, fault.call.number, ""
    after_all_calls = 1_000_000
    return (
        (after_all_calls, fault.expected.number, "") if fault.expected is not None else (after_all_calls, 0, fault.says)
    )


def _lost(held: Sequence[bool | None], place: int) -> bool:
    return held[place] is True and held[place + 1] is not True


class _Writer:
    def __init__(
        self,
        case: Case,
        episode: Playback,
        matched: Sequence[Matched],
        rules: Mapping[int, RuleBroken],
        number: int,
    ) -> None:
        self._case = case
        self._episode = episode
        self._matched = matched
        self._rules = rules
        self._number = number
        self._keys = keys_of_records(episode.reset, episode.final)

    # -- what a call did ------------------------------------------------------------------------------------

    def undone(self, lost: int) -> Fault:
        """The check held after a call of the episode, until a later one."""
        gained = next(place for place in reversed(range(lost)) if self._case.held[place] is not True)
        call = self._episode.calls[lost].made
        before = self._episode.calls[gained].made
        return Fault(
            kind="undone later",
            says=f"It held after {call_text(before)}, until {call_text(call)}{self._what_it_did(lost)}.",
            call=call,
            checks=(self._number,),
        )

    def extra(self, lost: int) -> Fault:
        """A call changed what was to stay."""
        exact = {one.instead for one in self._matched if one.as_recorded}
        turned = lost
        if lost in exact:
            # The solution makes this call as well: what it met is another call's doing.
            lost = next((place for place in self._changers() if place not in exact), lost)
        call = self._episode.calls[lost].made
        expected = next((one.step for one in self._matched if one.instead == lost and one.step.differing), None)
        rule = self._rules.get(lost)
        says = f"{call_text(call)} touched what was to stay:{self._what_it_did(lost)}"
        if rule is not None:
            says += f"; since then a rule is broken: {rule.text.rstrip('.。')}"
        if expected is not None:
            says += f"; the recorded solution has {self._other_arguments(expected, call)}"
        if turned != lost:
            says += f"; the check turned with {call_text(self._episode.calls[turned].made)}"
        return Fault(
            kind="rule broken" if rule is not None else "extra edit",
            says=f"{says}.",
            call=call,
            expected=expected,
            checks=(self._number,),
        )

    # -- what is missing ------------------------------------------------------------------------------------

    def by_solution(self) -> Fault | None:
        """What the episode has not of the solution, else what it has beside it."""
        missing = self.not_made()
        if missing is not None:
            return missing
        exact = {one.instead for one in self._matched if one.as_recorded}
        place = next((place for place in self._changers() if place not in exact), None)
        if place is None:
            return None
        call = self._episode.calls[place].made
        return Fault(
            kind="extra edit",
            says=f"The recorded solution's calls were made, but {call_text(call)}{self._what_it_did(place)} as well.",
            call=call,
            checks=(self._number,),
        )

    def not_made(self) -> Fault | None:
        """The first call of the solution, among those that matter here, that the episode did not make like that."""
        return next((self._not_as_recorded(one) for one in self._case.relevant if not one.as_recorded), None)

    def _not_as_recorded(self, one: Matched) -> Fault:
        step = one.step
        call = step.instead
        if call is None:
            text = f"The recorded solution calls {solution_text(step)}; the episode never does."
            return Fault(kind="missing call", says=text, expected=step, checks=(self._number,))
        says = call_text(call)
        differing = f": the recorded solution has {self._other_arguments(step, call)}" if step.differing else ""
        if call.refused:
            says += f" was refused: {_shown(call.observation).rstrip('.。')}{differing.replace(':', ';', 1)}."
            return Fault(kind="call failed", says=says, call=call, expected=step, checks=(self._number,))
        says += differing
        entity = any(str(step.arguments.get(name)) in self._keys for name in step.differing)
        kind = "wrong entity" if entity else "wrong value"
        return Fault.model_validate(
            {"kind": kind, "says": f"{says}.", "call": call, "expected": step, "checks": (self._number,)}
        )

    def by_state(self) -> Fault | None:
        """The fault as the states alone tell it, where there is no solution to hold the episode against."""
        for change in self._case.remedy:
            wanted = f"{change.pointer} would have to be {_json(change.after)}"
            if change.kind == "added":
                wanted = f"{change.pointer} would have to be there"
            elif change.kind == "removed":
                wanted = f"{change.pointer} would have to be gone"
            changer = next(iter(self._changers_of(change.pointer)), None)
            if changer is not None:
                call = self._episode.calls[changer].made
                if len(self._case.remedy) > 1 or not self._gave(call, change.before):
                    return None  # what is there came of several things, any of which may be wrong, or is another's
                entity = str(change.after) in self._keys
                return Fault(
                    kind="wrong entity" if entity else "wrong value",
                    says=f"{call_text(call)}{self._what_it_did(changer)}, and {wanted}.",
                    call=call,
                    checks=(self._number,),
                )
            refused = attempts_at(change.pointer, self._episode)
            if refused:
                says = f"{call_text(refused[-1])} was refused: {_shown(refused[-1].observation)}."
                return Fault(kind="call failed", says=says, call=refused[-1], checks=(self._number,))
            elsewhere = self._same_change_elsewhere(change)
            if elsewhere is not None:
                call = self._episode.calls[elsewhere].made
                says = f"{call_text(call)}{self._what_it_did(elsewhere)}, and {wanted}."
                return Fault(kind="wrong entity", says=says, call=call, checks=(self._number,))
            return Fault(
                kind="missing call", says=f"No call of the episode changed it: {wanted}.", checks=(self._number,)
            )
        return None

    def _gave(self, call: CallMade, value: JsonValue) -> bool:
        """Whether a value is one of the arguments of a call."""
        return any(same_value(part, value) for _, part in leaves(dict(call.arguments)))

    def _same_change_elsewhere(self, wanted: Change) -> int | None:
        """The call that gave another record of the same kind the value that was wanted here."""
        path = tokens(wanted.pointer)
        for place in reversed(range(len(self._episode.calls))):
            for change in self._episode.calls[place].changes:
                other = tokens(change.pointer)
                alike = len(other) == len(path) > 2 and other[0] == path[0] and other[2:] == path[2:]
                elsewhere = alike and other[1] != path[1] and change.pointer not in self._case.wanted
                if elsewhere and same_value(change.after, wanted.after):
                    return place
        return None

    # -- words ----------------------------------------------------------------------------------------------

    def _changers(self) -> list[int]:
        """Indices of the calls that changed a place that decides, the last one first."""
        found = {place for change in self._case.remedy for place in self._changers_of(change.pointer)}
        return sorted(found, reverse=True)

    def _changers_of(self, pointer: str) -> list[int]:
        return [
            place
            for place in reversed(range(len(self._episode.calls)))
            if any(touches(change.pointer, pointer) for change in self._episode.calls[place].changes)
        ]

    def _what_it_did(self, place: int) -> str:
        """The changes of a call at the places that decide, else its first one."""
        changes = self._episode.calls[place].changes
        decisive = [
            change for change in changes if any(touches(change.pointer, one.pointer) for one in self._case.remedy)
        ]
        shown = (decisive or list(changes))[:3]
        return f" {' and '.join(self._change_text(change) for change in shown)}" if shown else " changed nothing"

    def _change_text(self, change: Change) -> str:
        label = label_of(change.pointer, self._episode.reset, self._episode.final)
        where = f"{change.pointer} ({label})" if label is not None else change.pointer
        if change.kind == "added":
            return f"added {where}"
        if change.kind == "removed":
            return f"removed {where}"
        return f"changed {where} from {_json(change.before)} to {_json(change.after)}"

    def _other_arguments(self, step: SolutionStep, call: CallMade) -> str:
        """The arguments of the solution that the episode's call has not, each with what it has."""
        parts = []
        for name in step.differing:
            theirs = self._argument(step.arguments, name)
            parts.append(f"{name}={theirs} and not {self._argument(call.arguments, name)}")
        return ", ".join(parts)

    def _argument(self, arguments: Mapping[str, JsonValue], name: str) -> str:
        return f"{_json(arguments[name])}{self._label(arguments[name])}" if name in arguments else "none"

    def _label(self, key: JsonValue) -> str:
        """What people call the record with that key."""
        if not isinstance(key, str):
            return ""
        place = next((pointer_of(kept, key) for kept, other, _ in records(self._episode.reset) if other == key), "")
        label = label_of(place, self._episode.reset)
        return f" ({label})" if label is not None else ""


def attempts_at(pointer: str, episode: Playback) -> list[CallMade]:
    """Calls that name the record which a place is in, and were refused."""
    path = tokens(pointer)
    if len(path) < 2:
        return []
    names = {path[1]}
    there, row = value_at(episode.reset, pointer_of(*path[:2]))
    if there and isinstance(row, dict) and path[1].isdigit():
        # A record in a list is known by what it calls itself.
        names = set(keys_of_records({path[0]: [row]}))
    return [
        call.made
        for call in episode.calls
        if call.made.refused and not names.isdisjoint(words_in(dict(call.made.arguments)))
    ]


def call_text(call: CallMade) -> str:
    """The call as a sentence names it: `cancel_booking(booking_id="B7") at step 3`."""
    step = f"step {call.step}" if call.of == 1 else f"step {call.step} (call {call.number} of {call.of})"
    arguments = call.malformed if call.malformed is not None else _arguments(call.arguments)
    return f"{call.name}({arguments}) at {step}"


def solution_text(step: SolutionStep) -> str:
    """The call of a solution: `cancel_booking(booking_id="B7")`."""
    return f"{step.name}({_arguments(step.arguments)})"


def _arguments(arguments: Mapping[str, JsonValue]) -> str:
    return ", ".join(f"{name}={_json(value)}" for name, value in arguments.items())


def _json(value: JsonValue) -> str:
    return _cut(json.dumps(value, ensure_ascii=False))


def _shown(observation: str) -> str:
    """What the agent saw; of a failure that a tool reports its own words."""
    try:
        result = json.loads(observation)
    except ValueError:
        return _cut(observation)
    said = result.get("error") or result.get("message") if isinstance(result, dict) else None
    return _cut(said if isinstance(said, str) else observation)


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
