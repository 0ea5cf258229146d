"""`Planted`: one sound environment or scenario with one fault in it, and the registry of the ways to plant one.

A *form* is one way to make a kind of fault; each kind has several, as different models write the same mistake
differently. `plant` draws forms and grounds in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State

from .bench import Bench
from .grounds import Ground, grounds, varied


@dataclass(frozen=True)
class Evidence:
    """What shows that the fault is there; for the planter's own tests, not for what is measured."""

    states: tuple[State, ...] = ()
    """Final states of which a check says the wrong thing, or states that show it otherwise."""
    state: State | None = None
    """The state from which `calls` show it."""
    calls: tuple[SolutionCall, ...] = ()
    """Calls that show it: from `state`, or in place of the scenario's solution."""
    value: JsonValue = None
    """The value that is demanded and told nowhere."""
    clock: str | None = None
    """Another time, at which the same state gets another verdict."""


@dataclass(frozen=True)
class Planted:
    """An environment, and perhaps a scenario, with one fault."""

    kind: str
    """What a perfect audit must report."""
    also: frozenset[str]
    """Further kinds that describe the same fault as well."""
    skeleton: EnvSkeleton
    scenario: Scenario | None
    """None where the fault is in the environment alone."""
    place: str
    """Description of the check, name of the tool, text of the rule or pointer into the state that has the fault; empty
    for the scenario, or the program, as a whole."""
    note: str
    """What was done."""
    beside: tuple[Scenario, ...] = ()
    """With a fault in the environment alone: scenarios whose solutions still run there and satisfy their checks, so
    that there are states to try it from. Empty where the program cannot be opened."""
    evidence: Evidence = field(default=Evidence(), repr=False)


Form = Callable[[Ground, Bench, Random], Planted | None]
"""Plants its fault into a ground, or finds that it cannot."""

FORMS: dict[str, list[Form]] = {}
"""The forms of each kind, in the order in which they are drawn."""


def form(kind: str) -> Callable[[Form], Form]:
    """Registers a form of a kind."""

    def registered(function: Form) -> Form:
        FORMS.setdefault(kind, []).append(function)
        return function

    return registered


def planted_in(
    kind: str,
    ground: Ground,
    scenario: Scenario,
    place: str,
    note: str,
    *,
    also: tuple[str, ...] = (),
    skeleton: EnvSkeleton | None = None,
    states: tuple[State, ...] = (),
    state: State | None = None,
    calls: tuple[SolutionCall, ...] = (),
    clock: str | None = None,
) -> Planted:
    """A fault of a scenario."""
    if skeleton is not None:
        scenario = varied(scenario, env_digest=skeleton.digest)
    return Planted(
        kind=kind,
        also=frozenset(also),
        skeleton=skeleton or ground.skeleton,
        scenario=scenario,
        place=place,
        note=note,
        evidence=Evidence(states=states, state=state, calls=calls, clock=clock),
    )


def plant(seed: int, per_kind: int = 10) -> Iterator[Planted]:
    """Faults of every kind, drawn from a seed.

    Args:
        per_kind: how many of each kind; forms and grounds are used in turn, none twice together.
    """
    with Bench() as bench:
        for kind in FORMS:
            yield from plant_kind(kind, seed, per_kind, bench)


def plant_kind(kind: str, seed: int, per_kind: int, bench: Bench) -> Iterator[Planted]:
    """Faults of one kind."""
    draw = Random(f"{seed}:{kind}")
    ways = list(FORMS[kind])
    draw.shuffle(ways)
    left = {id(way): draw.sample(grounds(), len(grounds())) for way in ways}
    seen: set[str] = set()
    while len(seen) < per_kind and ways:
        for way in list(ways):
            made = _next(way, left[id(way)], bench, draw)
            if made is None:
                ways.remove(way)
                continue
            text = f"{made.skeleton!r} {made.scenario!r}"
            if text not in seen:
                seen.add(text)
                yield made
            if len(seen) == per_kind:
                break
    if len(seen) < per_kind:
        raise ValueError(f"{kind} can be planted {len(seen)} times only")


def _next(way: Form, left: list[Ground], bench: Bench, draw: Random) -> Planted | None:
    while left:
        made = way(left.pop(), bench, draw)
        if made is not None:
            return made
    return None
