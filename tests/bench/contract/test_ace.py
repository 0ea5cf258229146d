"""ACEBench by evalscope's own package and the user's checkout: floors, ceilings, and its own scores item by item.

The checkout is the folder that ENVSCALER_ACEBENCH names.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.contract.conftest import installed
from bench.contract.imperfect import ImperfectAgent

from envscaler.bench.inside.ace_calls import written
from envscaler.bench.installation import Installation, python_of
from envscaler.bench.known import faulty_tasks
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.bench.tasks import BenchTask
from envscaler.bench.world import BenchWorld, rules_of
from envscaler.engine import bounded_map
from envscaler.messages import NOT_MADE
from envscaler.rollout import RolloutSettings, play
from envscaler.rollout.slip_policy import CallPolicy
from envscaler.trajectory import Trajectory

pytestmark = [pytest.mark.bench, pytest.mark.anyio, pytest.mark.timeout(2400)]
VARIABLE = "ENVSCALER_ACEBENCH"
SAMPLES = int(os.environ.get("ENVSCALER_BENCH_SAMPLES") or 2)
OFFICIAL = Path(__file__).with_name("official_ace.py")
Scores = tuple[float, float]


@pytest.fixture(scope="module")
def checkout() -> Path:
    """The user's checkout, or skip."""
    named = os.environ.get(VARIABLE)
    if not named or not Path(named).is_dir():
        pytest.skip(f"the tasks of ACEBench stand in no package: name a checkout of it with {VARIABLE}")
    return Path(named).resolve()


@pytest.fixture(scope="module")
def ace(place: Path, checkout: Path) -> Installation:
    """ACEBench with the tasks of the checkout."""
    return installed("ace", checkout)


async def episodes(ace: Installation, tasks: Sequence[BenchTask], samples: Sequence[int]) -> list[Trajectory]:
    """Imperfect episodes, one call in each message of the agent's."""
    async with ace.crew() as crew:

        async def played(assignment: tuple[BenchTask, int]) -> Trajectory:
            task, sample = assignment
            options = {"language": task.only["language"], "play": "alone"}
            world = BenchWorld(
                "ace", "v", task, crew, rules=rules_of(ace), options=options, mode="conversation", sample=sample
            )
            return await play(world, ImperfectAgent(), step_limit=60, policy=CallPolicy(parallel=False))

        every = [(task, sample) for task in tasks for sample in samples]
        return [trajectory async for trajectory in bounded_map(played, every, limit=4)]


def recorded(trajectory: Trajectory, task: BenchTask) -> dict[str, Any]:
    """What evalscope is given: the agent's messages with calls, as it would have written them."""
    messages = []
    for step in trajectory.steps:
        calls = zip(step.assistant.tool_calls, step.observations, strict=True)
        made = [(call.name, call.arguments) for call, seen in calls if seen.fault != NOT_MADE]
        if made:
            messages.append(written(made))
    told = {"id": task.id, "language": task.only["language"], "split": task.split}
    return {**told, "sample": trajectory.sample, "messages": messages}


def official(ace: Installation, checkout: Path, lines: Sequence[dict[str, Any]], folder: Path) -> dict[Any, Scores]:
    """What evalscope's own scorer says, by task and sample."""
    (folder / "recorded.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    command = [str(python_of(ace.folder)), str(OFFICIAL), str(checkout), "recorded.jsonl", "verdicts.jsonl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = map(json.loads, (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    return {(one["id"], one["sample"]): (one["end"], one["process"]) for one in told}


def ours(trajectory: Trajectory) -> Scores:
    return trajectory.scores["official"], trajectory.scores["part.process"]


async def test_scores_are_those_of_evalscopes_own_scorer_item_by_item_in_any_order(
    ace: Installation, checkout: Path, tmp_path: Path
) -> None:
    tasks = {task.id: task for task in ace.installed.tasks if task.gold is not None}
    played = await episodes(ace, list(tasks.values()), range(SAMPLES))
    mine = {(one.scenario_id, one.sample): ours(one) for one in played}
    theirs = official(ace, checkout, [recorded(one, tasks[one.scenario_id]) for one in played], tmp_path)
    assert theirs.keys() == mine.keys()
    assert [(key, mine[key], theirs[key]) for key in mine if mine[key] != theirs[key]] == []
    passed = Counter(end for end, _ in mine.values())
    between = sum(0.0 < process < 1.0 for _, process in mine.values())
    print(f"{len(mine)} episodes, {passed[1.0]} at the right end, {between} part of the way, all as evalscope says")
    assert len(mine) // 10 < passed[1.0] < len(mine) * 9 // 10
    assert between > len(mine) // 10
    # Nothing of one trial reaches another: the same ones come out alike when others went before them.
    some = [task for task in reversed(list(tasks.values())) if task.split == "multi_step"]
    again = await episodes(ace, some, [0])
    assert {(one.scenario_id, 0): ours(one) for one in again}.items() <= mine.items()


@pytest.mark.parametrize(("language", "solved"), [("en", (12, 29)), ("zh", (14, 29))])
async def test_recorded_solutions_and_doing_nothing_are_worth_what_is_told_of_them(
    ace: Installation, tmp_path: Path, language: str, solved: tuple[int, int]
) -> None:
    runs = []
    for agent in ("oracle", "noop"):
        settings = RolloutSettings(agent=agent, out=tmp_path / agent)
        runs.append((await run_bench(ace, settings, options={"language": language})).run)
    oracle, noop = bench_report(runs).runs
    counts = {"multi_step": 20, "multi_turn": 30}
    for (part, number), ceiling, floor in zip(counts.items(), solved, (0, 1), strict=True):
        assert oracle.parts[part].tasks == noop.parts[part].tasks == number
        assert oracle.parts[part].official.value == pytest.approx(ceiling / number)
        assert noop.parts[part].official.value == pytest.approx(floor / number)
        assert (noop.parts[part].floor, noop.parts[part].ceiling) == pytest.approx((floor / number, ceiling / number))
    assert oracle.without_faulty.official.value == 1.0
    assert noop.without_faulty.official.value == 0.0


async def test_what_is_known_to_be_wrong_names_tasks_that_there_are(ace: Installation) -> None:
    tasks = {task.id for task in ace.installed.tasks}
    wrong = faulty_tasks("ace", ace.installed)
    assert wrong.keys() <= tasks
    assert {task for task, found in ace.installed.recorded.items() if not found.passes} <= wrong.keys()
    print(f"{sum(not task.startswith('zh_') for task in wrong)} faulty in English, {len(wrong)} in all")
