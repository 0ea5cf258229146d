"""What an endpoint does with every way in which a server can fail."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from servers.chat_server import (
    TRANSPORT_FAULTS,
    ChatServer,
    Fault,
    at_random,
    cut,
    hung_up,
    no_choices,
    rate_limited,
    refused,
    server_error,
    slow,
)

from envscaler.errors import EndpointRejected, EndpointUnavailable, RequestFailed
from envscaler.llm import Endpoint, ModelRequest, OpenAIModel, RetryPolicy
from envscaler.llm.throttle import BEGIN
from envscaler.messages import UserMessage
from envscaler.models import ModelSettings

pytestmark = pytest.mark.anyio


def asking(text: str = "hello") -> ModelRequest:
    return ModelRequest(role="test_call", messages=(UserMessage(content=text),))


@pytest.mark.parametrize("fault", TRANSPORT_FAULTS, ids=lambda fault: fault.name)
async def test_every_transport_fault_is_retried_and_counted(fault: Fault, open_endpoint: Any) -> None:
    with ChatServer("fine", faults=[fault, fault]) as server:
        endpoint = open_endpoint(server.base_url)
        completion = await OpenAIModel(endpoint, "test-model").complete(asking())
    assert completion.message.content == "fine"
    assert server.injected == {fault.name: 2}
    assert (endpoint.stats.sent, endpoint.stats.answered) == (3, 1)
    assert sum(endpoint.stats.faults.values()) == 2


async def test_faults_are_counted_by_kind(open_endpoint: Any) -> None:
    faults = [rate_limited(), server_error(), cut(), no_choices()]
    with ChatServer(faults=faults) as server:
        endpoint = open_endpoint(server.base_url)
        await OpenAIModel(endpoint, "test-model").complete(asking())
    assert endpoint.stats.as_dict()["faults"] == {
        "connection": 1,
        "rate_limited": 1,
        "server_error": 1,
        "unreadable": 1,
    }


async def test_retry_after_is_honoured_and_never_undercut(open_endpoint: Any, clock: Any) -> None:
    with ChatServer(faults=[rate_limited(7), server_error()]) as server:
        await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking())
    assert 7 <= clock.slept[0] <= 9
    assert clock.slept[1] <= 1


async def test_a_time_out_is_retried(open_endpoint: Any) -> None:
    with ChatServer("fine", faults=[slow(1.0)]) as server:
        endpoint = open_endpoint(server.base_url, timeout_s=0.1)
        completion = await OpenAIModel(endpoint, "test-model").complete(asking())
    assert completion.message.content == "fine"
    assert endpoint.stats.faults == {"timeout": 1}


@pytest.mark.parametrize("kind", ["connection", "server_error"])
async def test_a_run_goes_on_by_itself_after_an_outage_of_ten_minutes(
    kind: str, open_endpoint: Any, clock: Any, states: Any
) -> None:
    away = False

    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        return server_error(503) if away else None

    def end_it() -> None:
        nonlocal away
        if clock.now > 600:
            away = False
            server.up()

    with ChatServer("back", faults=fault) as server:
        endpoint = open_endpoint(server.base_url, patience_s=ModelSettings().patience_s)
        model = OpenAIModel(endpoint, "test-model")
        await model.complete(asking())
        if kind == "connection":
            server.down()
        else:
            away = True
        clock.while_asleep = end_it
        completion = await model.complete(asking())
    assert completion.message.content == "back"
    assert endpoint.stats.faults[kind] >= 10
    assert [state.up for state in states][-1] is True
    assert all(not state.up for state in states[:-1])
    assert 10 < len(states) < 25, "told at most every 30 s"
    assert states[0].down_for_s >= 5
    assert endpoint.stats.outages == 1


async def test_an_endpoint_that_takes_requests_and_answers_none_is_told_of(states: Any) -> None:
    with ChatServer("at last", faults=[slow(1.2), slow(1.2)]) as server:
        retry = RetryPolicy(silence_s=0.2, notify_every_s=0.3)
        endpoint = Endpoint(server.base_url, retry=retry, on_outage=states.append)
        model = OpenAIModel(endpoint, "test-model")
        await asyncio.gather(model.complete(asking("one")), model.complete(asking("two")))
        told = len(states)
        await model.complete(asking("three"))
        await endpoint.aclose()
    assert [state.up for state in states] == [False] * (told - 1) + [True]
    assert 2 <= told <= 6, "told again from time to time, and once that it is back"
    assert states[0].fault.detail == "none of 2 requests at work is answered"
    assert 0.2 <= states[0].down_for_s < states[1].down_for_s
    assert endpoint.stats.as_dict()["outages"] == 1
    assert endpoint.stats.faults == {}


async def test_who_is_always_slow_is_not_said_to_be_away(states: Any) -> None:
    with ChatServer("fine", faults=[slow(0.3), slow(0.5)]) as server:
        retry = RetryPolicy(silence_s=0.4, notify_every_s=0.1)
        endpoint = Endpoint(server.base_url, retry=retry, on_outage=states.append)
        model = OpenAIModel(endpoint, "test-model")
        for text in ("one", "two"):
            await model.complete(asking(text))
        await endpoint.aclose()
    assert states == []


async def test_after_an_outage_as_much_is_sent_as_at_the_beginning(open_endpoint: Any) -> None:
    away = [server_error(503)] * 40
    with ChatServer("fine", faults=[None, *away]) as server:
        endpoint = open_endpoint(server.base_url, max_in_flight=64, attempts=100)
        model = OpenAIModel(endpoint, "test-model")
        await model.complete(asking())
        await asyncio.gather(*(model.complete(asking(f"number {index}")) for index in range(4)))
    assert endpoint.stats.outages == 1
    assert endpoint.throttle.limit >= BEGIN


async def test_patience_ends_an_outage_with_one_sentence(open_endpoint: Any, clock: Any) -> None:
    with ChatServer() as server:
        server.down()
        endpoint = open_endpoint(server.base_url, patience_s=100)
        with pytest.raises(
            EndpointUnavailable, match=r"gave no answer for 100 s \(.*refused|failed.*\); .*same command"
        ):
            await OpenAIModel(endpoint, "test-model").complete(asking())
    assert sum(clock.slept) == pytest.approx(100)


async def test_patience_counts_anew_after_each_answer(open_endpoint: Any, clock: Any) -> None:
    faults = [server_error(), None] * 30
    with ChatServer(faults=faults) as server:
        model = OpenAIModel(open_endpoint(server.base_url, patience_s=2), "test-model")
        for _ in range(30):
            await model.complete(asking())
    assert sum(clock.slept) > 2


async def test_a_request_that_alone_fails_is_given_up_while_others_are_answered(open_endpoint: Any) -> None:
    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        return server_error() if body["messages"][0]["content"] == "poison" else None

    with ChatServer(faults=fault) as server:
        endpoint = open_endpoint(server.base_url)
        with pytest.raises(RequestFailed, match="answers other requests, but not this one: HTTP 500"):
            await OpenAIModel(endpoint, "test-model").complete(asking("poison"))
    assert endpoint.stats.faults["server_error"] == 6
    assert endpoint.stats.failed == 1


async def test_rate_limits_alone_never_make_a_request_fail(open_endpoint: Any) -> None:
    def fault(index: int, body: dict[str, Any]) -> Fault | None:
        return rate_limited(1) if index < 40 else None

    with ChatServer("at last", faults=fault) as server:
        completion = await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking())
    assert completion.message.content == "at last"
    assert server.injected == {"rate_limited": 40}


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (refused(403, "not for you"), "OPENAI_API_KEY"),
        (refused(404, "no such thing"), "check the model's name and the base URL"),
        (refused(402, "pay first"), "HTTP 402: pay first"),
        (Fault("quota", 429, {}, b'{"error": {"message": "x", "code": "insufficient_quota"}}'), "quota of this key"),
    ],
)
async def test_a_refusal_for_good_ends_at_once(fault: Fault, says: str, open_endpoint: Any) -> None:
    with ChatServer(faults=[fault]) as server, pytest.raises(EndpointRejected, match=says):
        await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking())
    assert len(server.requests) == 1


async def test_an_unknown_model_is_named_by_the_endpoint(open_endpoint: Any) -> None:
    with ChatServer() as server, pytest.raises(EndpointRejected, match="The model `gpt-0` does not exist"):
        await OpenAIModel(open_endpoint(server.base_url), "gpt-0").complete(asking())


async def test_no_message_or_log_shows_a_key(open_endpoint: Any, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    key = "sk-very-secret-0123456789"
    with ChatServer(api_key="another") as server:
        with_user = server.base_url.replace("http://", "http://me:hidden@")
        for base_url in (server.base_url, with_user):
            endpoint = open_endpoint(base_url, api_key=key, headers={"X-Pass": "open-sesame"})
            with pytest.raises(EndpointRejected) as caught:
                await OpenAIModel(endpoint, "test-model").complete(asking())
            assert "Incorrect API key" in str(caught.value)
            for secret in (key, "hidden", "open-sesame"):
                assert secret not in str(caught.value)
    ours = [record.getMessage() for record in caplog.records if record.name.startswith("envscaler")]
    assert not any(key in message for message in ours)


async def test_the_key_is_sent_and_none_is_taken_from_elsewhere(
    open_endpoint: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "belongs-to-another-host")
    with ChatServer(api_key="mine") as server:
        await OpenAIModel(open_endpoint(server.base_url, api_key="mine"), "test-model").complete(asking())
    with ChatServer() as server:
        await OpenAIModel(open_endpoint(server.base_url), "test-model").complete(asking())
    assert "belongs-to-another-host" not in str(server.headers)


async def test_user_and_password_in_a_url_are_sent_as_a_header(open_endpoint: Any) -> None:
    with ChatServer("fine") as server:
        endpoint = open_endpoint(server.base_url.replace("http://", "http://me:a%40b@"), api_key="unused")
        await OpenAIModel(endpoint, "test-model").complete(asking())
    assert server.headers[0]["authorization"] == "Basic bWU6YUBi"


async def test_a_connection_that_is_hung_up_is_no_time_out_and_does_not_throttle(open_endpoint: Any) -> None:
    with ChatServer("fine", faults=[hung_up(), cut()] * 8) as server:
        endpoint = open_endpoint(server.base_url, max_in_flight=4, attempts=30)
        await OpenAIModel(endpoint, "test-model").complete(asking())
    assert endpoint.stats.faults == {"connection": 16}
    assert endpoint.throttle.limit == 4


async def test_calls_in_flight_are_bounded(open_endpoint: Any) -> None:
    with ChatServer(faults=lambda index, body: slow(0.02)) as server:
        model = OpenAIModel(open_endpoint(server.base_url, max_in_flight=3), "test-model")
        await asyncio.gather(*(model.complete(asking(str(index))) for index in range(12)))
    assert server.most_at_once == 3


async def test_a_cancelled_call_leaves_its_place_to_the_next(open_endpoint: Any) -> None:
    asked = threading.Event()

    def answer(body: dict[str, Any]) -> str:
        asked.set()
        return "fine"

    with ChatServer(answer, faults=[slow(5.0)]) as server:
        model = OpenAIModel(open_endpoint(server.base_url, max_in_flight=1), "test-model")
        call = asyncio.create_task(model.complete(asking()))
        assert await asyncio.to_thread(asked.wait, 60)
        call.cancel()
        completion = await model.complete(asking())
    assert call.cancelled()
    assert completion.message.content == "fine"


async def test_many_calls_under_many_faults_all_get_their_own_answer(open_endpoint: Any) -> None:
    with ChatServer(
        lambda body: body["messages"][0]["content"], faults=at_random(0.4, seed=3, kinds=TRANSPORT_FAULTS)
    ) as server:
        # So many attempts that no request runs out of them by chance.
        model = OpenAIModel(open_endpoint(server.base_url, attempts=30), "test-model")
        completions = await asyncio.gather(*(model.complete(asking(f"number {index}")) for index in range(60)))
    assert [completion.message.content for completion in completions] == [f"number {index}" for index in range(60)]
    assert len(server.injected) >= 6
