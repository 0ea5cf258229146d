"""`replay_episode`: plays the calls of one published episode again and compares observations and reward.

Nothing is validated before a call: the program's own exception is the observation, as in the authors' runtime. Where
episodes come from is `replay`'s business.

Source: the authors' reward rule, released code: passed checks / all checks, rounded to four places, when the agent
ends the episode; an episode that a call ended by raising, or that was cut at the step limit, gets 0.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import datetime

from envscaler.env import verdict_of
from envscaler.errors import ProgramError
from envscaler.released import Episode, PlayedStep
from envscaler.rollout.likeness import (
    Ids,
    Likeness,
    Pair,
    alike,
    differences,
    is_clock_id,
    moment_of,
    recorded_value,
    same_exception,
)
from envscaler.rollout.replay_report import Explanation, ReplayedEpisode
from envscaler.rollout.volatile import Made, Volatile, later
from envscaler.sandbox import Outcome, Program, Sandbox, Session
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State, encode
from envscaler.trajectory import Verdict

_SHOWN_CHARS = 160
_EARLIER = "2023-11-05T07:58:59.250000"


@dataclass
class _Playback:
    """One way through an episode."""

    verdict: Verdict
    likenesses: Counter[Likeness] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    recorded_moments: list[tuple[int, datetime]] = field(default_factory=list)
    """Step and recorded value, where a value of the clock was seen."""

    @property
    def fraction(self) -> float | None:
        return self.verdict.reward("fraction")


async def replay_episode(
    episode: Episode, skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox
) -> ReplayedEpisode:
    """Play an episode again.

    Args:
        scenario: what the episode started from, see `played_scenario`.

    Raises:
        ProgramError: if the program cannot be loaded, or built from the state.
        SandboxError: if the machinery fails.
    """
    player = _Player(episode, Program(source=skeleton.source, class_name=skeleton.class_name), scenario, sandbox)
    played = await player.play(scenario.clock)
    fraction = played.fraction
    authors = _authors_reward(episode, fraction)
    equal = _equal(episode.reward, fraction) if fraction is not None else not episode.reward
    explanation = Explanation()
    if not equal:
        explanation = await _explained(episode, player, played, authors)
    count = played.likenesses
    return ReplayedEpisode(
        env_id=episode.env_id,
        task_id=episode.task_id,
        model=episode.model,
        reward_recorded=episode.reward,
        reward_authors_rule=authors,
        fraction=fraction,
        gained=played.verdict.reward("gained"),
        solved=played.verdict.solved,
        explanation=explanation,
        reward_equal=equal,
        observations=episode.calls,
        observations_equal=count["equal"],
        observations_equal_up_to_ids=count["equal"] + count["ids"] + count["clock"],
        observations_with_clock_values=count["clock"],
        differences=tuple(played.differences),
    )


class _Player:
    """Plays one episode, as often as needed."""

    def __init__(self, episode: Episode, program: Program, scenario: Scenario, sandbox: Sandbox) -> None:
        self.episode = episode
        self.scenario = scenario
        self._program = program
        self._sandbox = sandbox

    async def play(self, clock: str) -> _Playback:
        """Play the whole episode, beginning at that time."""
        scenario = self.scenario
        session = await self._sandbox.open(self._program, scenario.initial_state, seed=scenario.seed, clock=clock)
        try:
            reset = await session.state()
            volatile = Volatile(self._sandbox, self._program, scenario.initial_state, scenario.seed, clock)
            try:
                comparison = _Comparison(session, volatile)
                for number, step in enumerate(self.episode.steps, 1):
                    if step.called and step.call is not None:
                        await comparison.step(number, step)
            finally:
                await volatile.close()
            final = await session.snapshot()
        finally:
            await session.close()
        played = comparison.playback
        played.verdict = await self._verdict(reset, comparison.ids.as_recorded(final.state), final.clock)
        return played

    async def _verdict(self, reset: State, final: State, clock: str) -> Verdict:
        checks = self.scenario.checks
        if not checks:
            return Verdict(checks=())
        sources = [check.source for check in checks]
        async with self._sandbox.judge() as judge:
            # The authors bind the whole state at reset, not only what the scenario says of it.
            at_reset = await judge.check(sources, initial_state=reset, final_state=reset, clock=clock)
            at_end = await judge.check(sources, initial_state=reset, final_state=final, clock=clock)
        return verdict_of(checks, at_end, at_reset)


class _Comparison:
    """Makes the calls of one playback and compares what each of them gives."""

    def __init__(self, session: Session, volatile: Volatile) -> None:
        self.ids = Ids()
        self.playback = _Playback(Verdict(checks=()))
        self._session = session
        self._volatile = volatile

    async def step(self, number: int, step: PlayedStep) -> None:
        """Make one call and compare its observation."""
        assert step.call is not None
        before = await self._session.state()
        arguments = self.ids.as_ours(step.call.arguments)
        outcome = await self._session.call(step.call.name, arguments)
        self._volatile.note(Made(step.call.name, arguments, outcome.result, before))
        likeness = await self._likeness(number, step, outcome)
        self.playback.likenesses[likeness] += 1
        if likeness == "different":
            ours = str(outcome.fault) if outcome.fault is not None else str(outcome.result)
            self.playback.differences.append(
                f"step {number}, {step.call.name}: recorded {_shown(step.observation, ours)}, "
                f"replayed {_shown(ours, step.observation)}"
            )

    async def _likeness(self, number: int, step: PlayedStep, outcome: Outcome) -> Likeness:
        fault = outcome.fault
        if fault is not None or step.raised:
            if fault is None or not step.raised:
                return "different"
            message = str(self.ids.as_recorded(fault.message))
            if same_exception(step.observation, fault.type, fault.message):
                return "equal"
            return "ids" if same_exception(step.observation, fault.type, message) else "different"
        ours = outcome.result
        recorded = recorded_value(step.observation, ours)
        if step.observation == str(ours) or encode(recorded) == encode(ours):
            return "equal"
        now = await self._session.state()
        found: Likeness = "ids"
        # In the order of the result, so that an id is known when it comes again in the same one.
        for pair in differences(self.ids.as_ours(recorded), ours):
            likeness = await self._pair(number, pair, now)
            if likeness == "different":
                return "different"
            if likeness == "clock":
                found = "clock"
        return found

    async def _pair(self, number: int, pair: Pair, now: State) -> Likeness:
        pair = replace(pair, recorded=self.ids.as_ours(pair.recorded))
        if encode(pair.recorded) == encode(pair.ours):
            return "ids"
        source = await self._volatile.source(pair, now)
        if source is None or not alike(pair.recorded, pair.ours):
            return "different"
        moment = moment_of(pair.recorded)
        if moment is not None and moment_of(pair.ours) is not None:
            self.playback.recorded_moments.append((number, moment))
            return "clock"
        if source == "clock" and not is_clock_id(pair.recorded, pair.ours):
            return "clock"
        if isinstance(pair.ours, bool) or not isinstance(pair.ours, (str, int, float)):
            return "different"
        return "ids" if self.ids.learn(pair.recorded, pair.ours) else "different"


# -- rewards ------------------------------------------------------------------------------------------------


def _authors_reward(episode: Episode, fraction: float | None) -> float | None:
    if fraction is None:
        return None
    return round(fraction, 4) if episode.ending == "finished" else 0.0


def _equal(recorded: float | None, ours: float | None) -> bool:
    return recorded is not None and ours is not None and abs(round(recorded, 4) - round(ours, 4)) < 5e-5


async def _explained(episode: Episode, player: _Player, played: _Playback, authors: float | None) -> Explanation:
    recorded = episode.reward
    if episode.ending != "finished" and _equal(recorded, authors):
        last = episode.steps[-1] if episode.steps else None
        if episode.ending == "ended_by_exception" and last is not None and last.call is not None:
            exception = last.observation.rstrip().rsplit("\n", 1)[-1]
            evidence = f"step {len(episode.steps)}, {last.call.name}, raised {exception}: such an episode is not judged"
        else:
            evidence = f"after {len(episode.steps)} steps the agent had not ended it: such an episode is not judged"
        return Explanation(kind=episode.ending, evidence=evidence)
    by_clock = await _explained_by_clock(episode, player, played)
    if by_clock is not None:
        return by_clock
    evidence = f"recorded {recorded}, and the replay's final state gives {played.fraction}"
    if played.differences:
        evidence += f"; the first observation that differs is {played.differences[0]}"
    return Explanation(evidence=evidence)


async def _explained_by_clock(episode: Episode, player: _Player, played: _Playback) -> Explanation | None:
    recorded, checks = episode.reward, played.verdict.checks
    if recorded is None or not checks:
        return None
    shown = [(f"which step {number} shows", moment.isoformat()) for number, moment in played.recorded_moments[:1]]
    moments = [*shown, ("a later one", later(player.scenario.clock)), ("an earlier one", _EARLIER)]
    others = []
    for what, clock in moments:
        try:
            other = await player.play(clock)
        except ProgramError:
            continue  # a program that cannot be used at another time explains nothing
        if _equal(recorded, other.fraction):
            return Explanation(
                kind="clock_value", evidence=f"with the clock at {clock}, {what}, the reward is {recorded}"
            )
        others.append(other)
    changing = [
        index
        for index, check in enumerate(checks)
        if any(other.verdict.checks[index].passed != check.passed for other in others)
    ]
    steady = sum(check.passed for index, check in enumerate(checks) if index not in changing)
    if changing and steady / len(checks) - 5e-5 <= recorded <= (steady + len(changing)) / len(checks) + 5e-5:
        names = "; ".join(checks[index].description for index in changing[:3])
        return Explanation(kind="clock_value", evidence=f"{len(changing)} checks depend on the time of day: {names}")
    return None


def _shown(text: str, other: str) -> str:
    """The part of a text around the first place in which it differs from another."""
    same = next((index for index, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
    start = max(0, same - _SHOWN_CHARS // 2)
    part = text[start : start + _SHOWN_CHARS]
    return f"{'…' if start else ''}{part}{'…' if start + _SHOWN_CHARS < len(text) else ''}"
