"""Benchmarks in which somebody is played: a small one of our own writing, in tau-bench's form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from bench.small_tau import small_tau
from servers.chat_server import ChatServer, tool_call
from typer.testing import CliRunner

from envscaler.agents import STOP_TOKEN, Agent, ModelAgent, NoopAgent, OracleAgent, UserInstructions, UserSimulator
from envscaler.bench.catalogue import benchmark_named
from envscaler.bench.crew import Crew
from envscaler.bench.installation import VARIABLE, Installation
from envscaler.bench.installing import install
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.bench.world import BenchWorld, rules_of
from envscaler.cli.app import app
from envscaler.errors import UsageError
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.roles.role import Prompts
from envscaler.rollout import RolloutSettings, play
from envscaler.rollout.report import RunRecord
from envscaler.rollout.slip_policy import CallPolicy
from envscaler.store import RunStore
from envscaler.trajectory import StopReason, Trajectory

ORDER = {"tea": "green", "bags": 2}


@pytest.fixture(scope="module")
def tea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The small benchmark, installed under the name of tau-bench in a folder of its own."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "environments"))
        yield asyncio.run(small_tau(folder / "checkout"))


@pytest.fixture
async def crew(tea: Installation) -> AsyncIterator[Crew]:
    async with tea.crew() as opened:
        yield opened


def order(**given: Any) -> AssistantMessage:
    return AssistantMessage(tool_calls=(ToolCall(name="order", arguments={**ORDER, **given}),))


HANG_UP = AssistantMessage(tool_calls=(ToolCall(name="hang_up"),))


def world(
    tea: Installation, crew: Crew, task: str, user: ScriptedModel | None = None, how: str | None = None
) -> BenchWorld:
    (found,) = (one for one in tea.installed.tasks if one.id == task)

    def played(instructions: UserInstructions) -> UserSimulator:
        assert user is not None
        return UserSimulator(user, instructions, prompts=Prompts())

    options = {"play": how} if how is not None else {}
    return BenchWorld("tau", "v", found, crew, rules=rules_of(tea), options=options, mode="conversation", user=played)


async def talked(
    tea: Installation, crew: Crew, task: str, agent: list[Scripted], user: list[Scripted], step_limit: int = 30
) -> Trajectory:
    place = world(tea, crew, task, ScriptedModel({"play_user": user}, name="u"))
    playing = ModelAgent(ScriptedModel({"agent_turn": agent}, name="m"))
    return await play(place, playing, step_limit=step_limit, policy=CallPolicy(parallel=False))


async def alone(tea: Installation, crew: Crew, task: str, agent: Agent, how: str) -> Trajectory:
    place = world(tea, crew, task, how=how)
    return await play(place, agent, step_limit=30, policy=CallPolicy(parallel=False))


def observed(trajectory: Trajectory) -> list[str]:
    return [seen.content for step in trajectory.steps for seen in step.observations]


def test_recorded_solutions_pass_and_doing_nothing_only_where_nothing_is_to_be_done(tea: Installation) -> None:
    found = tea.installed.recorded
    assert all(one.passes for one in found.values())
    assert [task for task, one in found.items() if one.noop] == ["airline_0"]


@pytest.mark.anyio
async def test_a_user_is_told_the_benchmarks_instructions_and_ends_the_conversation(
    tea: Installation, crew: Crew
) -> None:
    user = ScriptedModel({"play_user": ["Green tea, please.", "Two bags.", STOP_TOKEN]}, name="u")
    agent = ModelAgent(ScriptedModel({"agent_turn": ["How much?", order(), "Here it is."]}, name="m"))
    trajectory = await play(world(tea, crew, "retail_0", user), agent, step_limit=30)
    assert trajectory.stop == StopReason.USER_STOPPED
    assert trajectory.mode == "conversation"
    assert trajectory.system_prompt == "Sell tea."
    assert [step.user.content for step in trajectory.steps if step.user is not None] == [
        "Green tea, please.",
        "Two bags.",
    ]
    assert trajectory.scores["official"] == 1.0
    assert trajectory.scores["part.actions"] == 1.0
    assert trajectory.user is not None
    assert [said.text for said in trajectory.user.utterances] == ["Green tea, please.", "Two bags.", STOP_TOKEN]
    assert trajectory.use["play_user"].calls == 3
    inputs: Any = user.requests[0].inputs
    assert inputs.instructions.startswith("You are Ann")
    # It may keep for itself what nobody asks for.
    assert trajectory.user.slips == ()


@pytest.mark.anyio
async def test_what_has_to_be_said_counts_only_when_it_is_said(tea: Installation, crew: Crew) -> None:
    said = ["Two bags.", STOP_TOKEN]
    assert (await talked(tea, crew, "retail_1", [order(), "There are 3 left."], said)).scores["official"] == 1.0
    silent = await talked(tea, crew, "retail_1", [order(), "Done."], said)
    assert (silent.scores["official"], silent.scores["part.outputs"]) == (0.0, 0.0)


@pytest.mark.anyio
async def test_an_episode_that_does_not_come_to_its_end_is_worth_nothing(tea: Installation, crew: Crew) -> None:
    cut = await talked(tea, crew, "airline_0", ["What is it?", "And?"], ["Nine bags.", "Hm."], step_limit=2)
    assert cut.stop == StopReason.STEP_LIMIT
    assert cut.scores["official"] == 0.0
    assert cut.verdict is not None
    assert "ended too early" in cut.verdict.checks[0].description
    ended = await talked(tea, crew, "airline_0", ["We have too few."], ["Nine bags.", STOP_TOKEN])
    assert ended.scores["official"] == 1.0


@pytest.mark.anyio
async def test_a_call_can_end_the_conversation(tea: Installation, crew: Crew) -> None:
    trajectory = await talked(tea, crew, "airline_1", [order(), HANG_UP], ["Two bags."])
    assert trajectory.stop == StopReason.FINISHED
    assert trajectory.scores["official"] == 1.0
    assert len(trajectory.steps) == 2
    place = world(tea, crew, "airline_1", how="alone")
    await place.open()
    await place.call(HANG_UP.tool_calls[0])
    late = await place.call(order().tool_calls[0])
    assert late.is_error
    assert (await place.score()).scores["official"] == 0.0
    await place.close()


@pytest.mark.anyio
async def test_only_the_first_call_of_a_reply_is_carried_out_and_a_message_is_no_call(
    tea: Installation, crew: Crew
) -> None:
    two = AssistantMessage(tool_calls=(*order().tool_calls, *order().tool_calls))
    respond = AssistantMessage(tool_calls=(ToolCall(name="respond", arguments={"content": "3"}),))
    trajectory = await talked(tea, crew, "retail_1", [two, respond, "Done."], ["Two bags.", STOP_TOKEN])
    assert observed(trajectory)[0].startswith("3 left")
    assert "only one call" in observed(trajectory)[1]
    assert "no tool named 'respond'" in observed(trajectory)[2]
    assert trajectory.scores["part.outputs"] == 0.0


@pytest.mark.anyio
async def test_nothing_of_a_trial_is_left_to_the_next_one(tea: Installation, crew: Crew) -> None:
    said, done = ["Two bags.", STOP_TOKEN], [order(), order(), "Done."]
    first = await talked(tea, crew, "retail_0", [*done], [*said])
    second = await talked(tea, crew, "retail_0", [*done], [*said])
    # The small benchmark counts the calls of a process, and has five bags.
    assert observed(first) == observed(second) == ["3 left, call 1", "1 left, call 2"]
    assert first.scores["official"] == second.scores["official"] == 0.0
    assert [step.state_digest for step in first.steps] == [step.state_digest for step in second.steps]


@pytest.mark.anyio
async def test_agents_without_a_model_need_none_for_the_user(tea: Installation, crew: Crew) -> None:
    for task, found in tea.installed.recorded.items():
        oracle = await alone(tea, crew, task, OracleAgent(), "recorded")
        noop = await alone(tea, crew, task, NoopAgent(), "alone")
        assert oracle.scores["official"] == 1.0
        assert noop.scores["official"] == float(found.noop)
        assert oracle.user is noop.user is None


def plays(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
    system, last = body["messages"][0]["content"], body["messages"][-1]
    if system == "Sell tea.":
        if last["role"] == "user":
            return {"content": None, "tool_calls": [tool_call("order", ORDER)]}
        return "There are 3 left."
    return STOP_TOKEN if "Assistant: There are 3 left." in last["content"] else "Two bags of green tea."


def test_a_model_plays_with_one_as_its_user(tea: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with ChatServer(plays) as server:
        model = ["--model", "test-model", "--base-url", server.base_url]
        out = ["--out", str(tmp_path / "run"), "--quiet", "--dialect", "native", "--user-slips", "keep"]
        done = CliRunner().invoke(app, ["bench", "run", "tau", *out, *model])
        assert done.exit_code == 0, done.output
    record = RunStore(tmp_path / "run").read_run(RunRecord)
    assert record is not None
    assert record.models == {"agent": "test-model", "user": "test-model"}
    assert list(record.prompts) == ["play_user"]
    scores = {one.scenario_id: one.scores["official"] for one in RunStore(tmp_path / "run").trajectories()}
    assert scores == {"retail_0": 1.0, "retail_1": 1.0, "airline_0": 0.0, "airline_1": 1.0}
    (card,) = bench_report([tmp_path / "run"]).runs
    assert card.total.official.value == 0.75
    assert card.settings["models"] == {"user": "test-model"}
    assert card.settings["user_slips"] == "keep"


@pytest.mark.anyio
async def test_the_floor_is_played_without_any_model(tea: Installation, tmp_path: Path) -> None:
    settings = RolloutSettings(agent="noop", samples=2, out=tmp_path / "noop")
    report = await run_bench(tea, settings)
    (card,) = bench_report([report.run]).runs
    assert card.total.official.value == card.total.floor == 0.25
    assert card.total.pass_all[2].value == 0.25


@pytest.mark.anyio
async def test_a_benchmark_without_a_package_needs_a_folder_and_one_with_its_own_tasks_takes_none(
    tea: Installation, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="needs --data DIR: a checkout"):
        await install(benchmark_named("tau"))
    with pytest.raises(UsageError, match="leave out --data"):
        await install(benchmark_named("tau2"), data=tmp_path)
