from __future__ import annotations

import pytest

from envscaler.agents.dialects import choose_dialect
from envscaler.errors import EndpointUnavailable, RequestFailed
from envscaler.llm.chat import ModelRequest
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall

CALL = '{"tool": "look_up_weather", "arguments": {"city": "Oslo"}}'


@pytest.mark.anyio
async def test_an_endpoint_that_gives_calls_is_played_natively_after_one_question() -> None:
    model = ScriptedModel(AssistantMessage(tool_calls=(ToolCall(name="look_up_weather", arguments={"city": "Oslo"}),)))
    assert await choose_dialect(model) == "native"
    assert len(model.requests) == 1


@pytest.mark.anyio
async def test_an_endpoint_that_gives_text_for_tools_but_keeps_to_a_schema_is_played_by_schema() -> None:
    def answer(request: ModelRequest) -> Scripted:
        return CALL if request.response_schema is not None else f"```json\n{CALL}\n```"

    assert await choose_dialect(ScriptedModel(answer)) == "schema"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "said", ["It is cold in Oslo.", '{"tool": "look_up_weather"}', '{"city": "Oslo"}', f"Sure: {CALL}"]
)
async def test_an_endpoint_that_does_neither_is_played_in_hermes(said: str) -> None:
    assert await choose_dialect(ScriptedModel(said)) == "hermes"


@pytest.mark.anyio
async def test_an_endpoint_that_refuses_tools_and_schemas_is_played_in_hermes() -> None:
    assert await choose_dialect(ScriptedModel(lambda request: RequestFailed("tools are not supported"))) == "hermes"


@pytest.mark.anyio
async def test_an_endpoint_that_is_down_is_not_taken_for_one_that_cannot() -> None:
    with pytest.raises(EndpointUnavailable):
        await choose_dialect(ScriptedModel(lambda request: EndpointUnavailable("down")))


@pytest.mark.anyio
async def test_the_offline_model_is_asked_nothing() -> None:
    model = ScriptedModel([], name="offline")
    assert await choose_dialect(model) == "native"
    assert model.requests == []
