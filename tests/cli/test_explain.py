"""`envscaler explain` on the command line: what it prints, what it refuses."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from audit.faulty_episodes import PlannedAgent
from cli.conftest import Command
from env.lending import scenario, skeleton

from envscaler.env import open_library
from envscaler.rollout import ScenarioWorld, play
from envscaler.sandbox import Sandbox
from envscaler.scenario import Check, SolutionCall
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import StopReason, Trajectory


async def _played(*calls: SolutionCall) -> Trajectory:
    environment = skeleton()
    async with Sandbox() as sandbox:
        return await play(ScenarioWorld(environment, scenario(environment), sandbox), PlannedAgent(calls), step_limit=9)


@pytest.fixture
def spoiled(library: Path) -> Path:
    """A run in which a book was lent to the wrong member and another one without need."""
    calls = [
        SolutionCall(name="lend_book", arguments={"book_id": "B1", "member": "Bob\x1b[31m"}),
        SolutionCall(name="lend_book", arguments={"book_id": "B2", "member": "Bob\x1b[31m"}),
    ]
    run = RunStore(library / "rollouts" / "spoiled")
    run.append(asyncio.run(_played(*calls)))
    return run.path


def test_what_went_wrong_stands_before_the_checks(cli: Command, spoiled: Path) -> None:
    answer = cli("explain", spoiled, 0)
    assert answer.code == 0
    text = " ".join(answer.out.split())
    assert text.index("What went wrong") < text.index("Check 1 goal")
    assert 'wrong value (check 1): lend_book(book_id="B1", member="Bob\\u001b[31m") at step 1' in text
    assert (
        'extra edit (check 3): lend_book(book_id="B2", member="Bob\\u001b[31m") at step 2 touched what was to stay'
        in text
    )
    assert "changed /books/B2/copies (Œuvres) from 2 to 1" in text
    assert "/loans/L1/member" in text
    assert "def check_func(final_state):" in text
    assert "\x1b" not in answer.out


def test_json_is_the_same_as_one_object(cli: Command, spoiled: Path) -> None:
    reading = cli("explain", spoiled, 0, "--json").json
    assert [fault["kind"] for fault in reading["faults"]] == ["wrong value", "extra edit"]
    assert [check["check"]["number"] for check in reading["checks"]] == [1, 3]
    (check,) = cli("explain", spoiled, 0, "other books", "--json").json["checks"]
    assert check["places"][0]["changes"][0]["call"]["arguments"] == {"book_id": "B2", "member": "Bob\x1b[31m"}
    assert check["remedy"] == {
        "changes": [{"pointer": "/books/B2/copies", "kind": "changed", "before": 1, "after": 2}],
        "found_in": "reset",
        "calls": [],
    }


def test_an_episode_of_a_run_is_found_by_scenario_and_one_that_is_solved_needs_no_explanation(
    cli: Command, library: Path
) -> None:
    solved = cli("explain", library / "rollouts" / "oracle", "lending-desk-s001")
    assert solved.code == 0
    assert "Every check holds. Name one" in solved.out
    one = cli("explain", library / "rollouts" / "oracle", 0, 2)
    assert "True since lend_book" in one.out
    idle = " ".join(cli("explain", library / "rollouts" / "noop", 0).out.split())
    assert "missing call (checks 1, 2): The recorded solution calls lend_book" in idle
    assert "It did not hold at reset, and no call was made." in idle


def test_a_check_that_reads_nothing_and_one_that_cannot_be_satisfied_are_shown_as_such(
    cli: Command, library: Path
) -> None:
    environment = skeleton()
    bodies = {"Is it so?": "return True", "Can it be?": "return 'x' in final_state and 'x' not in final_state"}
    checks = tuple(
        Check(description=text, source=f"def check_func(final_state):\n    {body}\n", kind="goal")
        for text, body in bodies.items()
    )
    LibraryStore.open(library).replace_scenarios(environment.id, [scenario(environment, checks=checks)])
    run = library / "rollouts" / "noop"
    always = cli("explain", run, 0, 1).out
    assert "Whatever single value of the state was changed, it said the same." in always
    assert "It would have been earned by doing nothing." in always
    never = cli("explain", run, 0, 2).out
    assert "Nothing was found that would have satisfied it" in never
    assert "Note: scenario lending-desk-s001 has been changed since" in never


def test_what_is_not_there_is_refused_in_one_sentence(cli: Command, library: Path, tmp_path: Path) -> None:
    run = library / "rollouts" / "oracle"
    assert "no episode 'lending-desk-s01'; did you mean" in cli("explain", run, "lending-desk-s01").refused()
    assert "there is no check 9; the scenario has checks 1 to 3" in cli("explain", run, 0, 9).refused()
    assert "did you mean 2 (Has Emma no copy left?)?" in cli("explain", run, 0, "Emma has no copy").refused()
    assert "is a library; give one of its runs" in cli("explain", library, 0).refused()
    apart = Path(shutil.copytree(run, tmp_path / "apart"))
    (apart / "run.json").unlink()
    assert "name it with --library" in cli("explain", apart, 0).refused()
    assert cli("explain", apart, 0, "--library", library).code == 0


def test_an_episode_without_a_verdict_or_without_its_scenario_is_refused(
    cli: Command, library: Path, spoiled: Path
) -> None:
    (episode,) = RunStore(spoiled).trajectories()
    lost = {"stop": StopReason.INFRASTRUCTURE, "verdict": None, "id": "lost", "scenario_id": "other"}
    RunStore(spoiled).append(episode.model_copy(update=lost))
    assert "cut short by the machinery (infrastructure)" in cli("explain", spoiled, "lost").refused()
    with open_library(library) as opened:
        kept = opened.scenarios("lending-desk")[1:]
    LibraryStore.open(library).replace_scenarios("lending-desk", kept)
    assert "has no scenario 'lending-desk-s001'" in cli("explain", spoiled, 0).refused()
