"""BFCL's own package: its recorded solutions, floors, and its own scorer on the same calls."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.contract.imperfect import CheatingAgent, ImperfectAgent

from envscaler.agents import Agent
from envscaler.bench.installation import Installation, python_of
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.bench.tasks import BenchTask
from envscaler.bench.world import BenchWorld
from envscaler.engine import bounded_map
from envscaler.rollout import RolloutSettings, play
from envscaler.rollout.world import TurnRules
from envscaler.trajectory import Trajectory

pytestmark = [pytest.mark.bench, pytest.mark.anyio, pytest.mark.timeout(2400)]
SAMPLES = int(os.environ.get("ENVSCALER_BENCH_SAMPLES") or 2)
"""Imperfect episodes of each of the 800 tasks."""
OFFICIAL = Path(__file__).with_name("official.py")


async def episodes(
    installation: Installation, agent: Agent, tasks: Sequence[BenchTask], samples: int = 1, withheld: str = "execute"
) -> list[Trajectory]:
    async with installation.crew() as crew:

        async def played(assignment: tuple[BenchTask, int]) -> Trajectory:
            task, sample = assignment
            world = BenchWorld(
                installation.benchmark.name,
                "v",
                task,
                crew,
                rules=TurnRules(steps=installation.installed.steps, empty_replies=True),
                options={"withheld": withheld},
                sample=sample,
            )
            return await play(world, agent, step_limit=200)

        every = [(task, sample) for task in tasks for sample in range(samples)]
        return [trajectory async for trajectory in bounded_map(played, every, limit=8)]


def recorded(trajectory: Trajectory) -> dict[str, Any]:
    """What BFCL's scorer is given: the calls of each turn by steps, as the agent wrote them."""
    turns: list[list[list[dict[str, Any]]]] = []
    for step in trajectory.steps:
        if step.turn == len(turns):
            turns.append([])
        if step.assistant.tool_calls:
            turns[step.turn].append([{call.name: call.arguments} for call in step.assistant.tool_calls])
    return {"id": trajectory.scenario_id, "sample": trajectory.sample, "turns": turns}


def verdicts(installation: Installation, played: Sequence[Trajectory], folder: Path) -> dict[tuple[str, int], bool]:
    """What BFCL's own scorer says, by task and sample."""
    lines = [json.dumps(recorded(one)) + "\n" for one in played]
    (folder / "recorded.jsonl").write_text("".join(lines), encoding="utf-8")
    python = python_of(installation.folder)
    (data,) = python.parents[1].glob("lib/python3*/site-packages/bfcl_eval/data")
    command = [str(python), str(OFFICIAL), str(data), "recorded.jsonl", "verdicts.jsonl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = map(json.loads, (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    return {(one["id"], one["sample"]): one["valid"] for one in told}


async def test_scores_are_those_of_bfcls_own_scorer_item_by_item(bfcl: Installation, tmp_path: Path) -> None:
    played = await episodes(bfcl, ImperfectAgent(), bfcl.installed.tasks, SAMPLES)
    ours = {(one.scenario_id, one.sample): one.scores["official"] == 1.0 for one in played}
    theirs = verdicts(bfcl, played, tmp_path)
    assert theirs.keys() == ours.keys()
    assert [key for key in ours if ours[key] != theirs[key]] == []
    passed = sum(ours.values())
    print(f"{len(ours)} episodes, {passed} passed, all as BFCL's own scorer says")
    assert len(ours) // 10 < passed < len(ours) * 9 // 10


async def test_acting_a_turn_early_passes_the_checker_and_is_reported_or_refused(bfcl: Installation) -> None:
    held_back = [task for task in bfcl.installed.tasks if task.split in ("miss_func", "miss_param")]
    taken = await episodes(bfcl, CheatingAgent(), held_back)
    refused = await episodes(bfcl, CheatingAgent(), held_back, withheld="refuse")
    passed, broken, kinds = Counter[str](), Counter[str](), Counter[str]()
    for one in taken:
        own = [name for name in one.scores if name.startswith("violation.") and name != "violation.unknown_tool"]
        passed[one.env_id] += one.scores["official"] == 1.0
        broken[one.env_id] += bool(own)
        kinds.update(own)
    print(f"cheating: {dict(passed)} pass the checker, {dict(broken)} are reported: {dict(kinds)}")
    print(f"refused: {sum(one.scores['official'] for one in refused if one.env_id == 'miss_func'):.0f} of 200 pass")
    assert passed["miss_func"] > 190
    assert passed["miss_param"] > 190
    assert broken["miss_func"] == 200
    assert broken["miss_param"] > 190


async def test_v4_plays_its_own_recorded_solutions(bfcl_v4: Installation, tmp_path: Path) -> None:
    report = await run_bench(bfcl_v4, RolloutSettings(agent="oracle", out=tmp_path / "oracle"))
    (card,) = bench_report([report.run]).runs
    assert (card.total.official.value, card.total.tasks) == (1.0, 800)


LOADED = """
import json, os, sys, tempfile
os.environ["BFCL_PROJECT_ROOT"] = tempfile.mkdtemp()
from bfcl_eval.utils import load_dataset_entry
out = {}
for split in ("base", "miss_func", "miss_param", "long_context"):
    for entry in load_dataset_entry(f"multi_turn_{split}"):
        later = entry.get("missed_function", {})
        out[entry["id"]] = {
            "first": [one["name"] for one in entry["function"]],
            "later": {turn: [one["name"] for one in documents] for turn, documents in later.items()},
            "said": [[message["content"] for message in turn] for turn in entry["question"]],
        }
print(json.dumps(out))
"""


def loaded(installation: Installation) -> dict[str, Any]:
    """The tasks as BFCL's own loader gives them."""
    command = [str(python_of(installation.folder)), "-c", LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    out: dict[str, Any] = json.loads(done.stdout)
    return out


async def test_tools_and_messages_of_each_turn_are_those_of_bfcls_own_loader(bfcl_v4: Installation) -> None:
    tasks = loaded(bfcl_v4)
    assert list(tasks) == [task.id for task in bfcl_v4.installed.tasks]
    async with bfcl_v4.crew() as crew:
        for name, task in list(tasks.items())[::7]:
            session = await crew.open()
            told = await session.ask("open", task=name, options={"withheld": "refuse"})
            there = list(task["first"])
            for turn, said in enumerate(task["said"]):
                there += task["later"].get(str(turn), [])
                assert [tool["name"] for tool in told["tools"]] == there
                assert not said or told["user"] == "\n\n".join(said)
                told = await session.ask("message", text="")
            assert told["user"] is None
            await session.close()
