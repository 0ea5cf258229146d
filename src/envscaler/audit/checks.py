"""`audit_checks`: what is wrong with the checks of one scenario, each fault with a state that shows it.

Every check is run: on the state at reset, on the solved one where there is a solution, on states made to satisfy it,
and on states that contradict its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from envscaler.audit.contradictions import Base, Contradiction, Contradictions, shown_edits
from envscaler.audit.demands import Reading, read_check
from envscaler.audit.mentions import GONE, Mentions, mentions, named_records
from envscaler.audit.search import Candidate, Search
from envscaler.editing import Edit
from envscaler.evidence import AuditFinding, AuditKind
from envscaler.proof.fields import Fields, records_of
from envscaler.proof.mutants import Mutants
from envscaler.proof.playing import Played
from envscaler.proof.sameness import Sameness, created_keys
from envscaler.sandbox import CheckOutcome, Judge, leaves_nothing
from envscaler.scenario import Check, Scenario
from envscaler.state import JsonValue, State, diff, edits_of

_SHORTEST_END = 4
"""Digits at the end of an id that tell it."""
_BASES = 3
"""States that a check accepts from which contradictions are made."""
_RECORDS = 6
"""Records at most that one check may look at for its contradictions to be made from a solved state."""
_DISTURBED = 120
"""Disturbed states on which a check that always holds would hold."""
_SEEDS = 10
"""Seeds with which a check that may draw lots is asked."""
_TIMELY = re.compile(
    r"\b(?:today|now|current|tomorrow|yesterday|days?|hours?|weeks?|dates?|deadline|overdue)\b|今|日|天"
)


@dataclass(frozen=True)
class Seen:
    """What the checks of a scenario said of the states that an episode can begin and end with."""

    reset: tuple[CheckOutcome, ...]
    again: tuple[tuple[CheckOutcome, ...], ...]
    """The same with other seeds."""
    later: tuple[CheckOutcome, ...]
    """The same at another time."""
    solved: tuple[CheckOutcome, ...] | None
    solved_again: tuple[tuple[CheckOutcome, ...], ...] | None
    solved_later: tuple[CheckOutcome, ...] | None
    solved_turned: tuple[CheckOutcome, ...] | None
    """The same with the records of each container in the reverse order."""


class CheckAudit:
    """The audit of the checks of one scenario.

    Args:
        played: what its solution did; of no calls where there is none.
        has_solution: whether a solution ran to its end.
    """

    def __init__(self, scenario: Scenario, played: Played, fields: Fields, judge: Judge, *, has_solution: bool) -> None:
        self._scenario = scenario
        self._played = played
        self._fields = fields
        self._judge = judge
        self._has_solution = has_solution
        self._sources = [check.source for check in scenario.checks]
        self._changes = diff(played.reset, played.final)
        self._created = created_keys(played.reset, played.final)

    async def findings(self) -> tuple[Seen, list[AuditFinding]]:
        """All that is wrong, check by check."""
        seen = await self._look()
        disturbed = list(self._disturbed())
        rows = await self._edited(self._sources, disturbed)
        found: list[AuditFinding] = []
        for index, check in enumerate(self._scenario.checks):
            found += await self._of_one(index, check, seen, [row[index] for row in rows])
        return seen, found

    async def _look(self) -> Seen:
        played = self._played
        reset = await self._look_at(played.reset, self._scenario.clock)
        if not self._has_solution:
            return Seen(*reset, None, None, None, None)
        containers = [name for name in self._fields.containers if len(records_of(played.final, name)) > 1]
        turned = {name: dict(reversed(played.final[name].items())) for name in containers}
        said = await self._judge.check(
            self._sources,
            initial_state=played.reset,
            final_state={**played.final, **turned},
            clock=played.clock,
        )
        return Seen(*reset, *await self._look_at(played.final, played.clock), said)

    async def _look_at(
        self, state: State, clock: str
    ) -> tuple[tuple[CheckOutcome, ...], tuple[tuple[CheckOutcome, ...], ...], tuple[CheckOutcome, ...]]:
        """What the checks say of a state, what they say with other seeds, and what at another time."""

        async def said(sources: Sequence[str], clock: str, seed: int) -> tuple[CheckOutcome, ...]:
            return await self._judge.check(
                sources, initial_state=self._played.reset, final_state=state, clock=clock, seed=seed
            )

        first = await said(self._sources, clock, 0)
        # Only those that import something can draw lots.
        drawing = [index for index, source in enumerate(self._sources) if not leaves_nothing(source)]
        again = []
        for seed in range(1, _SEEDS) if drawing else ():
            row = list(first)
            for index, outcome in zip(
                drawing, await said([self._sources[n] for n in drawing], clock, seed), strict=True
            ):
                row[index] = outcome
            again.append(tuple(row))
        later = (datetime.fromisoformat(clock) + timedelta(days=400)).isoformat()
        return first, tuple(again), await said(self._sources, later, 0)

    async def _edited(
        self, sources: Sequence[str], edits: Sequence[Sequence[Edit]]
    ) -> tuple[tuple[CheckOutcome, ...], ...]:
        """What checks say of edited states at reset."""
        return await self._judge.check_edited(
            sources,
            initial_state=self._played.reset,
            final_state=self._played.reset,
            edits=edits,
            clock=self._played.clock,
        )

    def _disturbed(self) -> Iterator[tuple[Edit, ...]]:
        """States that are wrong in many ways: whatever looks at the state at all says no to one of them."""
        state = self._played.reset
        for name, value in state.items():
            if isinstance(value, (dict, list)) and value:
                yield ([[name], {} if isinstance(value, dict) else []],)
            yield ([[name]],)
        yield tuple([[name]] for name in state)
        for container, ids in self._fields.containers.items():
            # Guards that allow some records more hold of one more.
            yield tuple([[container, f"{ids[0]}-{number}"], state[container][ids[0]]] for number in range(20))
        edits = [mutant.edits for mutant in Mutants(state, state, self._fields, Sameness(state)).too_much()]
        yield from edits[:_DISTURBED]

    # -- one check ------------------------------------------------------------------------------------------

    async def _of_one(
        self, index: int, check: Check, seen: Seen, disturbed: Sequence[CheckOutcome]
    ) -> list[AuditFinding]:
        reading, mentioned = read_check(check.source), mentions(check.description)
        reset = seen.reset[index]
        solved = seen.solved[index] if seen.solved is not None else None
        found = list(self._plain_faults(index, check, seen))
        if any(finding.kind in ("raises", "not_bool") for finding in found):
            return found
        if reading.verdicts == {True} or (reset.value is True and not reading.reads_state):
            found.append(self._finding(check, "tautology", "it returns True whatever the state is"))
            if not reading.reads_state:
                return found
        search = Search(self._played.reset, self._played.clock, self._fields, reading, mentioned)
        candidates = search.candidates()
        rows = await self._edited([check.source], [candidate.edits for candidate in candidates])
        accepted = [one for one, row in zip(candidates, rows, strict=True) if row[0].value is True]
        values = [outcome.value for outcome in disturbed]
        if reset.value is True and (solved is None or solved.value is True):
            tried = [*values, *(row[0].value for row in rows)]
            if all(value is True for value in tried):
                says = f"it holds at reset and on all of {len(tried)} disturbed states, the empty one among them"
                found.append(self._finding(check, "always_true", says))
                return found
        if reset.value is True and check.kind != "guard":
            found.append(self._finding(check, "true_at_reset", "it holds before anything is done", state=[]))
        found += self._never(check, reading, reset, solved, accepted, candidates, values)
        found += self._read_off(check, reading)
        bases = await self._own_bases(check, reset, solved, mentioned)
        if reset.value is False:
            bases += await self._smallest(check, accepted)
        contradictions = Contradictions(self._played.reset, self._fields, reading, mentioned)
        made = [one for base in bases for one in contradictions.of(base)]
        if check.kind != "guard":
            made += [one for one in self._emptied(reading, mentioned) if reset.value is False]
        rows = await self._edited([check.source], [one.edits for one in made])
        taken = [one for one, row in zip(made, rows, strict=True) if row[0].value is True]
        found += self._accepted_wrong(check, taken)
        return found

    def _plain_faults(self, index: int, check: Check, seen: Seen) -> Iterator[AuditFinding]:
        moments = (
            ("at reset", seen.reset, seen.again, seen.later, None),
            ("after the solution", seen.solved, seen.solved_again, seen.solved_later, seen.solved_turned),
        )
        told: set[str] = set()
        for when, outcomes, again, later, turned in moments:
            if outcomes is None or again is None or later is None:
                continue
            one, others, another = outcomes[index], [row[index] for row in again], later[index]
            kind: AuditKind | None = None
            if one.mutated:
                kind, says = "mutates", f"{when} it changes the state that it looks at"
            elif one.value is None:
                is_type = (one.error or "").startswith("TypeError: it returned ")
                kind, says = "not_bool" if is_type else "raises", f"{when}: {one.error}"
            elif any(one.value != other.value for other in others):
                kind, says = "nondeterministic", f"{when} it says {one.value}, and asked again {not one.value}"
            elif one.value != another.value and not _TIMELY.search(check.description.lower()):
                kind, says = "order_or_clock", f"{when} it says {one.value}, and 400 days later {another.value}"
            elif turned is not None and turned[index].value != one.value:
                said = turned[index].value
                kind, says = "order_or_clock", f"{when} it says {one.value}, with records in the reverse order {said}"
            if kind is not None and kind not in told:
                told.add(kind)
                yield self._finding(check, kind, says)

    def _never(
        self,
        check: Check,
        reading: Reading,
        reset: CheckOutcome,
        solved: CheckOutcome | None,
        accepted: Sequence[Candidate],
        candidates: Sequence[Candidate],
        disturbed: Sequence[bool | None],
    ) -> Iterator[AuditFinding]:
        if solved is not None:
            # A field that no record has, before or after, is brought about by no call.
            accepted = [one for one in accepted if not self._is_invented(one)]
        if reset.value is not False or accepted or any(disturbed) or (solved is not None and solved.value is True):
            return
        if reading.verdicts == {False}:
            yield self._finding(check, "never_true", "it returns False whatever the state is")
        elif solved is not None:
            says = f"it says False at reset, after the solution, and of {len(candidates) + len(disturbed)} other states"
            yield self._finding(check, "never_true", says)

    def _is_invented(self, candidate: Candidate) -> bool:
        """Whether a candidate gives a record a field that none of its kind has."""
        for change in candidate.edits:
            container, *rest = change[0]
            records = [*records_of(self._played.reset, container).values()]
            records += records_of(self._played.final, container).values()
            known = {name for record in records if isinstance(record, dict) for name in record}
            if known and len(rest) == 2 and rest[1] not in known:
                return True
            if (
                known
                and len(rest) == 1
                and len(change) > 1
                and isinstance(change[1], dict)
                and not known >= change[1].keys()
            ):
                return True
        return False

    def _read_off(self, check: Check, reading: Reading) -> Iterator[AuditFinding]:
        if reading.by_process:
            says = "it asks for what differs from process to process: a hash, a process id, a set's order, nanoseconds"
            yield self._finding(check, "nondeterministic", says)
        if reading.whole:
            yield self._finding(check, "whole_state", "it compares whole states, or whole containers, with each other")
        ids = [value for value in reading.constants if isinstance(value, str) and self._is_created(value)]
        stated = [value for value in ids if value not in self._scenario.task]
        if stated:
            says = f"it asks for {stated[0]!r}, an id that is made during the episode"
            yield self._finding(check, "created_ids", says, value=stated[0])

    def _is_created(self, text: str) -> bool:
        """Whether a text is an id that was made during the episode, or the end of one that holds its number."""
        ends = len(text) >= _SHORTEST_END and text.isdigit() and any(key.endswith(text) for key in self._created)
        return text in self._created or ends

    # -- states that it accepts -----------------------------------------------------------------------------

    async def _own_bases(
        self, check: Check, reset: CheckOutcome, solved: CheckOutcome | None, mentioned: Mentions
    ) -> list[Base]:
        """The states that an episode begins and ends with, where the check accepts them."""
        if solved is not None and solved.value is True and self._changes:
            base = await self._solved_base(check)
            return [base] if base is not None else []
        if reset.value is True:
            records = tuple(dict.fromkeys(named_records(mentioned, self._played.reset)))
            return [Base((), "reset", records)]
        return []

    async def _solved_base(self, check: Check) -> Base | None:
        """The solved state as far as the check looks at it: the changes of those records without which it says no."""
        by_record: dict[tuple[str, ...], list[Edit]] = {}
        for change in edits_of(self._changes):
            by_record.setdefault(tuple(map(str, change[0][:2])), []).append(change)
        every = [change for changes in by_record.values() for change in changes]
        without = [[change for change in every if change not in changes] for changes in by_record.values()]
        rows = await self._edited([check.source], without)
        needed = [record for record, row in zip(by_record, rows, strict=True) if row[0].value is not True]
        if not needed or len(needed) > _RECORDS:
            return None
        edits = [change for record in needed for change in by_record[record]]
        (alone,) = await self._edited([check.source], [edits])
        records = tuple((record[0], record[1]) for record in needed if len(record) == 2)
        return Base(tuple(edits if alone[0].value is True else every), "solved", records)

    async def _smallest(self, check: Check, accepted: Sequence[Candidate]) -> list[Base]:
        """Of the candidates that were accepted the smallest of each way, without the edits that they do not need."""
        by_way: dict[str, Candidate] = {}
        for candidate in sorted(accepted, key=lambda one: len(one.edits)):
            if candidate.way != "told":
                by_way.setdefault(candidate.way, candidate)
        out = []
        for way, candidate in list(by_way.items())[:_BASES]:
            edits = list(candidate.edits)
            if 1 < len(edits) <= 24:
                rows = await self._edited([check.source], [edits[:n] + edits[n + 1 :] for n in range(len(edits))])
                needed = [change for change, row in zip(edits, rows, strict=True) if row[0].value is not True]
                if needed and len(needed) < len(edits):
                    (row,) = await self._edited([check.source], [needed])
                    edits = needed if row[0].value is True else edits
            touched = {tuple(change[0][:2]) for change in edits}
            records = tuple(record for record in candidate.records if record in touched or record[:1] in touched)
            out.append(Base(tuple(edits), way, records))
        return out

    def _emptied(self, reading: Reading, mentioned: Mentions) -> Iterator[Contradiction]:
        """A container that a goal check looks through, emptied."""
        gone = GONE.search(mentioned.bare)
        values = {demand.value for demand in reading.demands if isinstance(demand.value, str)}
        if gone is not None and gone.group().casefold() not in {value.casefold() for value in values}:
            return
        read = {demand.path[0] for demand in reading.demands if demand.path}
        for container in self._fields.containers:
            if container in read or container in reading.keys:
                yield Contradiction("entity_missing", f"there is nothing in {container}", ([[container], {}],))

    # -- findings -------------------------------------------------------------------------------------------

    def _accepted_wrong(self, check: Check, taken: Sequence[Contradiction]) -> Iterator[AuditFinding]:
        certain = [one for one in taken if not one.suspected]
        for kind, chosen in (
            ("substring", [one for one in taken if one.part_of_text]),
            ("vacuous", [one for one in taken if one.probe == "entity_missing"]),
        ):
            if chosen:
                best = _smallest_of(chosen)
                yield self._finding(
                    check, "substring" if kind == "substring" else "vacuous", best.says, best, suspected=best.suspected
                )
        counted = [one for one in certain if not one.says.startswith("there is nothing in ")]
        if counted:
            best = _smallest_of(counted)
            yield self._finding(check, "false_positive", best.says, best)
        elif taken and not certain:
            best = _smallest_of(taken)
            yield self._finding(check, "false_positive", best.says, best, suspected=True)

    def _finding(
        self,
        check: Check,
        kind: AuditKind,
        says: str,
        shown: Contradiction | None = None,
        *,
        suspected: bool = False,
        **evidence: JsonValue,
    ) -> AuditFinding:
        if shown is not None:
            evidence |= {"probe": shown.probe, "state": shown_edits(shown.edits)}
        return AuditFinding(
            env_id=self._scenario.env_id,
            scenario_id=self._scenario.id,
            check=check.description,
            kind=kind,
            evidence={"says": says, **evidence},
            suspected=suspected,
        )


def _smallest_of(contradictions: Iterable[Contradiction]) -> Contradiction:
    return min(contradictions, key=lambda one: (one.suspected, len(one.edits)))
