"""`CheckReader`: one check of an episode, explained: its course, what it reads, what it lacks, which call is to blame.

Finding the episode and playing it again is `explain`'s business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from envscaler.audit.explain_faults import Case, attempts_at, fault_of
from envscaler.audit.explain_matching import Matched, created_names, exact_matches, matched_calls
from envscaler.audit.explain_playback import Playback
from envscaler.audit.explain_records import (
    AlsoRead,
    CheckOutline,
    CheckReading,
    FoundIn,
    Place,
    PlaceChange,
    Remedy,
    RuleBroken,
    Turned,
)
from envscaler.audit.reading import Reader, Reading
from envscaler.audit.reading_places import changes_between, label_of, pattern_of, renamed, touches, value_at
from envscaler.audit.reading_remedy import Found, find_remedy, remedied
from envscaler.audit.reading_source import text_of
from envscaler.sandbox import CheckOutcome
from envscaler.sandbox.judge import Judge
from envscaler.scenario import Check
from envscaler.state import Change, State, tokens

_FEW = 12
"""Places up to which all that a check reads is told, changed or not."""


@dataclass(frozen=True)
class Model:
    """A recorded solution, held against an episode."""

    played: Playback
    names: dict[str, str]
    """Ids that it created → those of the same records in the episode."""
    matched: tuple[Matched, ...]

    @property
    def solved(self) -> State:
        """The state that it leaves, created ids as in the episode."""
        state = renamed(self.played.final, self.names)
        assert isinstance(state, dict)
        return state

    def relevant(self, changes: Sequence[Change]) -> tuple[Matched, ...]:
        """Its calls that change one of these places."""
        own = {ours: theirs for theirs, ours in self.names.items()}
        places = ["/".join(own.get(token, token) for token in one.pointer.split("/")) for one in changes]
        return tuple(
            one
            for one in self.matched
            if any(touches(change.pointer, place) for change in one.played.changes for place in places)
        )


def nearest(episode: Playback, solutions: Sequence[Playback]) -> Model | None:
    """The solution that the episode has most calls in common with; of equal ones the first."""
    models = []
    for played in solutions:
        names = created_names(episode.reset, episode.final, played.final)
        models.append(Model(played, names, matched_calls(episode, played, names)))
    return max(models, key=lambda model: exact_matches(model.matched), default=None)


class CheckReader:
    """Reads the checks of one episode, which has been played again."""

    def __init__(
        self,
        judge: Judge,
        checks: Sequence[Check],
        outlines: Sequence[CheckOutline],
        episode: Playback,
        model: Model | None,
        rules: dict[int, RuleBroken],
    ) -> None:
        self._judge = judge
        self._checks = checks
        self._holding = [one.number - 1 for one in outlines if one.holds]
        self._episode = episode
        self._model = model
        self._rules = rules
        self._touched = [change.pointer for call in episode.calls for change in call.changes]
        self.notes = [] if model is not None else ["the scenario has no recorded solution to hold the episode against"]

    async def reading(self, outline: CheckOutline, said: Sequence[CheckOutcome]) -> CheckReading:
        """One check, explained.

        Args:
            said: what it said at reset and after each call.
        """
        check = self._checks[outline.number - 1]
        episode, final = self._episode, self._episode.final
        others = [self._checks[number].source for number in self._holding if number != outline.number - 1]
        clock = episode.moments[-1].clock
        reader = Reader(self._judge, check.source, text_of(check), episode.reset, clock, others)
        held = [one.value for one in said]
        found = None
        if not outline.holds:
            found = await find_remedy(reader, final, self._examples(held), self._touched)
        base = remedied(final, found.changes) if found is not None else final
        read = await reader.places(base)
        relevant = await self._relevant(check, found) if not outline.holds else ()
        if found is not None:
            found = await _pruned(reader, final, found, read)
        fault = None
        if not outline.holds:
            wanted = await self._wanted(reader) if self._model is None else ()
            case = Case(
                held, outline.is_guard, found.changes if found else (), relevant, self._model is not None, wanted
            )
            matched = self._model.matched if self._model is not None else ()
            fault = fault_of(case, episode, matched, self._rules, outline.number)
        places, also = self._places(reader, base, read, found, relevant)
        return CheckReading(
            check=outline,
            source=check.source,
            held_after=tuple(held[1:]),
            turned=tuple(
                Turned(call=call.made, holds=after is True)
                for call, before, after in zip(episode.calls, held, held[1:], strict=False)
                if (before is True) != (after is True)
            ),
            places=tuple(places),
            also_read=tuple(also),
            untried=read.untried,
            remedy=Remedy(changes=found.changes, found_in=found.found_in, calls=tuple(one.step for one in relevant))
            if found is not None
            else None,
            fault=fault,
        )

    def _examples(self, held: Sequence[bool | None]) -> list[tuple[FoundIn, State]]:
        """States to take values from: what the solution leaves comes first, because it is right in all the rest."""
        states: list[tuple[FoundIn, State]] = []
        if self._model is not None:
            states.append(("solution", self._model.solved))
        states.append(("reset", self._episode.reset))
        last = max((place for place, holds in enumerate(held) if place and holds), default=0)
        if last:
            states.append(("episode", self._episode.moments[last].state))
        return states

    async def _wanted(self, reader: Reader) -> list[str]:
        """Changed places whose value another check asks for: with the one at reset some check would not hold."""
        episode = self._episode
        changes = changes_between(episode.final, episode.reset)
        said = await reader.others(episode.final, [[change] for change in changes])
        return [change.pointer for change, holds in zip(changes, said, strict=True) if not holds]

    async def _relevant(self, check: Check, found: Found | None) -> tuple[Matched, ...]:
        """The solution's calls that make a check hold: those that change what would have to be otherwise."""
        model = self._model
        if model is None:
            return ()
        if found is not None and found.found_in == "solution":
            return model.relevant(found.changes)
        said = [
            (
                await self._judge.check(
                    [check.source], initial_state=self._episode.reset, final_state=one.state, clock=one.clock
                )
            )[0].value
            for one in model.played.moments
        ]
        steps = [place for place in range(len(said) - 1) if said[place] is not True and said[place + 1] is True]
        return tuple(one for one in model.matched if one.step.number - 1 in steps)

    def _places(
        self, reader: Reader, base: State, read: Reading, found: Found | None, relevant: Sequence[Matched]
    ) -> tuple[list[Place], list[AlsoRead]]:
        """The places to tell one by one, and the patterns of the others."""
        decisive = [change.pointer for change in found.changes] if found is not None else []
        within = [one for one in read.places if one in decisive or not any(touches(one, place) for place in decisive)]
        changed = [
            place
            for place in within
            if place in read.leaves + read.records and any(touches(one, place) for one in self._touched)
        ]
        told = list(dict.fromkeys([*decisive, *changed]))
        few = [place for place in within if place not in read.containers and place not in told]
        if len(told) + len(few) <= _FEW:
            told += few
        if not told and not read.places:
            named = reader.named(self._episode.final, _FEW)
            return [self._place(place, False, relevant) for place in named], []
        counts: Counter[str] = Counter()
        for place in within:
            if place in read.containers:
                counts[f"{place}/+"] += 1
            elif place not in told:
                counts[pattern_of(place, base)] += 1
        also = [AlsoRead(pattern=pattern, count=count) for pattern, count in counts.items()]
        return [self._place(place, True, relevant) for place in told], also

    def _place(self, pointer: str, decides: bool, relevant: Sequence[Matched]) -> Place:
        episode = self._episode
        in_reset, at_reset = value_at(episode.reset, pointer)
        in_end, at_end = value_at(episode.final, pointer)
        changes = [
            PlaceChange(call=call.made, change=_at(change, pointer))
            for call in episode.calls
            for change in call.changes
            if touches(change.pointer, pointer)
        ]
        attempts = []
        if not changes:
            stands_for = [one.step.instead for one in relevant if one.step.instead is not None]
            attempts = [call for call in stands_for if call.refused]
            attempts += [call for call in attempts_at(pointer, episode) if call not in attempts]
        return Place(
            pointer=pointer,
            label=label_of(pointer, episode.reset, episode.final),
            at_reset=at_reset,
            in_reset=in_reset,
            at_end=at_end,
            in_end=in_end,
            decides=decides,
            changes=tuple(changes),
            attempts=tuple(attempts),
        )


def _at(change: Change, pointer: str) -> Change:
    """The part of a change that is at a place inside of what it changed."""
    if change.pointer == pointer or not pointer.startswith(f"{change.pointer}/"):
        return change
    inside = pointer[len(change.pointer) :]
    was, before = value_at(change.before, inside)
    is_, after = value_at(change.after, inside)
    kind = "changed" if was and is_ else "added" if is_ else "removed"
    return Change.model_validate({"pointer": pointer, "kind": kind, "before": before, "after": after})


async def _pruned(reader: Reader, final: State, found: Found, read: Reading) -> Found:
    """The remedy with new objects reduced to the fields that matter; what only puts back says so."""
    changes = []
    for change in found.changes:
        inside = [place[len(change.pointer) :] for place in read.leaves if place.startswith(f"{change.pointer}/")]
        mattering = {tokens(place)[0] for place in inside}
        is_new = not isinstance(change.before, dict) and not isinstance(value_at(reader.reset, change.pointer)[1], dict)
        if is_new and isinstance(change.after, dict) and mattering:
            after = {name: value for name, value in change.after.items() if name in mattering}
            changes.append(change.model_copy(update={"after": after}))
        else:
            changes.append(change)
    put_back = all(value_at(reader.reset, one.pointer) == (one.kind != "removed", one.after) for one in changes)
    pruned = Found(tuple(changes), "reset" if put_back else found.found_in)
    return pruned if (await reader.holds(final, [pruned.changes]))[0] else found
