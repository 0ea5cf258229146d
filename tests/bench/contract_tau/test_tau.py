"""tau2-bench's package and a checkout of tau-bench: recorded solutions, floors, their own scorers on the same replies.

The checkout is the folder that ENVSCALER_TAU_BENCH names; without one its tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.contract.conftest import installed
from bench.contract.imperfect import ImperfectAgent

from envscaler.agents import STOP_TOKEN, Agent, ModelAgent, OracleAgent, RandomAgent, UserSimulator
from envscaler.bench.crew import Crew
from envscaler.bench.installation import Installation, python_of
from envscaler.bench.tasks import BenchTask
from envscaler.bench.world import BenchWorld, rules_of
from envscaler.engine import bounded_map
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import NOT_MADE, AssistantMessage, ToolCall
from envscaler.roles.role import Prompts
from envscaler.rollout import play
from envscaler.rollout.slip_policy import CallPolicy
from envscaler.trajectory import Trajectory

pytestmark = [pytest.mark.bench, pytest.mark.anyio, pytest.mark.timeout(3600)]
SAMPLES = int(os.environ.get("ENVSCALER_BENCH_SAMPLES") or 2)
EVERY = int(os.environ.get("ENVSCALER_BENCH_EVERY") or 1)
"""Only every so many-th task is played by imperfect agents."""
SIDE_BY_SIDE = 4
PASSING = {"tau2": {"airline": 50, "retail": 114, "telecom": 114}, "tau": {"retail": 115, "airline": 50}}
NOTHING = {"tau2": {"airline": 19, "retail": 7, "telecom": 0}, "tau": {"retail": 7, "airline": 19}}
"""Tasks of each part that doing nothing passes."""


@pytest.fixture(scope="session", params=["tau2", "tau"])
def tau(request: pytest.FixtureRequest, place: Path) -> Installation:
    """One of the two."""
    if request.param == "tau2":
        return installed("tau2")
    checkout = os.environ.get("ENVSCALER_TAU_BENCH")
    if not checkout:
        pytest.skip("ENVSCALER_TAU_BENCH names no checkout of tau-bench")
    return installed("tau", Path(checkout).resolve())


async def episodes(
    installation: Installation, agent: Agent, tasks: Sequence[BenchTask], how: str, samples: int = 1
) -> list[Trajectory]:
    benchmark = installation.benchmark
    async with installation.crew() as crew:

        async def played(assignment: tuple[BenchTask, int]) -> Trajectory:
            task, sample = assignment
            world = BenchWorld(
                benchmark.name,
                "v",
                task,
                crew,
                rules=rules_of(installation),
                options={"play": how},
                mode="conversation",
                sample=sample,
            )
            policy = CallPolicy(parallel=benchmark.parallel_calls)
            return await play(world, agent, step_limit=benchmark.step_limit, policy=policy)

        # Mistakes are drawn by sample: tasks begin at different ones, so that few samples have all of them.
        every = [(task, number + sample) for number, task in enumerate(tasks) for sample in range(samples)]
        return [trajectory async for trajectory in bounded_map(played, every, limit=SIDE_BY_SIDE)]


def verdicts(
    installation: Installation, played: Sequence[Trajectory], how: str, folder: Path
) -> dict[tuple[str, int], dict[str, Any]]:
    """What the benchmark's own code says, by task and sample."""
    lines = [json.dumps({**recorded(one), "play": how}) + "\n" for one in played]
    (folder / "recorded.jsonl").write_text("".join(lines), encoding="utf-8")
    name = installation.benchmark.name
    script = Path(__file__).with_name(f"official_{name}.py")
    checkout = [str(installation.installed.data)] if installation.installed.data is not None else []
    command = [str(python_of(installation.folder)), str(script), *checkout, "recorded.jsonl", "verdicts.jsonl"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = map(json.loads, (folder / "verdicts.jsonl").read_text(encoding="utf-8").splitlines())
    return {(one["id"], one["sample"]): one for one in told}


def recorded(trajectory: Trajectory) -> dict[str, Any]:
    steps = [
        {
            "text": step.assistant.content,
            "calls": [{"name": call.name, "arguments": call.arguments} for call in step.assistant.tool_calls],
        }
        for step in trajectory.steps
    ]
    return {"id": trajectory.scenario_id, "sample": trajectory.sample, "steps": steps}


def seen(trajectory: Trajectory) -> list[str]:
    """What came of the calls that were carried out."""
    return [one.content for step in trajectory.steps for one in step.observations if one.fault != NOT_MADE]


async def test_recorded_solutions_pass_and_doing_nothing_passes_where_it_is_known_to(tau: Installation) -> None:
    name = tau.benchmark.name
    found = tau.installed.recorded
    for part in tau.benchmark.splits:
        own = [found[task.id] for task in tau.installed.tasks if task.split == part]
        assert sum(one.passes for one in own) == PASSING[name][part]
        assert sum(one.noop for one in own) == NOTHING[name][part]
        print(f"{name} {part}: {sum(bool(one.raised or one.failed) for one in own)} tasks whose recorded calls fail")


@pytest.mark.parametrize("how", ["recorded", "alone"])
async def test_scores_and_observations_are_those_of_the_benchmarks_own_code(
    tau: Installation, how: str, tmp_path: Path
) -> None:
    tasks = tau.installed.tasks[::EVERY]
    agent: Agent = ImperfectAgent() if how == "recorded" else RandomAgent()
    played = await episodes(tau, agent, tasks, how, SAMPLES if how == "recorded" else 1)
    theirs = verdicts(tau, played, how, tmp_path)
    wrong = []
    for one in played:
        told = theirs[one.scenario_id, one.sample]
        if one.scores["official"] != told["reward"] or seen(one)[: len(told["seen"])] != told["seen"]:
            wrong.append((one.scenario_id, one.sample, one.scores, told))
    passed = sum(one.scores["official"] for one in played)
    print(f"{tau.benchmark.name} {how}: {len(played)} episodes, {passed:.0f} passed, {len(wrong)} scored otherwise")
    assert wrong == []
    assert how == "alone" or 0 < passed < len(played)


async def test_a_second_trial_begins_where_the_first_one_began(tau: Installation) -> None:
    """Also where the benchmark's code keeps the state in its modules: the first trial changed it."""
    tasks = [task for task in tau.installed.tasks if not tau.installed.recorded[task.id].noop][:: 20 * EVERY]
    trials = await episodes(tau, OracleAgent(), tasks, "recorded", 2)
    for one, other in zip(trials[::2], trials[1::2], strict=True):
        assert one.scenario_id == other.scenario_id
        assert seen(one) == seen(other)
        assert [step.state_digest for step in one.steps] == [step.state_digest for step in other.steps]
        assert one.scores["official"] == other.scores["official"] == 1.0


@pytest.fixture(scope="session")
def tau2(place: Path) -> Installation:
    """The one in which the user has tools."""
    return installed("tau2")


async def test_what_a_simulated_user_does_itself_counts(tau2: Installation) -> None:
    """In telecom: the same calls made by a model that plays the user, and left out."""
    tasks = [task for task in tau2.installed.tasks if task.split == "telecom"][:: 4 * EVERY]
    played = 0
    async with tau2.crew() as crew:
        for task in tasks:
            turns = await deeds_of_the_user(crew, task)
            if not any(turns):
                continue  # the agent does it all
            for does, reward in ((True, 1.0), (False, 0.0)):
                trajectory = await conversation(tau2, crew, task, turns if does else [[] for _ in turns])
                assert trajectory.scores["official"] == reward, task.id
                assert trajectory.user is not None
                made = [said for said in trajectory.user.utterances if said.observation is not None]
                assert len(made) == (sum(map(len, turns)) if does else 0)
                played += does
    print(f"telecom: {played} tasks of {len(tasks)} with what a simulated user does itself")
    assert played > 0


async def deeds_of_the_user(crew: Crew, task: BenchTask) -> list[list[dict[str, Any]]]:
    """What is recorded of the user, for each turn of the agent."""
    session = await crew.open()
    await session.ask("open", task=task.id, options={"play": "recorded"})
    turns = []
    for calls in task.gold or ():
        for call in calls:
            await session.ask("call", name=call.name, arguments=call.arguments)
        turns.append((await session.ask("message", text="", beside=[]))["deeds"])
    await session.close()
    return turns


async def conversation(
    installation: Installation, crew: Crew, task: BenchTask, turns: Sequence[Sequence[dict[str, Any]]]
) -> Trajectory:
    """The recorded calls, made by one model that plays the agent and another one that plays the user."""
    replies: list[Scripted] = []
    said: list[Scripted] = ["It does not work."]
    for calls, deeds in zip(task.gold or (), turns, strict=True):
        made = tuple(ToolCall(name=call.name, arguments=call.arguments) for call in calls)
        replies += [*([AssistantMessage(tool_calls=made)] if made else []), "Please go on."]
        said += [json.dumps({"name": deed["name"], "arguments": deed["arguments"]}) for deed in deeds]
        said.append("That is done.")
    said[-1] = STOP_TOKEN
    user = ScriptedModel({"play_user": said}, name="user")
    world = BenchWorld(
        "tau2",
        "v",
        task,
        crew,
        rules=rules_of(installation),
        options={},
        mode="conversation",
        user=lambda instructions: UserSimulator(user, instructions, prompts=Prompts(), slips="keep"),
    )
    return await play(world, ModelAgent(ScriptedModel({"agent_turn": replies}, name="agent")), step_limit=100)
