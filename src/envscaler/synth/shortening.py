"""Makes a solution of what an agent did: bindings found by program, calls left out that change nothing of the end.

Which of several runs is the solution is `solving`'s business.

Source: ours.
"""

from __future__ import annotations

from collections.abc import Sequence

from envscaler.probe import PlannedCall, planned
from envscaler.proof.playing import Played, play
from envscaler.proof.sameness import Sameness
from envscaler.sandbox import Sandbox
from envscaler.scenario import Binding, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State, escape, leaves


def bound(
    calls: Sequence[SolutionCall], results: Sequence[JsonValue], state: State, task: str
) -> tuple[SolutionCall, ...]:
    """The calls with a binding for each argument that nobody could know before an earlier call returned it.

    Such is a text, or a number under a name that ends in `id`, that an earlier result holds and neither the state nor
    the task does.
    """
    known = {value for path, leaf in leaves(state) for value in (*path, leaf) if isinstance(value, (str, int))}
    out: list[SolutionCall] = []
    for index, call in enumerate(calls):
        bindings: dict[str, Binding] = {}
        for path, value in leaves(call.arguments):
            if not path or value in known or not _is_id(path, value) or str(value) in task:
                continue
            found = _first(value, results[:index])
            if found is not None:
                bindings["".join(f"/{escape(token)}" for token in path)] = found
        out.append(call.model_copy(update={"bindings": bindings}))
    return tuple(out)


def _is_id(path: Sequence[str], value: JsonValue) -> bool:
    if isinstance(value, str):
        return bool(value)
    return type(value) is int and path[-1].lower().endswith("id")


def _first(value: JsonValue, results: Sequence[JsonValue]) -> Binding | None:
    for call, outcome in enumerate(results):
        for path, leaf in leaves(outcome):
            if path and type(leaf) is type(value) and leaf == value:
                return Binding(call=call, pointer="".join(f"/{escape(token)}" for token in path))
    return None


async def shortened(
    calls: Sequence[SolutionCall],
    played: Played,
    skeleton: EnvSkeleton,
    scenario: Scenario,
    sandbox: Sandbox,
    sameness: Sameness,
) -> tuple[tuple[SolutionCall, ...], Played]:
    """The fewest of the calls that still come to the same, left out one after the other; and what they did.

    Args:
        played: what all of them did.
    """
    target = sameness.text(played.final)
    kept, did = planned(calls), played

    async def try_without(left_out: Sequence[PlannedCall]) -> None:
        nonlocal kept, did
        trial = [plan for plan in kept if plan not in left_out]
        again = await play(skeleton, scenario, trial, sandbox)
        if again.succeeded and sameness.text(again.final) == target:
            kept, did = trial, again

    # Look-ups together first: most calls of an agent are look-ups, and hardly one of them is missed.
    await try_without(
        [plan for plan, changed in zip(kept, played.changed, strict=True) if not changed and not _is_needed(plan, kept)]
    )
    for plan in reversed(list(kept)):
        if not _is_needed(plan, kept):
            await try_without([plan])
    return _renumbered(kept, did), did


def _is_needed(plan: PlannedCall, plans: Sequence[PlannedCall]) -> bool:
    return any(binding.call == plan.number for other in plans for binding in other.call.bindings.values())


def _renumbered(plans: Sequence[PlannedCall], played: Played) -> tuple[SolutionCall, ...]:
    place = {plan.number: index for index, plan in enumerate(plans)}
    return tuple(
        call.model_copy(
            update={
                "bindings": {
                    pointer: binding.model_copy(update={"call": place[binding.call]})
                    for pointer, binding in call.bindings.items()
                }
            }
        )
        for call in played.made
    )
