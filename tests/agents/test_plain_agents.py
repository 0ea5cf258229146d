from __future__ import annotations

import json

import pytest
from env.lending import STATE, scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.agents import Briefing, NoopAgent, OracleAgent, RandomAgent
from envscaler.llm.chat import Completion
from envscaler.messages import Message, ToolCall, ToolMessage, UserMessage
from envscaler.program import argument_faults
from envscaler.scenario import Scenario

ENVIRONMENT = skeleton()
SCENARIO = scenario(ENVIRONMENT)
START: list[Message] = [UserMessage(content=SCENARIO.task)]


def briefing(played: Scenario = SCENARIO, *, sample: int = 0, seed: int = 0) -> Briefing:
    return Briefing(mode="non-conversation", sample=sample, seed=seed, scenario=played, entities=ENVIRONMENT.entities)


def answered(completion: Completion, content: str) -> list[Message]:
    (call,) = completion.message.tool_calls
    assert call.id is not None
    return [completion.message, ToolMessage(content=content, tool_call_id=call.id, name=call.name)]


@pytest.mark.anyio
async def test_oracle_puts_real_results_into_the_recorded_calls() -> None:
    player = OracleAgent().start(briefing())
    first = await player.act(START, ENVIRONMENT.tools)
    conversation = START + answered(first, json.dumps({"data": [{"book_id": "B7"}]}))
    second = await player.act(conversation, ENVIRONMENT.tools)
    assert second.message.tool_calls[0].arguments == {"book_id": "B7", "member": "Ann"}
    final = await player.act(conversation + answered(second, "{}"), ENVIRONMENT.tools)
    assert final.message.content
    assert not final.message.tool_calls


@pytest.mark.anyio
@pytest.mark.parametrize("observation", ["Error: nothing", "{'data': []}", '{"data": []}'])
async def test_oracle_keeps_the_recorded_value_where_the_real_one_is_missing(observation: str) -> None:
    player = OracleAgent().start(briefing())
    first = await player.act(START, ENVIRONMENT.tools)
    second = await player.act(START + answered(first, observation), ENVIRONMENT.tools)
    assert second.message.tool_calls[0].arguments == {"book_id": "B1", "member": "Ann"}


@pytest.mark.anyio
async def test_oracle_reads_observations_in_the_released_style() -> None:
    player = OracleAgent().start(briefing())
    first = await player.act(START, ENVIRONMENT.tools)
    second = await player.act(START + answered(first, "{'data': [{'book_id': 'B8'}], 'ok': True}"), ENVIRONMENT.tools)
    assert second.message.tool_calls[0].arguments["book_id"] == "B8"


def test_oracle_cannot_play_without_a_solution() -> None:
    assert OracleAgent().unplayable(scenario(ENVIRONMENT, solution=None)) == "no recorded solution"
    assert OracleAgent().unplayable(scenario(ENVIRONMENT, solution=())) is None


async def random_calls(seed: int, sample: int) -> list[ToolCall]:
    player = RandomAgent(calls=6).start(briefing(sample=sample, seed=seed))
    calls = []
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


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3))
def test_resolving_bindings_leaves_the_recorded_call_alone(result: dict[str, int]) -> None:
    assert SCENARIO.solution is not None
    recorded = SCENARIO.solution[1]
    recorded.resolved([{"data": [{"book_id": str(result)}]}])
    assert recorded.arguments == {"book_id": "B1", "member": "Ann"}
    assert STATE["next_loan"] == 1
