"""Plays the calls of an episode, and those of a recorded solution, again and keeps the state after each of them.

What the states and calls mean for a check is the business of the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from envscaler.audit.explain_records import CallMade
from envscaler.audit.reading_places import changes_between
from envscaler.env import AsyncToolEnv, ObservationStyle, observations_of
from envscaler.env.oracles import reports_failure
from envscaler.messages import ToolCall, ToolMessage, as_carried_out
from envscaler.rollout.likeness import Ids, alike, differences, recorded_value
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton
from envscaler.state import Change, JsonValue, State, encode
from envscaler.trajectory import Trajectory

_OBSERVATION_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Moment:
    """The state between two calls, and the time that checks see then."""

    state: State
    clock: str


@dataclass(frozen=True, slots=True)
class PlayedCall:
    """A call with what it changed."""

    made: CallMade
    changes: tuple[Change, ...]


@dataclass
class Playback:
    """A sequence of calls, played."""

    moments: list[Moment]
    """The first right after reset, then one after each call."""
    calls: list[PlayedCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def reset(self) -> State:
        return self.moments[0].state

    @property
    def final(self) -> State:
        return self.moments[-1].state


async def play_episode_again(
    trajectory: Trajectory,
    skeleton: EnvSkeleton,
    scenario: Scenario,
    sandbox: Sandbox,
    observations: ObservationStyle | None = None,
) -> Playback:
    """Make the calls of an episode again, from the state that it started from.

    Args:
        observations: the style that the run was played with; None: the one that suits the environment.

    Raises:
        ProgramError: if the program cannot be built from the state.
        SandboxError: if the machinery fails.
    """
    style = observations if observations is not None else observations_of(skeleton)
    env = AsyncToolEnv(skeleton, scenario, sandbox, observations=style, seed=trajectory.seed)
    imported = trajectory.released is not None
    ids = Ids()
    async with env:
        await env.reset()
        player = _Player(env, await _moment(env))
        seen_again = total = 0
        for number, step in enumerate(trajectory.steps, 1):
            pairs = step.calls_made
            for place, (call, seen) in enumerate(pairs, 1):
                wanted = as_carried_out(call, seen)
                if imported:
                    wanted = wanted.model_copy(update={"arguments": ids.as_ours(wanted.arguments)})
                again = await player.call(wanted, step=number, number=place, of=len(pairs), turn=step.turn)
                total += 1
                seen_again += _sees_the_same(seen, again, ids if imported else None)
            if step.state_digest is not None and step.state_digest != env.digest and not player.playback.notes:
                player.playback.notes.append(
                    f"played again, the calls lead to another state than recorded from step {number} on; what is "
                    "explained is the state that they lead to now"
                )
    if imported:
        player.playback.notes.append(
            f"an imported episode: played again, {seen_again} of its {total} observations came out as recorded"
            + (", created ids mapped" if ids.ours else "")
        )
    return player.playback


async def play_solution(
    calls: Sequence[SolutionCall], skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox
) -> Playback:
    """Make the calls of a solution, values of earlier results put in.

    Raises:
        ProgramError: if the program cannot be built from the state.
        SandboxError: if the machinery fails.
    """
    env = AsyncToolEnv(skeleton, scenario.model_copy(update={"tools": None}), sandbox)
    results: list[JsonValue] = []
    async with env:
        await env.reset()
        player = _Player(env, await _moment(env))
        for number, call in enumerate(calls, 1):
            made = ToolCall(name=call.name, arguments=call.resolved(results))
            message = await player.call(made, step=number)
            results.append(recorded_value(message.content, None))
    return player.playback


class _Player:
    """Makes calls one after the other and notes what each of them did."""

    def __init__(self, env: AsyncToolEnv, reset: Moment) -> None:
        self._env = env
        self._digest = env.digest
        self.playback = Playback([reset])

    async def call(self, call: ToolCall, *, step: int, number: int = 1, of: int = 1, turn: int = 0) -> ToolMessage:
        message = await self._env.carry_out(call)
        before = self.playback.moments[-1].state
        after = await _moment(self._env)
        changed = self._env.digest != self._digest
        self._digest = self._env.digest
        # States that are the same are kept once: an episode has many calls that only look.
        self.playback.moments.append(after if changed else Moment(before, after.clock))
        made = CallMade(
            step=step,
            number=number,
            of=of,
            turn=turn,
            name=call.name,
            arguments=call.arguments,
            malformed=call.malformed,
            refused=message.is_error or reports_failure(recorded_value(message.content, None)),
            changed=changed,
            observation=_cut(message.content),
        )
        changes = tuple(changes_between(before, after.state)) if changed else ()
        self.playback.calls.append(PlayedCall(made, changes))
        return message


async def _moment(env: AsyncToolEnv) -> Moment:
    snapshot = (await env.snapshot()).session
    return Moment(snapshot.state, snapshot.clock)


def _sees_the_same(seen: ToolMessage, again: ToolMessage, ids: Ids | None) -> bool:
    """Whether a call shows again what it showed; ids that chance made are learned on the way."""
    if seen.content == again.content or ids is None:
        return seen.content == again.content
    ours = recorded_value(again.content, None)
    recorded = ids.as_ours(recorded_value(seen.content, ours))
    return all(
        encode(pair.recorded) == encode(pair.ours)
        or (alike(pair.recorded, pair.ours) and ids.learn(pair.recorded, pair.ours))
        for pair in differences(recorded, ours)
    )


def _cut(text: str) -> str:
    return text if len(text) <= _OBSERVATION_CHARS else text[: _OBSERVATION_CHARS - 1] + "…"
