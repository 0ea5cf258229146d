"""`explain_episode`: why the checks of an episode say what they say: what they read, who changed it, what was missing.

The calls are played again, because a trajectory holds digests and no states. How an explanation is shown is the command
line's business.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from envscaler.audit.explain_check import CheckReader, nearest
from envscaler.audit.explain_faults import together
from envscaler.audit.explain_playback import Playback, play_episode_again, play_solution
from envscaler.audit.explain_records import CheckOutline, EpisodeReading, RuleBroken
from envscaler.env import Homes, Library, ObservationStyle, verdict_of
from envscaler.errors import ProgramError, UsageError
from envscaler.released import episode_of, played_scenario, published_episode, published_trajectory
from envscaler.rollout.scores import REWARD_MODES, UNFINISHED
from envscaler.sandbox import CheckOutcome, Sandbox
from envscaler.sandbox.judge import Judge
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.trajectory import Trajectory

_REASON_CHARS = 200
_ALTERNATIVES = 4
"""Further solutions that an episode is held against."""


async def explain_episode(
    trajectory: Trajectory,
    library: Library,
    sandbox: Sandbox,
    *,
    which: str | None = None,
    observations: ObservationStyle | None = None,
) -> EpisodeReading:
    """Explain the checks of an episode that do not hold, or the one that is asked for.

    Args:
        library: has the environment and the scenario that were played.
        which: a check by its number, from 1, or by a part of its description.
        observations: the style in which the run showed results; None: the one that suits the environment.

    Raises:
        UsageError: where nothing can be said: no verdict, no program, no scenario, no such check.
        SandboxError: if the machinery fails.
    """
    skeleton, scenario = _played(trajectory, library)
    chosen = choose_check(scenario.checks, which) if which is not None else None
    try:
        await Homes(sandbox, library.isolation).settle(skeleton, scenario)
        episode = await play_episode_again(trajectory, skeleton, scenario, sandbox, observations)
        solutions = await _solutions(skeleton, scenario, sandbox)
    except ProgramError as error:
        raise UsageError(f"{trajectory.id}: the program of {skeleton.id} cannot be used: {error}") from error
    async with sandbox.judge() as judge:
        judged = await _judged(judge, scenario.checks, episode)
        rules = await _rules_broken(judge, skeleton, episode)
        outlines = _outlines(scenario.checks, judged)
        reader = CheckReader(judge, scenario.checks, outlines, episode, nearest(episode, solutions), rules)
        asked = [chosen] if chosen is not None else [one.number - 1 for one in outlines if not one.holds]
        readings = [await reader.reading(outlines[index], [said[index] for said in judged]) for index in asked]
    verdict = verdict_of(scenario.checks, judged[-1], judged[0])
    recorded = {mode: trajectory.reward(mode) for mode in REWARD_MODES}
    if trajectory.released is not None:
        recorded["fraction"] = trajectory.recorded_reward
    return EpisodeReading(
        trajectory_id=trajectory.id,
        env_id=skeleton.id,
        scenario_id=scenario.id,
        task=scenario.task,
        stop=trajectory.stop,
        rewards={mode: verdict.reward(mode) for mode in REWARD_MODES},
        recorded_rewards=recorded,
        notes=(*_notes(trajectory, skeleton, scenario, outlines), *episode.notes, *reader.notes),
        calls=tuple(call.made for call in episode.calls),
        outlines=tuple(outlines),
        checks=tuple(readings),
        rules=tuple(rules.values()),
        faults=together([reading.fault for reading in readings if reading.fault is not None]),
    )


def choose_check(checks: Sequence[Check], which: str) -> int:
    """The index of the check of that number, from 1, or with that part in its description.

    Raises:
        UsageError: if there is none, or more than one.
    """
    if which.lstrip("-").isdigit():
        if not 1 <= int(which) <= len(checks):
            raise UsageError(f"there is no check {which}; the scenario has checks 1 to {len(checks)}")
        return int(which) - 1
    sentences = [check.description.casefold() for check in checks]
    found = [index for index, sentence in enumerate(sentences) if which.casefold() in sentence]
    exact = [index for index in found if sentences[index] == which.casefold()]
    found = exact if len(exact) == 1 else found
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(f"{index + 1} ({checks[index].description})" for index in found[:4])
        raise UsageError(f"{which!r} is said in {len(found)} checks: {listed}; give a number")
    near = get_close_matches(which.casefold(), sentences, n=1, cutoff=0.3)
    hint = f"give a number from 1 to {len(checks)}"
    if near:
        index = sentences.index(near[0])
        hint = f"did you mean {index + 1} ({checks[index].description})?"
    raise UsageError(f"no check says {which!r}; {hint}")


# -- what was played ----------------------------------------------------------------------------------------


def _played(trajectory: Trajectory, library: Library) -> tuple[EnvSkeleton, Scenario]:
    """The environment and the scenario of an episode."""
    where = trajectory.id
    if trajectory.world != "scenario":
        raise UsageError(f"{where} was played in {trajectory.world}, of which there is no program to explain it with")
    if trajectory.stop in UNFINISHED:
        raise UsageError(
            f"{where} was cut short by the machinery ({trajectory.stop.value}), which says nothing about the agent: it "
            "has no verdict; the command that began the run plays it again"
        )
    skeleton = library.skeleton(trajectory.env_id)
    if trajectory.released is None:
        scenario = library.scenario(skeleton.id, trajectory.scenario_id)
    else:
        own = next((one for one in library.scenarios(skeleton.id) if one.id == trajectory.scenario_id), None)
        published = published_episode(published_trajectory(trajectory, skeleton, own), where)
        scenario = played_scenario(episode_of(published, where), skeleton, own, where)
    if not scenario.checks:
        raise UsageError(f"{where}: scenario {scenario.id} has no checks, so that there is no verdict to explain")
    return skeleton, scenario


async def _solutions(skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox) -> list[Playback]:
    if scenario.solution is None:
        return []
    calls = [scenario.solution, *scenario.alternatives[:_ALTERNATIVES]]
    return [await play_solution(one, skeleton, scenario, sandbox) for one in calls]


def _notes(
    trajectory: Trajectory, skeleton: EnvSkeleton, scenario: Scenario, outlines: Sequence[CheckOutline]
) -> list[str]:
    notes = []
    if trajectory.env_digest != skeleton.digest:
        notes.append(f"environment {skeleton.id} has been changed since: this is how it answers now")
    if trajectory.scenario_digest != scenario.digest:
        notes.append(f"scenario {scenario.id} has been changed since: its checks and state are those of now")
    stop = trajectory.stop.value
    if stop not in ("finished", "user_stopped"):
        reason = f": {' '.join(trajectory.error.split())[-_REASON_CHARS:]}" if trajectory.error else ""
        judged = "what it had reached by then was judged"
        if trajectory.released is not None:
            judged = "by the authors' rule its reward is 0, whatever it had reached"
        notes.append(f"the agent did not end the episode ({stop}{reason}); {judged}")
    if trajectory.mode == "conversation" and not all(one.holds for one in outlines):
        messages = sum(step.user is not None for step in trajectory.steps)
        notes.append(
            f"the task was told in {messages} messages: a call may be missing because the user did not come to it"
        )
    if trajectory.verdict is not None and len(trajectory.verdict.checks) == len(outlines):
        for recorded, now in zip(trajectory.verdict.checks, outlines, strict=True):
            if recorded.passed != now.holds:
                said = "held" if recorded.passed else "did not hold"
                notes.append(f"check {now.number} {said} when the episode was recorded; played again it is otherwise")
    return notes


# -- what checks and rules say ------------------------------------------------------------------------------


async def _judged(judge: Judge, checks: Sequence[Check], episode: Playback) -> list[tuple[CheckOutcome, ...]]:
    """What every check says at reset and after each call."""
    return [
        await judge.check(
            [check.source for check in checks],
            initial_state=episode.reset,
            final_state=moment.state,
            clock=moment.clock,
        )
        for moment in episode.moments
    ]


def _outlines(checks: Sequence[Check], judged: Sequence[tuple[CheckOutcome, ...]]) -> list[CheckOutline]:
    results = verdict_of(checks, judged[-1], judged[0]).checks
    return [
        CheckOutline(
            number=number,
            description=one.description,
            kind=one.kind,
            is_guard=one.is_guard,
            held_at_reset=one.held_at_reset,
            holds=one.passed,
            error=one.error,
        )
        for number, one in enumerate(results, 1)
    ]


async def _rules_broken(judge: Judge, skeleton: EnvSkeleton, episode: Playback) -> dict[int, RuleBroken]:
    """The rules that held at reset and do not at the end, by the index of the call since which they do not."""
    rules = [(rule.text, rule.predicate) for rule in skeleton.rules if rule.predicate is not None]
    if not rules:
        return {}
    said: list[tuple[CheckOutcome, ...]] = []
    for place, moment in enumerate(episode.moments):
        if place and moment.state is episode.moments[place - 1].state:
            said.append(said[-1])
        else:
            said.append(await judge.evaluate([predicate for _, predicate in rules], moment.state, clock=moment.clock))
    broken: dict[int, RuleBroken] = {}
    for index, (text, predicate) in enumerate(rules):
        if said[0][index].value is True and said[-1][index].value is False:
            place = max(place for place in range(len(said)) if said[place][index].value is not False)
            call = episode.calls[place].made
            broken.setdefault(place, RuleBroken(text=text, predicate=predicate, call=call))
    return broken
