"""The scripted model gives what the script says, in order, and records what it was asked."""

from __future__ import annotations

from typing import Any

import pytest

from envscaler.errors import EndpointUnavailable, UsageError
from envscaler.llm import ChatModel, Completion, ModelRequest, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall, UserMessage
from envscaler.trajectory import Usage

pytestmark = pytest.mark.anyio


def asking(role: str = "judge_call", text: str = "?") -> ModelRequest:
    return ModelRequest(role=role, messages=(UserMessage(content=text),))


async def said(model: ChatModel, role: str = "judge_call", text: str = "?") -> str:
    return (await model.complete(asking(role, text))).message.content


async def test_one_reply_is_given_every_time() -> None:
    model = ScriptedModel("same")
    assert [await said(model), await said(model, "user_turn")] == ["same", "same"]
    assert [request.role for request in model.requests] == ["judge_call", "user_turn"]


async def test_a_sequence_is_used_up_and_then_says_so() -> None:
    model = ScriptedModel(["a", "b"])
    assert [await said(model), await said(model)] == ["a", "b"]
    with pytest.raises(UsageError, match="judge_call is used up after 2 replies"):
        await said(model)


async def test_roles_have_scripts_of_their_own() -> None:
    async def slowly(request: ModelRequest) -> str:
        return request.messages[0].content[::-1]

    model = ScriptedModel({"judge_call": ["a"], "user_turn": slowly})
    assert await said(model, "user_turn", "abc") == "cba"
    assert await said(model) == "a"
    with pytest.raises(UsageError, match="no reply for role plan_tools"):
        await said(model, "plan_tools")


async def test_errors_are_raised() -> None:
    with pytest.raises(EndpointUnavailable, match="down"):
        await ScriptedModel(EndpointUnavailable("down")).complete(asking())


@pytest.mark.parametrize(
    ("scripted", "finish"),
    [
        (AssistantMessage(content="x"), "stop"),
        (AssistantMessage(tool_calls=(ToolCall(name="f"),)), "tool_calls"),
        (Completion(message=AssistantMessage(content="x"), finish_reason="length", model="m"), "length"),
    ],
)
async def test_messages_and_completions_are_given_as_they_are(scripted: Any, finish: str) -> None:
    completion = await ScriptedModel([scripted]).complete(asking())
    assert completion.finish_reason == finish
    assert scripted in (completion, completion.message)


async def test_a_typed_reply_is_sent_as_its_json() -> None:
    assert await said(ScriptedModel(Usage(input_tokens=3))) == Usage(input_tokens=3).model_dump_json()


async def test_it_is_free() -> None:
    assert (await ScriptedModel("x").complete(asking())).cost_usd == 0.0
