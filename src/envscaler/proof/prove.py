"""`prove`: tries every check of a scenario on doing nothing, on its solution, on equally right ways and on wrong ones.

No model is asked. What follows from a proof is the business of whoever has it made.

Source: ours. The paper (section 4) takes check functions as they are written; PAPER.md's neighbours execute solutions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from envscaler.editing import Edit
from envscaler.errors import ProgramError
from envscaler.evidence import WRONG, CheckFault, Probe, Proof
from envscaler.probe import planned
from envscaler.proof.fields import Fields
from envscaler.proof.mutants import Mutant, Mutants
from envscaler.proof.playing import Played, play
from envscaler.proof.sameness import Sameness
from envscaler.proof.texts import Known, demanded, leaks
from envscaler.proof.ways import Way, Ways
from envscaler.sandbox import CheckOutcome, Judge, Sandbox, leaves_nothing
from envscaler.scenario import Check, CheckKind, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State, diff, digest, edits_of, encode, leaves, tokens

METHOD = 2
"""Raised when what is tried changes: older proofs are stale then."""
_BOOKS = re.compile(r"revision|version|count|updates|writes|serial|seq")
"""Names of numbers in which programs count what they did."""
_SEEDS = 5
"""Seeds with which a check that may draw lots is asked."""
MOST_WRONG = 150
"""Wrong final states of one scenario at most."""
MOST_TOO_MUCH = 40
"""Final states with an edit too many at most."""


def is_stale(proof: Proof, skeleton: EnvSkeleton, scenario: Scenario) -> bool:
    """Whether a proof was made for something else than what is there now."""
    made_for = (proof.method, proof.env_digest, proof.scenario_digest, proof.solution_digest)
    return made_for != (METHOD, skeleton.digest, scenario.digest, solution_digest(scenario))


def solution_digest(scenario: Scenario) -> str:
    """Pins solution and alternatives."""
    return digest(scenario.model_dump(mode="json", include={"solution", "alternatives"}))


async def prove(skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox, judge: Judge) -> Proof:
    """Try everything. A program that cannot be built from the initial state proves nothing, and the proof says so.

    Args:
        judge: where checks are run; it serves many scenarios one after the other.

    Raises:
        SandboxError: if the machinery fails.
    """
    try:
        return (await examine(skeleton, scenario, sandbox, judge)).proof
    except ProgramError as error:
        return Proof(
            env_id=scenario.env_id,
            scenario_id=scenario.id,
            env_digest=skeleton.digest,
            scenario_digest=scenario.digest,
            solution_digest=solution_digest(scenario),
            method=METHOD,
            kinds=tuple(check.kind or "goal" for check in scenario.checks),
            probes=(),
            unproved=(f"the program cannot be built from its state: {error}",),
        )


@dataclass(frozen=True)
class Examined:
    """A proof, and the states that it speaks of, for whoever mends what it shows."""

    proof: Proof
    played: Played
    """What the solution did; where there is none, what doing nothing did."""
    right: tuple[State, ...] = ()
    """Final states of the solution and of the alternatives; empty where the solution does not run."""
    sameness: Sameness | None = None
    wrong: tuple[tuple[Mutant, tuple[int, ...]], ...] = ()
    """Wrong final states, each with the indices of the checks that notice it."""


async def examine(skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox, judge: Judge) -> Examined:
    """As `prove`, with the states.

    Raises:
        ProgramError: if the program cannot be built from the initial state.
        SandboxError: if the machinery fails.
    """
    return await _Proving(skeleton, scenario, sandbox, judge).examine()


class _Proving:
    def __init__(self, skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox, judge: Judge) -> None:
        self._skeleton = skeleton
        self._scenario = scenario
        self._sandbox = sandbox
        self._judge = judge
        self._sources = [check.source for check in scenario.checks]
        self._probes: list[Probe] = []
        self._faults: dict[tuple[int, str], CheckFault] = {}
        self._right: tuple[State, ...] = ()
        self._sameness: Sameness | None = None
        self._wrong: list[tuple[Mutant, tuple[int, ...]]] = []

    async def examine(self) -> Examined:
        scenario = self._scenario
        played = await play(self._skeleton, scenario, planned(scenario.solution or ()), self._sandbox)
        kinds = await self._at_reset(played)
        unproved: list[str] = []
        hidden: tuple[str, ...] = ()
        if scenario.solution is None:
            unproved.append("it has no solution")
        elif not played.succeeded:
            number, fault = next((place, fault) for place, fault in enumerate(played.faults, 1) if fault)
            unproved.append(f"call {number} of its solution, {played.made[number - 1].name}, fails: {fault}")
        else:
            hidden = await self._solved(played, kinds)
        proof = Proof(
            env_id=scenario.env_id,
            scenario_id=scenario.id,
            env_digest=self._skeleton.digest,
            scenario_digest=scenario.digest,
            solution_digest=solution_digest(scenario),
            method=METHOD,
            kinds=kinds,
            probes=tuple(self._probes),
            faults=tuple(self._faults.values()),
            hidden=hidden,
            leaks=tuple(
                f"the task names the {'tool' if kind == 'tool' else 'id'} {word}"
                for kind, word in leaks(scenario, self._skeleton)
            ),
            unproved=tuple(unproved),
        )
        return Examined(proof, played, self._right, self._sameness, tuple(self._wrong))

    # -- the ends that are known ----------------------------------------------------------------------------

    async def _at_reset(self, played: Played) -> tuple[CheckKind, ...]:
        """Judge doing nothing; return as what each check counts."""
        outcomes = await self._judged(played, played.reset, self._scenario.clock)
        self._note("noop", "nothing was done", outcomes)
        return tuple(_counts_as(check, now) for check, now in zip(self._scenario.checks, outcomes, strict=True))

    async def _solved(self, played: Played, kinds: Sequence[CheckKind]) -> tuple[str, ...]:
        """Try all that a solution leads to; return what is demanded and cannot be known."""
        skeleton, scenario = self._skeleton, self._scenario
        self._note("solution", "the solution was played", await self._judged(played, played.final, played.clock))
        fields = Fields(skeleton, played.reset)
        ways = Ways(skeleton, scenario, played, fields)
        same_calls = [(way, await self._play(way)) for way in ways.otherwise()]
        alike = [one for _, one in same_calls if one.succeeded]
        sameness = Sameness.of(played.reset, played.final, (one.final for one in alike))
        right = [(way, await self._play(way)) for way in ways.right()]
        aside = _kept_by_program(played, fields)
        for way, one in [*same_calls, *right]:
            if way.kind == "alternative" or sameness.same(one.final, played.final, aside):
                self._note(way.kind, way.what, await self._judged(one, one.final, one.clock))
        self._sameness = sameness
        self._right = (played.final, *(one.final for way, one in right if way.kind == "alternative"))
        accepted = set(map(sameness.text, self._right))
        wrong = [(way, await self._play(way)) for way in ways.wrong()]
        mutants = Mutants(played.reset, played.final, fields, sameness)
        made = [
            *(
                Mutant(way.kind, way.what, tuple(edits_of(diff(played.final, one.final))))
                for way, one in wrong
                if sameness.text(one.final) not in accepted
            ),
            *islice(mutants.wrong(), MOST_WRONG),
            *islice(mutants.too_much(), MOST_TOO_MUCH),
        ]
        await self._edited(played, [*made, *_kept_otherwise(played, skeleton, aside)])
        return tuple(self._hidden(played, kinds))

    async def _play(self, way: Way) -> Played:
        return await play(self._skeleton, self._scenario, way.calls, self._sandbox, seed=way.seed, clock=way.clock)

    async def _judged(self, played: Played, final: State, clock: str) -> tuple[CheckOutcome, ...]:
        """What the checks say; of those that may draw lots it is noted whether they say the same with other seeds."""

        async def said(sources: Sequence[str], seed: int) -> tuple[CheckOutcome, ...]:
            return await self._judge.check(
                sources, initial_state=played.reset, final_state=final, clock=clock, seed=seed
            )

        first = await said(self._sources, 0)
        drawing = [index for index, source in enumerate(self._sources) if not leaves_nothing(source)]
        for seed in range(1, _SEEDS) if drawing else ():
            again = await said([self._sources[index] for index in drawing], seed)
            for index, other in zip(drawing, again, strict=True):
                if first[index].value != other.value:
                    told = f"{_said(first[index])}, and asked again {_said(other)}"
                    self._fault(index, "nondeterministic", told)
        return first

    async def _edited(self, played: Played, mutants: Sequence[Mutant]) -> None:
        edits: list[Sequence[Edit]] = [mutant.edits for mutant in mutants]
        rows = await self._judge.check_edited(
            self._sources, initial_state=played.reset, final_state=played.final, edits=edits, clock=played.clock
        )
        for mutant, outcomes in zip(mutants, rows, strict=True):
            self._note(mutant.kind, mutant.what, outcomes, faults=False)
            if mutant.kind in WRONG:
                self._wrong.append((mutant, self._probes[-1].failed))

    def _note(self, kind: object, what: str, outcomes: Sequence[CheckOutcome], *, faults: bool = True) -> None:
        failed = tuple(index for index, outcome in enumerate(outcomes) if outcome.value is not True)
        self._probes.append(Probe.model_validate({"kind": kind, "what": what, "failed": failed}))
        for index, outcome in enumerate(outcomes) if faults else ():
            if outcome.mutated:
                self._fault(index, "mutates", f"when {what}")
            if outcome.value is None:
                is_type = (outcome.error or "").startswith("TypeError: it returned ")
                self._fault(index, "not_bool" if is_type else "raises", f"when {what}: {outcome.error}")

    def _fault(self, index: int, kind: str, detail: str) -> None:
        fault = CheckFault.model_validate({"check": index, "kind": kind, "detail": detail})
        self._faults.setdefault((index, kind), fault)

    # -- what nobody can know -------------------------------------------------------------------------------

    def _hidden(self, played: Played, kinds: Sequence[CheckKind]) -> Iterable[str]:
        # What a call that changes something returns is what it was told, as a rule.
        told = [result for result, changed in zip(played.results, played.changed, strict=True) if not changed]
        known = Known(self._scenario, self._skeleton, told)
        given = {encode(value) for call in played.made for _, value in leaves(call.arguments)}
        computed = [
            value
            for change in diff(played.reset, played.final)
            if change.kind != "removed"
            for _, value in leaves(change.after)
            if encode(value) not in given
        ]
        for index, (check, kind) in enumerate(zip(self._scenario.checks, kinds, strict=True)):
            for values in demanded(check) if kind == "goal" else ():
                if not any(known.knows(value) or _among(value, computed) for value in values):
                    yield (
                        f"check {index + 1} demands {' or '.join(map(repr, values))}, which stands neither in the "
                        "task nor in the state, and no call tells it"
                    )


def _kept_by_program(played: Played, fields: Fields) -> frozenset[str]:
    """State keys that hold no records and were changed to what no call was told: logs and counters of the program."""
    given = {encode(value) for call in played.made for _, value in leaves(call.arguments)}
    changed = {tokens(change.pointer)[0] for change in diff(played.reset, played.final) if change.pointer}
    plain = {key for key in changed if key not in fields.containers and not isinstance(played.final.get(key), dict)}
    return frozenset(key for key in plain if encode(played.final.get(key)) not in given)


def _kept_otherwise(played: Played, skeleton: EnvSkeleton, aside: Iterable[str]) -> Iterator[Mutant]:
    """The solved state with the program's own books as one more update on the way would have left them."""
    tools = {tool.name for tool in skeleton.tools}
    updates = sum(played.changed)
    for name in sorted(aside):
        before, after = played.reset.get(name), played.final[name]
        told = f"one update more on the way, as /{name} tells"
        if isinstance(after, str) and after in tools:
            yield Mutant("variant", told, ([[name], f"{after} and another"],))
        elif isinstance(after, list) and len(after) - len(before or ()) == updates and _tells(after[-1], tools):
            yield Mutant("variant", told, ([[name, len(after)], after[-1]],))
        elif type(after) is int and type(before) is int and after - before == updates and _BOOKS.search(name):
            yield Mutant("variant", told, ([[name], after + 1],))


def _tells(entry: JsonValue, tools: Collection[str]) -> bool:
    """Whether an entry of a log names a tool."""
    return any(isinstance(value, str) and value in tools for _, value in leaves(entry))


def _counts_as(check: Check, at_reset: CheckOutcome) -> CheckKind:
    return check.kind if check.kind is not None else "guard" if at_reset.value is True else "goal"


def _said(outcome: CheckOutcome) -> str:
    return str(outcome.value) if outcome.value is not None else f"it raised {outcome.error}"


def _among(value: JsonValue, values: Sequence[JsonValue]) -> bool:
    if isinstance(value, str):
        return any(isinstance(other, str) and other.casefold().strip() == value.casefold().strip() for other in values)
    return any(not isinstance(other, (str, bool)) and other == value for other in values)
