from __future__ import annotations

import pytest
from env.lending import scenario, skeleton

from envscaler.agents import Briefing, ModelAgent, prompt_digest, system_prompt
from envscaler.llm.scripted import ScriptedModel
from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolCall, UserMessage
from envscaler.roles.types import AgentTurnInputs
from envscaler.trajectory import Sampling

ENVIRONMENT = skeleton()
SCENARIO = scenario(ENVIRONMENT)
CONVERSATION: list[Message] = [SystemMessage(content="rules"), UserMessage(content=SCENARIO.task)]
BRIEFING = Briefing(mode="non-conversation", sample=3, seed=0, scenario=SCENARIO)


@pytest.mark.anyio
async def test_model_is_sent_the_conversation_and_the_tools() -> None:
    model = ScriptedModel("Done.", name="m")
    await ModelAgent(model, Sampling(temperature=0.5)).start(BRIEFING).act(CONVERSATION, ENVIRONMENT.tools)
    (request,) = model.requests
    assert request.role == "agent_turn"
    assert request.messages == tuple(CONVERSATION)
    assert request.tools == ENVIRONMENT.tools
    assert request.sample == (3, 0)
    assert request.sampling.temperature == 0.5


@pytest.mark.anyio
async def test_recorded_solution_reaches_the_offline_model_only() -> None:
    for name, told in (("offline", SCENARIO.solution), ("gpt-x", None)):
        model = ScriptedModel("Done.", name=name)
        await ModelAgent(model).start(BRIEFING).act(CONVERSATION, ENVIRONMENT.tools)
        inputs = model.requests[0].inputs
        assert isinstance(inputs, AgentTurnInputs)
        assert inputs.solution == told
        assert inputs.conversation == tuple(CONVERSATION)


def test_offline_model_cannot_play_without_a_plan_but_others_can() -> None:
    unsolved = scenario(ENVIRONMENT, solution=None)
    assert ModelAgent(ScriptedModel("", name="offline")).unplayable(unsolved)
    assert ModelAgent(ScriptedModel("", name="gpt-x")).unplayable(unsolved) is None


@pytest.mark.anyio
async def test_call_ids_become_unique_where_the_server_repeats_or_omits_them() -> None:
    calls = (ToolCall(name="find_books", id="0"), ToolCall(name="find_books", id="0"), ToolCall(name="find_books"))
    model = ScriptedModel(lambda request: AssistantMessage(tool_calls=calls))
    player = ModelAgent(model).start(BRIEFING)
    first = await player.act(CONVERSATION, ENVIRONMENT.tools)
    second = await player.act([*CONVERSATION, first.message], ENVIRONMENT.tools)
    ids = [call.id for message in (first.message, second.message) for call in message.tool_calls]
    assert len(set(ids)) == 6


def test_system_prompts_hold_the_document_once_and_differ_by_mode() -> None:
    texts = {system_prompt("THE DOC {{ doc }}", mode) for mode in ("non-conversation", "conversation")}
    assert len(texts) == 2
    for text in texts:
        assert text.count("THE DOC {{ doc }}") == 1
    assert prompt_digest("conversation") != prompt_digest("non-conversation")
