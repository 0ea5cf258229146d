from __future__ import annotations

import pytest
from env.lending import scenario, skeleton

from envscaler.agents import Briefing, NoopAgent, RandomAgent
from envscaler.messages import Message, ToolCall, UserMessage
from envscaler.program import argument_faults
from envscaler.scenario import Scenario

ENVIRONMENT = skeleton()
SCENARIO = scenario(ENVIRONMENT)
START: list[Message] = [UserMessage(content=SCENARIO.task)]


def briefing(played: Scenario = SCENARIO, *, sample: int = 0, seed: int = 0) -> Briefing:
    return Briefing(mode="non-conversation", sample=sample, seed=seed, scenario=played, entities=ENVIRONMENT.entities)


async def random_calls(seed: int, sample: int) -> list[ToolCall]:
    player = RandomAgent(calls=6).start(briefing(sample=sample, seed=seed))
    calls: list[ToolCall] = []
    for _ in range(20):
        completion = await player.act(START, ENVIRONMENT.tools)
        if not completion.message.tool_calls:
            return calls
        calls += completion.message.tool_calls
    raise AssertionError("the random agent does not end")


@pytest.mark.anyio
async def test_random_agent_repeats_its_draws_and_differs_between_samples() -> None:
    trails = [await random_calls(1, sample) for sample in range(5)]
    assert trails == [await random_calls(1, sample) for sample in range(5)]
    assert len({str(trail) for trail in trails}) > 1


@pytest.mark.anyio
async def test_random_calls_fit_the_schemas() -> None:
    for sample in range(10):
        for call in await random_calls(0, sample):
            tool = ENVIRONMENT.tool(call.name)
            assert tool is not None
            assert argument_faults(tool.parameters, call.arguments) == ()


@pytest.mark.anyio
async def test_noop_ends_at_once() -> None:
    completion = await NoopAgent().start(briefing()).act(START, ENVIRONMENT.tools)
    assert not completion.message.tool_calls
    assert completion.message.content


@pytest.mark.anyio
async def test_random_agent_goes_on_with_each_message_where_each_is_a_task_of_its_own() -> None:
    async def trail(task: str) -> list[list[ToolCall]]:
        player = RandomAgent(calls=3).start(Briefing(mode="non-conversation", sample=0, seed=0, task=task))
        turns: list[list[ToolCall]] = []
        conversation: list[Message] = []
        for said in ("one", "two", "three"):
            conversation.append(UserMessage(content=said))
            turns.append([])
            while made := (await player.act(conversation, ENVIRONMENT.tools)).message.tool_calls:
                turns[-1] += made
        return turns

    turns = await trail("a")
    assert all(1 <= len(turn) <= 3 for turn in turns)
    assert turns == await trail("a")
    assert turns != await trail("b")
