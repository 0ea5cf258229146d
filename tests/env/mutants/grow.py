"""`mutants`: draws mutants of a kind over all programs; `differs`: whether one behaves otherwise than the original."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from envscaler.messages import ToolCall
from envscaler.probe import valid_arguments, wrong_arguments
from envscaler.sandbox import Outcome, Program, Sandbox
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import encode

from .editing import Place
from .programs import Sound
from .semantic import SEMANTIC
from .structural import STRUCTURAL, Mutation

_CALLS = 50
"""Calls that the original and a mutant are given, to see whether they differ."""
_UNSEEN = frozenset({"aliasing of returned state", "nondeterminism", "schema mismatch"})
"""Kinds that show in other things than what a call in a sandbox does."""


@dataclass(frozen=True)
class Mutant:
    """A program with one fault."""

    kind: str
    readable: bool
    """Whether what it violates is machine-readable: a name, a parameter, an effect or a predicate says it."""
    skeleton: EnvSkeleton
    sound: Sound
    tool: str

    @property
    def place(self) -> str:
        """Program and tool."""
        return f"{self.skeleton.id}/{self.tool}"


def mutants(kind: str, sound: Sequence[Sound], *, seed: int = 0) -> Iterator[Mutant]:
    """Mutants of a kind, one of each program in turn, until there are no more; some may behave as the original."""
    mutation: Mutation = {**STRUCTURAL, **SEMANTIC}[kind]
    queues = [
        # What nothing machine-readable says is planted too, to see that it is not taken for right.
        _candidates(kind, mutation, one, seed, readable_first=number % 3 != 2)
        for number, one in enumerate(sound)
    ]
    while queues:
        for queue in list(queues):
            mutant = next(queue, None)
            if mutant is None:
                queues.remove(queue)
            else:
                yield mutant


def _candidates(kind: str, mutation: Mutation, sound: Sound, seed: int, *, readable_first: bool) -> Iterator[Mutant]:
    """Mutants of one kind, one of each tool before the second of any; made when they are asked for."""
    rng = Random(f"{kind}/{sound.skeleton.id}/{seed}")
    later: list[Mutant] = []
    for tool in rng.sample(sound.skeleton.tools, len(sound.skeleton.tools)):
        found = [
            Mutant(kind, readable, skeleton, sound, tool.name)
            for skeleton, readable in mutation(Place(sound.skeleton, tool))
        ]
        rng.shuffle(found)
        found.sort(key=lambda mutant: readable_first and not mutant.readable)
        if found and (found[0].readable or not readable_first):
            yield found.pop(0)
        later += found
    yield from rng.sample(later, len(later))


async def differs(mutant: Mutant, sandbox: Sandbox) -> bool:
    """Whether the mutant answers one of many calls otherwise than the original, or leaves another state."""
    if mutant.kind in _UNSEEN:
        return True
    program = Program(mutant.skeleton.source, mutant.skeleton.class_name)
    states_count = mutant.kind != "stale index"  # whose index is part of its state
    trail = await _trail(mutant.sound, mutant.tool, sandbox)
    async with sandbox.trial(program, mutant.sound.state, clock=mutant.sound.clock) as session:
        for call, expected in trail:
            outcome = await session.call(call.name, call.arguments)
            if encode(outcome.result) != encode(expected.result) or outcome.fault != expected.fault:
                return True
            if states_count and outcome.digest != expected.digest:
                return True
    return False


async def _trail(sound: Sound, name: str, sandbox: Sandbox) -> list[tuple[ToolCall, Outcome]]:
    rng = Random(f"{sound.skeleton.id}/{name}")
    tool = sound.skeleton.tool(name)
    assert tool is not None
    others: list[ToolSpec] = [one for one in sound.skeleton.tools if one.effect == "update"]
    program = Program(sound.skeleton.source, sound.skeleton.class_name)
    made = []
    async with sandbox.trial(program, sound.state, clock=sound.clock) as session:
        for _ in range(_CALLS):
            chosen = tool if rng.random() < 0.6 else rng.choice(others)
            state = await session.state()
            arguments = valid_arguments(chosen, state, sound.skeleton.entities, rng)
            if rng.random() < 0.2:
                _, arguments = wrong_arguments(chosen, state, sound.skeleton.entities, rng, arguments=arguments)
            call = ToolCall(name=chosen.name, arguments=arguments)
            made.append((call, await session.call(call.name, call.arguments)))
    return made
