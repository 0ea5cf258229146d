"""At least fifty episodes with one fault each, known by construction: what is said of them, and remedies checked by
plain Python."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import pytest
from audit.faulty_episodes import FaultyEpisode, Kind, Workshop, shelf

from envscaler.audit.explain import explain_episode
from envscaler.audit.explain_records import CheckReading, EpisodeReading, FaultKind, Place
from envscaler.audit.reading_places import touches
from envscaler.env import open_library
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.sandbox import Sandbox
from envscaler.scenario import SolutionCall
from envscaler.state import Change, State
from envscaler.synth import SynthSettings, run_synth

TASKS = (
    "Move twenty pallets from the north warehouse to the one in Leith.",
    "Book a table for four at the trattoria on Friday evening.",
    "Renew my library card and reserve the new novel.",
    "Reschedule my dentist appointment to next Tuesday.",
    "Cancel the flight of passenger Lee and refund the ticket.",
    "给图书馆的王芳续借那本小说。",
)
OF_A_KIND = 8
OF_A_KIND_IN_ONE = 2
KINDS: tuple[Kind, ...] = get_args(Kind)


# -- at least fifty episodes, one fault each -----------------------------------------------------------------


@dataclass(frozen=True)
class Explained:
    """An episode whose fault is known, and what was said of it."""

    truth: FaultyEpisode
    reading: EpisodeReading

    @property
    def failing(self) -> list[int]:
        """Numbers of the checks that did not hold, as the rollout judged."""
        assert self.truth.trajectory.verdict is not None
        return [number for number, one in enumerate(self.truth.trajectory.verdict.checks, 1) if not one.passed]


@pytest.fixture(scope="module")
def explained(tmp_path_factory: pytest.TempPathFactory) -> dict[Kind, list[Explained]]:
    """Faulty episodes in environments of several domains and two languages, explained."""
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "tasks.txt").write_text("".join(f"{task}\n" for task in TASKS), encoding="utf-8")
    return asyncio.run(_explained(folder))


async def _explained(folder: Path) -> dict[Kind, list[Explained]]:
    settings = SynthSettings(library=folder / "L", tasks=folder / "tasks.txt", rounds=2, scenarios=4, threshold=0.0)
    async with open_models(ModelSettings()) as models:
        await run_synth(settings, models, Prompts())
    made: dict[Kind, list[Explained]] = {kind: [] for kind in KINDS}
    library = open_library(settings.library)
    async with Sandbox() as sandbox:
        in_one: Counter[tuple[str, Kind]] = Counter()
        for env_id in library.env_ids:
            for one in library.scenarios(env_id):
                for kind, episodes in _faulty(Workshop(sandbox, library.skeleton(env_id), one)).items():
                    if in_one[env_id, kind] >= OF_A_KIND_IN_ONE or len(made[kind]) >= OF_A_KIND:
                        continue
                    async for truth in episodes:
                        reading = await explain_episode(
                            truth.trajectory, shelf(truth.skeleton, truth.scenario), sandbox
                        )
                        made[kind].append(Explained(truth, reading))
                        in_one[env_id, kind] += 1
                        break
    return made


def _faulty(workshop: Workshop) -> dict[Kind, AsyncIterator[FaultyEpisode]]:
    return {
        "missing call": workshop.missing(),
        "wrong entity": workshop.wrong_entity(refused=False),
        "wrong value": workshop.wrong_value(),
        "call failed": workshop.wrong_entity(refused=True),
        "undone later": workshop.undone(),
        "extra edit": workshop.extra_edit(),
        "rule broken": workshop.rule_broken(),
    }


def failing_goals(one: Explained) -> list[CheckReading]:
    return [check for check in one.reading.checks if not check.check.is_guard]


def test_there_are_fifty_episodes_of_all_kinds_of_faults_in_both_languages(
    explained: dict[Kind, list[Explained]],
) -> None:
    assert set(get_args(FaultKind)) == set(KINDS)
    assert sum(map(len, explained.values())) >= 50
    assert all(len(episodes) >= 4 for episodes in explained.values())
    everything = [one.truth.skeleton for episodes in explained.values() for one in episodes]
    assert {environment.origin.language for environment in everything} == {"en", "zh"}
    assert len({environment.id for environment in everything}) >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_the_fault_of_an_episode_is_named_with_its_call_and_all_checks_that_fail_for_it(
    kind: Kind, explained: dict[Kind, list[Explained]]
) -> None:
    for one in explained[kind]:
        truth, reading = one.truth, one.reading
        assert [check.check.number for check in reading.checks] == one.failing
        (fault,) = reading.faults
        assert fault.kind == kind, fault.says
        assert list(fault.checks) == one.failing
        assert (fault.call.step if fault.call is not None else None) == truth.step
        named = fault.call if fault.call is not None else fault.expected
        assert named is not None
        assert (named.name, named.arguments) == (truth.call.name, truth.call.arguments)
        assert truth.refusal is None or truth.refusal.rstrip(".。") in fault.says
        assert truth.call.name in fault.says


@pytest.mark.parametrize("kind", KINDS)
def test_the_places_that_decide_are_those_where_the_final_state_is_wrong(
    kind: Kind, explained: dict[Kind, list[Explained]]
) -> None:
    for one in explained[kind]:
        places = [place for check in one.reading.checks for place in check.places if place.decides]
        at_fault = [place for place in places if any(same_place(place, wrong) for wrong in one.truth.places)]
        changed = [change.call.step for place in at_fault for change in place.changes]
        if kind in ("missing call", "call failed"):
            for check in failing_goals(one):
                assert any(place in at_fault for place in check.places), (check.places, one.truth.places)
        elif kind != "wrong entity" or any(check.check.is_guard for check in one.reading.checks):
            assert one.truth.step in changed


def same_place(place: Place, wrong: str) -> bool:
    """Whether a place is one that is known to be wrong; a record that is nowhere can have any id."""
    container = "/" + wrong.split("/")[1]
    nowhere = not place.in_reset and not place.in_end and wrong != container
    return touches(place.pointer, wrong) or (nowhere and touches(place.pointer, container))


@pytest.mark.parametrize("kind", KINDS)
def test_with_the_remedy_a_check_holds_and_without_any_part_of_it_does_not(
    kind: Kind, explained: dict[Kind, list[Explained]]
) -> None:
    for one in explained[kind]:
        reset, final = asyncio.run(_ends(one.truth))
        for check in one.reading.checks:
            assert check.remedy is not None
            changes = check.remedy.changes
            assert holds(check.source, reset, final) is False
            assert holds(check.source, reset, changed(final, changes)) is True
            for left_out in range(len(changes)):
                rest = [change for index, change in enumerate(changes) if index != left_out]
                assert holds(check.source, reset, changed(final, rest)) is False


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_check_said_after_each_call_is_what_it_says_of_the_states_between_them(
    kind: Kind, explained: dict[Kind, list[Explained]]
) -> None:
    for one in explained[kind][:3]:
        states = asyncio.run(_states(one.truth))
        for check in one.reading.checks:
            said = [holds(check.source, states[0], state) for state in states]
            assert list(check.held_after) == said[1:]
            turns = [(turn.call.step, turn.holds) for turn in check.turned]
            assert turns == [(step, said[step]) for step in range(1, len(said)) if said[step] != said[step - 1]]


async def _states(truth: FaultyEpisode) -> list[State]:
    calls = [
        SolutionCall(name=call.name, arguments=call.arguments)
        for step in truth.trajectory.steps
        for call in step.assistant.tool_calls
    ]
    async with Sandbox() as sandbox:
        return list((await Workshop(sandbox, truth.skeleton, truth.scenario).course(calls)).states)


async def _ends(truth: FaultyEpisode) -> tuple[State, State]:
    states = await _states(truth)
    return states[0], states[-1]


def holds(source: str, reset: State, final: State) -> object:
    """What a check says, in this process: the sources are of our own making."""
    names: dict[str, Any] = {"initial_state": deepcopy(reset)}
    exec(source, names)  # noqa: S102 - source of our own making
    return names["check_func"](deepcopy(final))


def changed(state: State, changes: Sequence[Change]) -> State:
    """The state with changes made, as plainly as can be."""
    out: Any = deepcopy(state)
    for change in changes:
        *path, last = change.pointer.split("/")[1:]
        container = out
        for key in path:
            container = container[int(key)] if isinstance(container, list) else container[key]
        key: Any = int(last) if isinstance(container, list) else last
        if change.kind == "removed":
            del container[key]
        else:
            container[key] = change.after
    return out  # type: ignore[no-any-return]
