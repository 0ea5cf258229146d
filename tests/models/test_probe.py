"""What `doctor` finds out about an endpoint."""

from __future__ import annotations

from typing import Any

import pytest
from servers.chat_server import ChatServer, refused, tool_call

from envscaler.errors import UsageError
from envscaler.models import EndpointReport, ModelSettings, probe_endpoint

pytestmark = pytest.mark.anyio


def able(body: dict[str, Any]) -> Any:
    if body.get("tools"):
        return {"content": None, "tool_calls": [tool_call("look_up_weather", {"city": "Oslo"})]}
    return '{"ok": true}' if "JSON" in body["messages"][0]["content"] else {"content": "ok", "reasoning": "hm"}


async def probed(server: ChatServer, **settings: Any) -> EndpointReport:
    return await probe_endpoint(
        ModelSettings.model_validate({"model": "test-model", "base_url": server.base_url, **settings})
    )


async def test_an_able_endpoint_is_reported_as_such() -> None:
    with ChatServer(able, api_key="k") as server:
        report = await probed(server, api_key="k")
    assert report.latency_s is not None
    assert report.model_copy(update={"latency_s": None}) == EndpointReport(
        base_url=server.base_url,
        model="test-model",
        reachable=True,
        models=("test-model",),
        model_listed=True,
        json_schema=True,
        json_mode=True,
        tools=True,
        reasoning=True,
        usage=True,
    )


async def test_a_small_endpoint_is_reported_as_such() -> None:
    with ChatServer("ok, sure", supports={"tools"}, usage=None) as server:
        report = await probed(server)
    assert (report.reachable, report.error) == (True, None)
    assert (report.json_schema, report.json_mode, report.tools, report.usage) == (False, False, False, False)


async def test_what_is_down_is_unreachable_and_says_why() -> None:
    with ChatServer() as server:
        server.down()
        report = await probed(server)
    assert (report.reachable, report.json_schema) == (False, None)
    assert report.error


async def test_a_model_that_does_not_exist_is_said_to() -> None:
    with ChatServer() as server:
        report = await probed(server, model="gpt-0")
    assert (report.reachable, report.model_listed) == (True, False)
    assert report.error is not None
    assert "The model `gpt-0` does not exist" in report.error


async def test_a_wrong_key_is_said_to_be_wrong_and_not_shown() -> None:
    with ChatServer(api_key="right") as server:
        report = await probed(server, api_key="sk-wrong-0123456789")
    assert report.error is not None
    assert "OPENAI_API_KEY" in report.error
    assert "sk-wrong" not in report.error


async def test_a_failing_endpoint_is_reported_and_not_waited_for() -> None:
    with ChatServer(faults=lambda index, body: refused(503, "loading model")) as server:
        report = await probed(server)
    assert (report.reachable, report.error) == (True, "HTTP 503: loading model")
    assert len(server.requests) == 1


async def test_without_a_base_url_there_is_nothing_to_try() -> None:
    with pytest.raises(UsageError, match="no endpoint to try"):
        await probe_endpoint(ModelSettings())
