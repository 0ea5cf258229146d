"""`varied`: the calls of a solution in another of the ways that come to the same end.

Only what cannot change the end is varied: queries trade places among themselves, more of them are made, an alternative
of the scenario is taken, a call is first made with a fault for which it is refused. Updates keep their order, because
the rules of a domain may depend on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from envscaler.probe import PlannedCall, WrongKind, mistaken, planned, told_look_ups
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue

_LOOK_UPS, _MISTAKES = 3, 2
"""Calls of each kind that are put in at most."""
_ROOM = 29
"""Calls at most, where more are put in: an episode has 30 turns, and the last one is the report."""
_REFUSED: tuple[WrongKind, ...] = ("missing", "null", "not_in_enum", "unknown_id")
"""Faults for which a call is refused, before it is carried out or by any program that looks up what it is given."""


@dataclass(frozen=True)
class Move:
    """One call of a course, and how it goes wrong, if it is a mistake."""

    plan: PlannedCall
    wrong: Mapping[str, JsonValue] | None = None
    """The recorded arguments with a fault in them; None: it is made as planned."""
    mends: bool = False
    """Whether it is the call of the mistake right before it, made right."""

    def arguments(self, results: Mapping[int, JsonValue]) -> dict[str, JsonValue]:
        """The arguments that it is made with, after the results of earlier calls."""
        right, wrong = self.plan.call.resolved(results), self.wrong
        if wrong is None:
            return right
        recorded = self.plan.call.arguments
        kept = {name: value for name, value in right.items() if name in wrong}
        return kept | {name: value for name, value in wrong.items() if recorded.get(name) != value}


def plain(scenario: Scenario) -> tuple[Move, ...]:
    """The recorded solution and nothing else."""
    return tuple(Move(plan) for plan in planned(scenario.solution or ()))


def varied(scenario: Scenario, tools: Sequence[ToolSpec], entities: Sequence[Entity], rng: Random) -> tuple[Move, ...]:
    """Another way, drawn: with alternatives, other orders of queries, look-ups, and mistakes that are put right."""
    known = {tool.name: tool for tool in tools}
    moves = [Move(plan) for plan in _regrouped(rng.choice(_bases(scenario, known)), known, rng)]
    room = max(0, _ROOM - len(moves))
    if not moves:
        # Nothing is to be done, and nothing is: a look around would be the only call.
        return ()
    wished = rng.choice([(1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (1, _MISTAKES), (_LOOK_UPS, 1)])
    looks = _look_ups(moves, tools, scenario, entities, rng)[: min(wished[0], room)]
    # Where there is nothing to look up a mistake has to make the difference.
    mistakes = min(wished[1] if looks else max(1, wished[1]), room - len(looks))
    moves = list(_with_mistakes(moves, known, scenario, entities, rng, mistakes))
    return tuple(_placed(looks, moves, rng))


def _bases(scenario: Scenario, known: Mapping[str, ToolSpec]) -> list[list[PlannedCall]]:
    """The solution and its alternatives, as far as their tools are shown."""
    ways = [scenario.solution or (), *scenario.alternatives]
    playable = [way for way in ways if all(call.name in known for call in way)]
    return [planned(way) for way in playable or ways[:1]]


def _regrouped(plan: Sequence[PlannedCall], known: Mapping[str, ToolSpec], rng: Random) -> Iterator[PlannedCall]:
    """The plan with the queries between two updates in another order, each after those whose results it needs."""
    waiting: list[PlannedCall] = []
    for step in plan:
        tool = known.get(step.call.name)
        if tool is not None and tool.effect == "query":
            waiting.append(step)
            continue
        yield from _shuffled(waiting, rng)
        waiting = []
        yield step
    yield from _shuffled(waiting, rng)


def _shuffled(queries: Sequence[PlannedCall], rng: Random) -> Iterator[PlannedCall]:
    left = list(queries)
    while left:
        open_numbers = {step.number for step in left}
        ready = [step for step in left if not open_numbers & {bound.call for bound in step.call.bindings.values()}]
        # Bindings lead to earlier calls only, so that the first of those left is always ready.
        chosen = rng.choice(ready or left[:1])
        left.remove(chosen)
        yield chosen


def _with_mistakes(
    moves: Sequence[Move],
    known: Mapping[str, ToolSpec],
    scenario: Scenario,
    entities: Sequence[Entity],
    rng: Random,
    most: int,
) -> Iterator[Move]:
    faulty: dict[int, Move] = {}
    # Programs of the published format check less of what they are given: there only what never reaches them.
    kinds = _REFUSED if scenario.released is None else ("missing",)
    for index in rng.sample(range(len(moves)), len(moves)):
        if len(faulty) == most:
            break
        call = moves[index].plan.call
        tool = known.get(call.name)
        if tool is None or not call.arguments:
            continue
        wrong = mistaken(tool, call.arguments, scenario.initial_state, entities, rng, kinds)
        if wrong is not None:
            faulty[index] = Move(PlannedCall(call), wrong)
    for index, move in enumerate(moves):
        if index in faulty:
            yield faulty[index]
        yield Move(move.plan, mends=index in faulty)


def _look_ups(
    moves: Sequence[Move], tools: Sequence[ToolSpec], scenario: Scenario, entities: Sequence[Entity], rng: Random
) -> list[Move]:
    """Look-ups that the way does not have already, those that take a value from the task first."""
    made = [move.plan.call for move in moves]
    telling: list[Move] = []
    broad: list[Move] = []
    for look, told in told_look_ups(tools, scenario.initial_state, entities, scenario.task):
        if not any(_is_same(look.call, call) for call in made):
            (telling if told else broad).append(Move(look))
    rng.shuffle(telling)
    rng.shuffle(broad)
    return [*telling, *broad]


def _placed(looks: Sequence[Move], moves: Sequence[Move], rng: Random) -> Iterator[Move]:
    """The look-ups before everything, or each somewhere on the way."""
    if rng.random() < 0.5:
        yield from (*looks, *moves)
        return
    waiting = sorted(((rng.randrange(len(moves)), look) for look in looks), key=lambda pair: pair[0])
    for index, move in enumerate(moves):
        # Nothing comes between a mistake and the call that mends it.
        while waiting and waiting[0][0] <= index and not move.mends:
            yield waiting.pop(0)[1]
        yield move
    yield from (look for _, look in waiting)


def _is_same(one: SolutionCall, other: SolutionCall) -> bool:
    return one.name == other.name and one.arguments == other.arguments
