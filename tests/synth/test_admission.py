"""How many environments are in play: as many as keep the endpoint busy, the earlier ones first."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack

import pytest
from servers.chat_server import Body, ChatServer, slow

from envscaler.cores import usable_cores
from envscaler.engine import bounded_map
from envscaler.llm import ModelRequest
from envscaler.messages import UserMessage
from envscaler.models import Models, ModelSettings, open_models
from envscaler.synth.admission import Admission

pytestmark = pytest.mark.anyio


def opened(server: ChatServer, max_in_flight: int) -> Models:
    return open_models(ModelSettings(model="test-model", base_url=server.base_url, max_in_flight=max_in_flight))


async def asked(models: Models, text: str) -> None:
    await models.chat("builder").complete(ModelRequest(role="x", messages=(UserMessage(content=text),)))


async def test_without_an_endpoint_a_few_are_in_play() -> None:
    async with open_models(ModelSettings()) as models:
        assert Admission(models).room() == 4
        assert Admission(models).tasks() == 32
        assert Admission(models, 7, 9).room() == 7
        assert Admission(models, 7, 9).tasks() == 9


async def test_none_is_begun_while_this_machine_is_busy_with_those_in_play() -> None:
    async with open_models(ModelSettings(model="test-model", base_url="http://127.0.0.1:9/v1")) as models:
        admission = Admission(models)
        busy = 2 * usable_cores()
        with ExitStack() as stack:
            for number in range(busy):
                assert admission.room() == number + 1
                stack.enter_context(admission.in_play())
            assert admission.room() == busy
        assert admission.room() == 1


async def test_as_many_are_in_play_as_the_endpoint_has_room_for_the_questions_of() -> None:
    most = in_play = 0
    full = threading.Event()

    def answer(body: Body) -> str:
        # Nobody is answered before there are as many as there may be.
        if server.most_at_once == 40:
            full.set()
        assert full.wait(120)
        return "fine"

    with ChatServer(answer) as server:
        async with opened(server, 40) as models:
            admission = Admission(models)

            async def environment(number: int) -> None:
                nonlocal most, in_play
                in_play += 1
                most = max(most, in_play)
                with admission.in_play():
                    await asyncio.gather(*(asked(models, f"{number} {part}") for part in range(4)))
                in_play -= 1

            async for _ in bounded_map(environment, range(40), limit=admission.room, window=40):
                pass
    assert server.most_at_once == 40
    # Somebody has to wait, or it would not be tried to send more.
    assert 40 / 4 <= most <= (40 + 40 // 4) / 4 + 2 * usable_cores()


async def test_questions_of_the_environment_begun_first_are_sent_first() -> None:
    with ChatServer("fine", faults=lambda index, body: slow(0.05)) as server:
        async with opened(server, 1) as models:
            admission = Admission(models)
            tasks = [asyncio.create_task(asked(models, "task"))]
            await asyncio.sleep(0.01)
            tasks.append(asyncio.create_task(asked(models, "task")))
            with ExitStack() as stack:
                for name in ("first", "second"):
                    stack.enter_context(admission.in_play())
                    tasks.append(asyncio.create_task(asked(models, name)))
                await asyncio.gather(*tasks)
    assert [body["messages"][0]["content"] for body in server.requests] == ["task", "first", "second", "task"]
