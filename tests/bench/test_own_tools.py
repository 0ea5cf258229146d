"""Benchmarks in which the user has tools of its own: a small one of our own writing, in tau2-bench's form."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from bench.small_tau import small_tau2

from envscaler.agents import (
    STOP_TOKEN,
    ModelAgent,
    NoopAgent,
    OracleAgent,
    RandomAgent,
    UserInstructions,
    UserSimulator,
)
from envscaler.bench.crew import Crew
from envscaler.bench.installation import VARIABLE, Installation
from envscaler.bench.known import faulty_tasks
from envscaler.bench.world import BenchWorld, rules_of
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.roles.role import Prompts
from envscaler.rollout import play
from envscaler.trajectory import StopReason, Trajectory

PRESS = '{"name": "press", "arguments": {}}'


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The small benchmark, installed under the name of tau2-bench in a folder of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(tmp_path_factory.mktemp("bench")))
        yield asyncio.run(small_tau2())


@pytest.fixture
async def crew(line: Installation) -> AsyncIterator[Crew]:
    async with line.crew() as opened:
        yield opened


def book(rooms: int = 2, text: str = "") -> AssistantMessage:
    return AssistantMessage(content=text, tool_calls=(ToolCall(name="book", arguments={"rooms": rooms}),))


def world(
    line: Installation, crew: Crew, task: str, user: ScriptedModel | None = None, how: str | None = None
) -> BenchWorld:
    (found,) = (one for one in line.installed.tasks if one.id == task)

    def played(instructions: UserInstructions) -> UserSimulator:
        assert user is not None
        return UserSimulator(user, instructions, prompts=Prompts(), slips="keep")

    options = {"play": how} if how is not None else {}
    return BenchWorld("tau2", "v", found, crew, rules=rules_of(line), options=options, mode="conversation", user=played)


async def talked(
    line: Installation, crew: Crew, task: str, agent: list[Scripted], user: list[Scripted]
) -> tuple[Trajectory, list[Any]]:
    model = ScriptedModel({"play_user": user}, name="u")
    playing = ModelAgent(ScriptedModel({"agent_turn": agent}, name="m"))
    trajectory = await play(world(line, crew, task, model), playing, step_limit=100)
    return trajectory, [request.inputs for request in model.requests]


def test_recorded_solutions_pass_with_what_the_user_does_and_their_failing_calls_are_told(line: Installation) -> None:
    found = line.installed.recorded
    assert [task for task, one in found.items() if not one.passes] == []
    # A guest who presses no switch has a dark line; where it has to be dark, rooms are missing.
    assert [task for task, one in found.items() if one.noop] == ["airline_0"]
    assert {task: one.raised for task, one in found.items() if one.raised} == {"retail_0": 1}
    assert "calls of its own solution fail" in faulty_tasks("tau2", line.installed)["retail_0"].reason


@pytest.mark.anyio
async def test_a_user_does_something_itself_that_only_it_sees(line: Installation, crew: Crew) -> None:
    trajectory, asked = await talked(
        line,
        crew,
        "telecom_on",
        ["Please press it.", book(), "Done."],
        ["It is dark.", PRESS, "It clicked.", STOP_TOKEN],
    )
    assert trajectory.scores == {"official": 1.0, "part.env_assertion": 1.0, "recorded.failed": 0, "recorded.raised": 0}
    assert [tool.name for tool in asked[0].tools] == ["press"]
    assert asked[0].greeting == "Welcome!"
    assert [line.text for line in asked[2].transcript][-2:] == [PRESS, "click"]
    assert trajectory.user is not None
    (deed,) = [said for said in trajectory.user.utterances if said.observation is not None]
    assert deed.observation is not None
    assert (deed.text, deed.observation.content) == (PRESS, "click")
    told = [step.user.content for step in trajectory.steps if step.user is not None]
    assert told == ["It is dark.", "It clicked."]
    assert [tool.name for tool in trajectory.tools] == ["count", "book"]


@pytest.mark.anyio
async def test_an_agent_has_none_of_the_users_tools(line: Installation, crew: Crew) -> None:
    press = AssistantMessage(tool_calls=(ToolCall(name="press"),))
    trajectory, _ = await talked(line, crew, "telecom_on", [press, "Done."], ["It is dark.", STOP_TOKEN])
    (seen,) = trajectory.steps[0].observations
    assert seen.is_error
    assert trajectory.scores["official"] == 0.0


@pytest.mark.anyio
async def test_what_is_said_beside_a_call_is_said(line: Installation, crew: Crew) -> None:
    beside, _ = await talked(line, crew, "airline_1", [book(text="3 are left."), "Done."], ["Two.", STOP_TOKEN])
    assert beside.scores["official"] == 1.0
    silent, _ = await talked(line, crew, "airline_1", [book(), "Done."], ["Two.", STOP_TOKEN])
    assert (silent.scores["part.db"], silent.scores["part.communicate"]) == (1.0, 0.0)
    assert silent.scores["official"] == 0.0


@pytest.mark.anyio
async def test_too_many_calls_that_fail_end_the_episode_with_nothing(line: Installation, crew: Crew) -> None:
    trajectory, _ = await talked(line, crew, "airline_0", [book(99), book(99), book(99), "Done."], ["Nine."])
    assert trajectory.stop == StopReason.INVALID_ACTION
    assert len(trajectory.steps) == 3
    assert trajectory.scores["official"] == 0.0


@pytest.mark.anyio
async def test_a_user_that_only_acts_is_infrastructure_and_no_score(line: Installation, crew: Crew) -> None:
    trajectory, _ = await talked(line, crew, "telecom_on", ["Press it."], ["It is dark.", *[PRESS] * 40])
    assert trajectory.stop == StopReason.INFRASTRUCTURE
    assert trajectory.verdict is None


@pytest.mark.anyio
async def test_nothing_of_a_trial_is_left_to_the_next_one(line: Installation, crew: Crew) -> None:
    said = ["Two.", STOP_TOKEN]
    first, _ = await talked(line, crew, "retail_0", [book(), book(), "Done."], [*said])
    second, _ = await talked(line, crew, "retail_0", [book(), book(), "Done."], [*said])
    for one in (first, second):
        contents = [seen.content for step in one.steps for seen in step.observations]
        assert contents == ["0 left", "Error: too few rooms"]
        assert one.scores["official"] == 1.0
    assert [step.state_digest for step in first.steps] == [step.state_digest for step in second.steps]


@pytest.mark.anyio
async def test_a_lost_session_is_made_anew_with_what_the_user_did(line: Installation, crew: Crew) -> None:
    user = ScriptedModel({"play_user": ["It is dark.", PRESS, "It clicked.", STOP_TOKEN]}, name="u")
    place = world(line, crew, "telecom_on", user)
    opening = await place.open()
    conversation: list[Any] = [opening.user, AssistantMessage(content="Press it.")]
    conversation += [await place.next_turn(conversation), AssistantMessage(content="Good.")]
    before = place.state_digest
    assert place._session is not None
    await place._session.close()
    await place.next_turn(conversation)
    assert place.state_digest == before
    assert (await place.score()).scores["official"] == 1.0
    await place.close()


@pytest.mark.anyio
async def test_agents_without_a_model_need_none_for_the_user(line: Installation, crew: Crew) -> None:
    for task, found in line.installed.recorded.items():
        oracle = await play(world(line, crew, task, how="recorded"), OracleAgent(), step_limit=100)
        noop = await play(world(line, crew, task, how="alone"), NoopAgent(), step_limit=100)
        random = await play(world(line, crew, task, how="alone"), RandomAgent(), step_limit=100)
        assert oracle.scores["official"] == 1.0
        assert noop.scores["official"] == float(found.noop)
        assert random.verdict is not None
