"""Writes initial states of an environment and accepts only those that its program, schema and rules accept.

What a state is for is the caller's business.

Source: paper 3.3 (test state) and 4, S_init = M(P_state ‖ F_exec ‖ E_state). That references, rules and the
program itself must accept the state is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from envscaler.errors import NotJson, ProgramError
from envscaler.program import state_faults
from envscaler.roles import role as roles
from envscaler.roles import staged as s
from envscaler.roles import types as t
from envscaler.sandbox import Judge, Program, Sandbox
from envscaler.skeleton import Entity, EnvSkeleton, Rule
from envscaler.state import State, canonical, digest
from envscaler.synth.asking import Asking
from envscaler.synth.distance import Shape
from envscaler.synth.staged import records, schemas

MAX_SEED_TASKS = 5
"""Task texts that prompts show of an environment: more would cost tokens and tell little."""
_MAX_FAULTS = 6


def known_of(skeleton: EnvSkeleton) -> t.EnvironmentInputs:
    """What every role knows of an environment."""
    return t.EnvironmentInputs(
        description=skeleton.description,
        seed_tasks=skeleton.origin.seed_tasks[:MAX_SEED_TASKS],
        language=skeleton.origin.language,
        entities=skeleton.entities,
        rules=skeleton.rules,
        tools=skeleton.tools,
    )


@dataclass(frozen=True)
class WrittenState:
    """A state that was accepted."""

    state: State
    broken: tuple[str, ...] = ()
    """Predicates that do not hold in it; only where the caller tolerates them."""


async def write_state(
    known: t.EnvironmentInputs,
    program: Program,
    *,
    purpose: Literal["assessment", "scenario"],
    index: int,
    seed: int,
    asking: Asking,
    sandbox: Sandbox,
    judge: Judge | None = None,
    others: Sequence[State] = (),
    min_distance: float = 0.0,
    wanted: t.Wanted | None = None,
    tolerate_predicates: bool = False,
) -> WrittenState:
    """Have a state written until it can be accepted.

    Args:
        index: which of the states of this environment and purpose it is.
        judge: where predicates are evaluated; None: in a process of its own each time.
        others: states that it has to differ from.
        min_distance: share of values in which it differs from each of them at least.
        wanted: the scenario whose harder or easier version it is for.
        tolerate_predicates: accept a second state in which nothing but predicates is broken. A model's predicate
            can be wrong itself, and must not cost the environment.

    Raises:
        ReplyError: if none can be accepted.
    """
    broken: list[tuple[str, ...]] = []

    async def doubt(state: State) -> str | None:
        fault = await _structure_fault(state, known.entities, program, sandbox)
        if fault is None:
            false = await broken_predicates(state, known.rules, judge or sandbox)
            broken.append(tuple(rule.predicate for rule in false if rule.predicate is not None))
            if false and not (tolerate_predicates and len(broken) > 1):
                fault = "; ".join(f"it breaks the rule {rule.text!r} ({rule.predicate})" for rule in false)
        return fault or _likeness_fault(state, others, min_distance)

    if asking.scaffold == "staged":
        ids = records.ids(known.entities, index)
        asked = s.WriteRecordsInputs(**dict(known), purpose=purpose, index=index, seed=seed, ids=ids)
        written = await asking(
            roles.WRITE_RECORDS,
            asked,
            doubt=lambda reply: doubt(records.state(reply, known.entities, ids)),
            schema=schemas.write_records(known.entities, ids),
        )
        return WrittenState(state=canonical(records.state(written, known.entities, ids)), broken=broken[-1])
    reply = await asking(
        roles.WRITE_STATE,
        t.WriteStateInputs(
            **dict(known), source=program.source, purpose=purpose, index=index, seed=seed, wanted=wanted
        ),
        doubt=lambda reply: doubt(reply.state),
    )
    return WrittenState(state=canonical(reply.state), broken=broken[-1])


async def broken_predicates(state: State, rules: Sequence[Rule], judge: Judge | Sandbox) -> tuple[Rule, ...]:
    """The rules whose predicate is false in `state`. One that gives no boolean says nothing."""
    ruled = [rule for rule in rules if rule.predicate]
    if not ruled:
        return ()
    outcomes = await judge.evaluate([rule.predicate or "" for rule in ruled], state)
    return tuple(rule for rule, outcome in zip(ruled, outcomes, strict=True) if outcome.value is False)


async def _structure_fault(state: State, entities: Sequence[Entity], program: Program, sandbox: Sandbox) -> str | None:
    try:
        state = canonical(state)
    except NotJson as fault:
        return str(fault)
    faults = state_faults(state, entities)
    if faults:
        more = f"; and {len(faults) - _MAX_FAULTS} more faults" if len(faults) > _MAX_FAULTS else ""
        return "; ".join(faults[:_MAX_FAULTS]) + more
    try:
        async with sandbox.trial(program, state):
            return None
    except ProgramError as fault:
        return f"the program does not accept it: {fault}"


def _likeness_fault(state: State, others: Sequence[State], min_distance: float) -> str | None:
    own, own_shape = digest(canonical(state)), Shape(state)
    for index, other in enumerate(others):
        if digest(other) == own:
            return f"it equals state {index} of this environment; write another situation"
        there = Shape(other)
        if own_shape.may_be_nearer(there, min_distance) and (apart := own_shape.distance(there)) < min_distance:
            return (
                f"it differs from state {index} of this environment in {apart:.0%} of its values only, ids aside; "
                "write another situation, with other records and another number of them"
            )
    return None
