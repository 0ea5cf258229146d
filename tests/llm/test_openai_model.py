"""How the model finds out what an endpoint supports, and what it makes of refusals."""

from __future__ import annotations

from typing import Any

import pytest
from servers.chat_server import (
    ChatServer,
    Fault,
    empty_reply,
    refused,
    server_error,
    thinking_aloud,
    tool_call,
    withheld,
    wrong_tool_names,
)

from envscaler.errors import EndpointRejected, RequestFailed
from envscaler.llm import ModelRequest, OpenAIModel, Price, PriceBook
from envscaler.messages import ToolCall, UserMessage
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling

pytestmark = pytest.mark.anyio

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
OTHER = {"type": "object", "properties": {"b": {"type": "integer"}}}


def asking(text: str = "hello", **fields: Any) -> ModelRequest:
    return ModelRequest(role="test_call", messages=(UserMessage(content=text),), **fields)


def formats(server: ChatServer) -> list[str | None]:
    return [(body.get("response_format") or {}).get("type") for body in server.requests]


def is_tiny(body: dict[str, Any]) -> bool:
    return '{"ok": true}' in body["messages"][0]["content"]


async def test_a_schema_is_sent_where_it_is_supported(open_endpoint: Any) -> None:
    with ChatServer('{"a": 1}') as server:
        await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking(response_schema=SCHEMA))
    assert formats(server) == ["json_schema"]


@pytest.mark.parametrize(
    ("supports", "level"), [({"json_object"}, "json_object"), ({"tools"}, "plain"), ({"json_schema"}, "json_schema")]
)
async def test_the_form_steps_down_once_and_stays_there(supports: set[str], level: str, open_endpoint: Any) -> None:
    with ChatServer('{"a": 1}', supports=supports) as server:
        endpoint = open_endpoint(server.base_url)
        model = OpenAIModel(endpoint, "test-model")
        for schema in (SCHEMA, OTHER, SCHEMA):
            completion = await model.complete(asking(response_schema=schema))
            assert completion.message.content == '{"a": 1}'
    assert model.structure_level == level
    expected = None if level == "plain" else level
    assert formats(server)[-3:] == [expected] * 3
    assert sum(endpoint.stats.stepped_down.values()) == {"json_schema": 0, "json_object": 1, "plain": 2}[level]


async def test_one_schema_that_is_refused_does_not_take_the_others_with_it(open_endpoint: Any) -> None:
    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        form = body.get("response_format") or {}
        if form.get("json_schema", {}).get("schema") == SCHEMA:
            return refused(400, "failed to parse grammar")
        return None

    with ChatServer('{"a": 1}', faults=fault) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model")
        for schema in (SCHEMA, OTHER, SCHEMA):
            await model.complete(asking(response_schema=schema))
    kept = [form for form, body in zip(formats(server), server.requests, strict=True) if not is_tiny(body)]
    assert kept == ["json_schema", "json_object", "json_schema", "json_object"]
    assert model.structure_level == "json_schema"


async def test_a_server_that_breaks_on_schemas_is_asked_without(open_endpoint: Any) -> None:
    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        return (
            server_error() if "response_format" in body and body["response_format"]["type"] == "json_schema" else None
        )

    with ChatServer('{"a": 1}', faults=fault) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model")
        completion = await model.complete(asking(response_schema=SCHEMA))
    assert completion.message.content == '{"a": 1}'
    assert model.structure_level == "json_object"


async def test_newer_models_get_the_token_limit_under_their_own_name(open_endpoint: Any) -> None:
    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        text = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        )
        return refused(400, text, param="max_tokens") if "max_tokens" in body else None

    with ChatServer(faults=fault) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model", sampling=Sampling(max_tokens=50))
        for _ in range(2):
            await model.complete(asking())
    assert [body.get("max_completion_tokens") for body in server.requests] == [None, 50, 50]


async def test_a_request_that_is_too_long_fails_alone(open_endpoint: Any) -> None:
    fault = refused(400, "This model's maximum context length is 8192 tokens", code="context_length_exceeded")
    with ChatServer(faults=[fault]) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model")
        with pytest.raises(RequestFailed, match="maximum context length is 8192"):
            await model.complete(asking(response_schema=SCHEMA))
        await model.complete(asking())
    assert model.structure_level == "json_schema"


async def test_a_request_that_is_refused_while_others_pass_fails_alone(open_endpoint: Any) -> None:
    with ChatServer(faults=[refused(400, "invalid tool definition")]) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model")
        with pytest.raises(RequestFailed, match=r"refuses this request of test-model: HTTP 400: invalid tool"):
            await model.complete(asking())


async def test_an_option_that_is_refused_ends_the_run(open_endpoint: Any) -> None:
    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        return refused(400, "unknown parameter top_k") if "top_k" in body else None

    with ChatServer(faults=fault) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model", body={"top_k": 1})
        with pytest.raises(EndpointRejected, match="unknown parameter top_k; check the model's name, the sampling"):
            await model.complete(asking())


async def test_a_filter_in_front_of_the_model_is_a_reply(open_endpoint: Any) -> None:
    fault = refused(400, "The response was filtered", code="content_filter")
    with ChatServer(faults=[fault]) as server:
        completion = await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking())
    assert (completion.finish_reason, completion.cost_usd) == ("content_filter", 0.0)


async def test_tools_go_out_and_calls_come_back(open_endpoint: Any) -> None:
    tool = ToolSpec(name="look", description="Looks.", parameters={"type": "object", "properties": {}}, effect="query")
    answer = {"content": None, "tool_calls": [tool_call("look", {"x": 1}), tool_call("look", "{broken")]}
    with ChatServer(answer) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model")
        completion = await model.complete(asking(tools=(tool,)))
    assert completion.finish_reason == "tool_calls"
    assert completion.message.tool_calls == (
        ToolCall(name="look", arguments={"x": 1}, id="call_a"),
        ToolCall(name="look", id="call_a", malformed="{broken"),
    )
    assert server.requests[0]["tools"][0]["function"]["name"] == "look"


@pytest.mark.parametrize(
    ("fault", "reply"),
    [
        (empty_reply(), ("stop", "", None, ())),
        (withheld(), ("content_filter", "", None, ("look",))),
        (thinking_aloud("hm"), ("tool_calls", "said", "hm", ("look",))),
        (wrong_tool_names(), ("tool_calls", "said", None, ("look_v2",))),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
async def test_what_is_wrong_with_a_reply_itself_is_the_callers_business(
    fault: Fault, reply: tuple[Any, ...], open_endpoint: Any
) -> None:
    with ChatServer({"content": "said", "tool_calls": [tool_call("look", {})]}, faults=[fault]) as server:
        endpoint = open_endpoint(server.base_url)
        completion = await OpenAIModel(endpoint, "test-model").complete(asking())
    message = completion.message
    names = tuple(call.name for call in message.tool_calls)
    assert (completion.finish_reason, message.content, message.reasoning, names) == reply
    assert not endpoint.stats.faults


async def test_a_reply_costs_what_its_tokens_cost(open_endpoint: Any) -> None:
    prices = PriceBook({"test-model": Price(input=2.0, output=10.0, cached_input=1.0)})
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "prompt_tokens_details": {"cached_tokens": 400},
    }
    with ChatServer(usage=usage) as server:
        model = OpenAIModel(open_endpoint(server.base_url), "test-model", prices=prices)
        completion = await model.complete(asking())
    assert completion.cost_usd == pytest.approx((600 * 2 + 400 * 1 + 100 * 10) / 1e6)
    assert completion.latency_s > 0


@pytest.mark.parametrize("usage", [True, False])
async def test_a_price_that_is_not_known_is_none(usage: bool, open_endpoint: Any) -> None:
    with ChatServer(usage=usage) as server:
        completion = await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking())
    assert completion.cost_usd is None
