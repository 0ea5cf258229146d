"""`explain_episode`: why the checks of an episode say what they say: what they read, who changed it, what was missing.

The calls are played again, because a trajectory holds digests and no states. How an explanation is shown is the command
line's business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from envscaler.audit.explain_faults import Case, attempts_at, fault_of, together
from envscaler.audit.explain_matching import Matched, created_names, exact_matches, matched_calls
from envscaler.audit.explain_playback import Playback, play_episode_again, play_solution
from envscaler.audit.explain_records import (
    AlsoRead,
    CheckOutline,
    CheckReading,
    EpisodeReading,
    FoundIn,
    Place,
    PlaceChange,
    Remedy,
    RuleBroken,
    Turned,
)
from envscaler.audit.reading import Reader, Reading
from envscaler.audit.reading_places import changes_between, label_of, pattern_of, renamed, touches, value_at
from envscaler.audit.reading_remedy import Found, find_remedy, remedied
from envscaler.audit.reading_source import text_of
from envscaler.env import Homes, Library, ObservationStyle, verdict_of
from envscaler.errors import ProgramError, UsageError
from envscaler.released import episode_of, played_scenario, published_episode, published_trajectory
from envscaler.rollout.scores import REWARD_MODES, UNFINISHED
from envscaler.sandbox import CheckOutcome, Sandbox
from envscaler.sandbox.judge import Judge
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import Change, State, tokens
from envscaler.trajectory import Trajectory

_FEW = 12
"""Places up to which all that a check reads is told, changed or not."""
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
        explainer = _Explainer(judge, scenario.checks, outlines, episode, _nearest(episode, solutions), rules)
        asked = [chosen] if chosen is not None else [one.number - 1 for one in outlines if not one.holds]
        readings = [await explainer.reading(outlines[index], [said[index] for said in judged]) for index in asked]
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
        notes=(*_notes(trajectory, skeleton, scenario, outlines), *episode.notes, *explainer.notes),
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


# -- one check ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Model:
    """A recorded solution, held against the episode."""

    played: Playback
    names: dict[str, str]
    """Ids that it created → those of the same records in the episode."""
    matched: tuple[Matched, ...]

    @property
    def solved(self) -> State:
        """The state that it leaves, created ids as in the episode."""
        state = renamed(self.played.final, self.names)
        assert isinstance(state, dict)
        return state

    def relevant(self, changes: Sequence[Change]) -> tuple[Matched, ...]:
        """Its calls that change one of these places."""
        own = {ours: theirs for theirs, ours in self.names.items()}
        places = ["/".join(own.get(token, token) for token in one.pointer.split("/")) for one in changes]
        return tuple(
            one
            for one in self.matched
            if any(touches(change.pointer, place) for change in one.played.changes for place in places)
        )


def _nearest(episode: Playback, solutions: Sequence[Playback]) -> _Model | None:
    """The solution that the episode has most calls in common with; of equal ones the first."""
    models = []
    for played in solutions:
        names = created_names(episode.reset, episode.final, played.final)
        models.append(_Model(played, names, matched_calls(episode, played, names)))
    return max(models, key=lambda model: exact_matches(model.matched), default=None)


class _Explainer:
    """Explains the checks of one episode."""

    def __init__(
        self,
        judge: Judge,
        checks: Sequence[Check],
        outlines: Sequence[CheckOutline],
        episode: Playback,
        model: _Model | None,
        rules: dict[int, RuleBroken],
    ) -> None:
        self._judge = judge
        self._checks = checks
        self._holding = [one.number - 1 for one in outlines if one.holds]
        self._episode = episode
        self._model = model
        self._rules = rules
        self._touched = [change.pointer for call in episode.calls for change in call.changes]
        self.notes = [] if model is not None else ["the scenario has no recorded solution to hold the episode against"]

    async def reading(self, outline: CheckOutline, said: Sequence[CheckOutcome]) -> CheckReading:
        """One check, explained.

        Args:
            said: what it said at reset and after each call.
        """
        check = self._checks[outline.number - 1]
        episode, final = self._episode, self._episode.final
        others = [self._checks[number].source for number in self._holding if number != outline.number - 1]
        clock = episode.moments[-1].clock
        reader = Reader(self._judge, check.source, text_of(check), episode.reset, clock, others)
        held = [one.value for one in said]
        found = None
        if not outline.holds:
            found = await find_remedy(reader, final, self._examples(held), self._touched)
        base = remedied(final, found.changes) if found is not None else final
        read = await reader.places(base)
        relevant = await self._relevant(check, found) if not outline.holds else ()
        if found is not None:
            found = await _pruned(reader, final, found, read)
        fault = None
        if not outline.holds:
            wanted = await self._wanted(reader) if self._model is None else ()
            case = Case(
                held, outline.is_guard, found.changes if found else (), relevant, self._model is not None, wanted
            )
            matched = self._model.matched if self._model is not None else ()
            fault = fault_of(case, episode, matched, self._rules, outline.number)
        places, also = self._places(reader, base, read, found, relevant)
        return CheckReading(
            check=outline,
            source=check.source,
            held_after=tuple(held[1:]),
            turned=tuple(
                Turned(call=call.made, holds=after is True)
                for call, before, after in zip(episode.calls, held, held[1:], strict=False)
                if (before is True) != (after is True)
            ),
            places=tuple(places),
            also_read=tuple(also),
            untried=read.untried,
            remedy=Remedy(changes=found.changes, found_in=found.found_in, calls=tuple(one.step for one in relevant))
            if found is not None
            else None,
            fault=fault,
        )

    def _examples(self, held: Sequence[bool | None]) -> list[tuple[FoundIn, State]]:
        """States to take values from: what the solution leaves comes first, because it is right in all the rest."""
        states: list[tuple[FoundIn, State]] = []
        if self._model is not None:
            states.append(("solution", self._model.solved))
        states.append(("reset", self._episode.reset))
        last = max((place for place, holds in enumerate(held) if place and holds), default=0)
        if last:
            states.append(("episode", self._episode.moments[last].state))
        return states

    async def _wanted(self, reader: Reader) -> list[str]:
        """Changed places whose value another check asks for: with the one at reset some check would not hold."""
        episode = self._episode
        changes = changes_between(episode.final, episode.reset)
        said = await reader.others(episode.final, [[change] for change in changes])
        return [change.pointer for change, holds in zip(changes, said, strict=True) if not holds]

    async def _relevant(self, check: Check, found: Found | None) -> tuple[Matched, ...]:
        """The solution's calls that make a check hold: those that change what would have to be otherwise."""
        model = self._model
        if model is None:
            return ()
        if found is not None and found.found_in == "solution":
            return model.relevant(found.changes)
        said = [
            (
                await self._judge.check(
                    [check.source], initial_state=self._episode.reset, final_state=one.state, clock=one.clock
                )
            )[0].value
            for one in model.played.moments
        ]
        steps = [place for place in range(len(said) - 1) if said[place] is not True and said[place + 1] is True]
        return tuple(one for one in model.matched if one.step.number - 1 in steps)

    def _places(
        self, reader: Reader, base: State, read: Reading, found: Found | None, relevant: Sequence[Matched]
    ) -> tuple[list[Place], list[AlsoRead]]:
        """The places to tell one by one, and the patterns of the others."""
        decisive = [change.pointer for change in found.changes] if found is not None else []
        within = [one for one in read.places if one in decisive or not any(touches(one, place) for place in decisive)]
        changed = [
            place
            for place in within
            if place in read.leaves + read.records and any(touches(one, place) for one in self._touched)
        ]
        told = list(dict.fromkeys([*decisive, *changed]))
        few = [place for place in within if place not in read.containers and place not in told]
        if len(told) + len(few) <= _FEW:
            told += few
        if not told and not read.places:
            named = reader.named(self._episode.final, _FEW)
            return [self._place(place, False, relevant) for place in named], []
        counts: Counter[str] = Counter()
        for place in within:
            if place in read.containers:
                counts[f"{place}/+"] += 1
            elif place not in told:
                counts[pattern_of(place, base)] += 1
        also = [AlsoRead(pattern=pattern, count=count) for pattern, count in counts.items()]
        return [self._place(place, True, relevant) for place in told], also

    def _place(self, pointer: str, decides: bool, relevant: Sequence[Matched]) -> Place:
        episode = self._episode
        in_reset, at_reset = value_at(episode.reset, pointer)
        in_end, at_end = value_at(episode.final, pointer)
        changes = [
            PlaceChange(call=call.made, change=_at(change, pointer))
            for call in episode.calls
            for change in call.changes
            if touches(change.pointer, pointer)
        ]
        attempts = []
        if not changes:
            stands_for = [one.step.instead for one in relevant if one.step.instead is not None]
            attempts = [call for call in stands_for if call.refused]
            attempts += [call for call in attempts_at(pointer, episode) if call not in attempts]
        return Place(
            pointer=pointer,
            label=label_of(pointer, episode.reset, episode.final),
            at_reset=at_reset,
            in_reset=in_reset,
            at_end=at_end,
            in_end=in_end,
            decides=decides,
            changes=tuple(changes),
            attempts=tuple(attempts),
        )


def _at(change: Change, pointer: str) -> Change:
    """The part of a change that is at a place inside of what it changed."""
    if change.pointer == pointer or not pointer.startswith(f"{change.pointer}/"):
        return change
    inside = pointer[len(change.pointer) :]
    was, before = value_at(change.before, inside)
    is_, after = value_at(change.after, inside)
    kind = "changed" if was and is_ else "added" if is_ else "removed"
    return Change.model_validate({"pointer": pointer, "kind": kind, "before": before, "after": after})


async def _pruned(reader: Reader, final: State, found: Found, read: Reading) -> Found:
    """The remedy with new objects reduced to the fields that matter; what only puts back says so."""
    changes = []
    for change in found.changes:
        inside = [place[len(change.pointer) :] for place in read.leaves if place.startswith(f"{change.pointer}/")]
        mattering = {tokens(place)[0] for place in inside}
        is_new = not isinstance(change.before, dict) and not isinstance(value_at(reader.reset, change.pointer)[1], dict)
        if is_new and isinstance(change.after, dict) and mattering:
            after = {name: value for name, value in change.after.items() if name in mattering}
            changes.append(change.model_copy(update={"after": after}))
        else:
            changes.append(change)
    put_back = all(value_at(reader.reset, one.pointer) == (one.kind != "removed", one.after) for one in changes)
    pruned = Found(tuple(changes), "reset" if put_back else found.found_in)
    return pruned if (await reader.holds(final, [pruned.changes]))[0] else found
