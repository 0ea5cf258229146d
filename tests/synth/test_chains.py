"""Tests of chains: they take turns in few workers, see nothing of each other, and say where calls do not repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from envscaler.errors import ProgramError
from envscaler.messages import ToolCall
from envscaler.sandbox import Limits, Program, Sandbox, Session
from envscaler.skeleton import ToolSpec
from envscaler.synth.chains import Chain, Sessions

SOURCE = """
import random

class Counter:
    made = 0

    def __init__(self, config):
        self.total = config["total"]
        assert self.total != 1000

    def add(self, by: int):
        self.total += by
        return {"success": True, "total": self.total}

    def ask(self):
        Counter.made += 1
        return {"success": True, "data": Counter.made}

    def draw(self):
        return {"success": True, "data": random.randint(0, 10**9)}

    def hang(self):
        while True:
            pass
"""
STATE = {"total": 1}


def tool(name: str, effect: Any = "update") -> ToolSpec:
    properties = {"by": {"type": "integer"}} if name == "add" else {}
    return ToolSpec(name=name, description=name, parameters={"type": "object", "properties": properties}, effect=effect)


async def chains(sandbox: Sandbox, count: int) -> tuple[Sessions, list[Chain]]:
    sessions = Sessions(sandbox, Program(SOURCE, "Counter"), STATE)
    beginning, digest = await sessions.beginning()
    return sessions, [Chain(sessions, beginning, digest) for _ in range(count)]


@asynccontextmanager
async def alone(limits: Limits | None = None) -> AsyncIterator[tuple[Chain, Session]]:
    """One chain, and the session in which it is to be repeated."""
    async with Sandbox(limits) as sandbox:
        sessions, (chain,) = await chains(sandbox, 1)
        async with sessions, sessions.apart() as again:
            yield chain, again


async def added(chain: Chain, number: int, by: int) -> Any:
    return (await chain.call(number, tool("add"), ToolCall(name="add", arguments={"by": by}))).outcome.result


@pytest.mark.anyio
async def test_chains_side_by_side_see_nothing_of_each_other_and_need_few_workers() -> None:
    async with Sandbox() as sandbox:
        sessions, made = await chains(sandbox, 12)
        most = 0

        async def play(index: int) -> list[Any]:
            nonlocal most
            totals = []
            for number in range(5):
                totals.append((await added(made[index], number, index))["total"])
                most = max(most, len(sandbox.fleet.live))
            return totals

        async with sessions:
            found = await asyncio.gather(*map(play, range(12)))
            assert [chain.state for chain in made] == [{"total": 1 + 5 * index} for index in range(12)]
        assert found == [[1 + index * (number + 1) for number in range(5)] for index in range(12)]
        assert most <= 2
        await asyncio.sleep(0)
        assert not sandbox.fleet.live


@pytest.mark.anyio
async def test_calls_repeat_where_all_that_they_live_on_is_the_state() -> None:
    async with alone() as (chain, again):
        for number in range(7):
            if number % 3 == 2:
                await chain.call(number, tool("draw", "query"), ToolCall(name="draw", arguments={}))
            else:
                await added(chain, number, number)
        assert await chain.repeat(again) == {}


@pytest.mark.anyio
async def test_a_tool_that_counts_outside_the_state_is_found_from_its_second_call_on() -> None:
    async with alone() as (chain, again):
        for number in range(3):
            await chain.call(number, tool("ask", "query"), ToolCall(name="ask", arguments={}))
        found = await chain.repeat(again)
    assert {number: finding.oracle for number, finding in found.items()} == {
        1: "nondeterministic",
        2: "nondeterministic",
    }


@pytest.mark.anyio
async def test_a_chain_goes_on_from_the_last_state_that_it_can_go_on_from() -> None:
    async with alone() as (chain, again):
        await added(chain, 0, 4)
        assert await added(chain, 1, 995) == {"success": True, "total": 1000}
        assert await added(chain, 2, 1) == {"success": True, "total": 6}
        assert await added(chain, 3, 1) == {"success": True, "total": 7}
        found = await chain.repeat(again)
    assert {number: finding.oracle for number, finding in found.items()} == {1: "not_restorable"}


@pytest.mark.anyio
async def test_the_last_state_of_a_chain_is_one_to_go_on_from_too() -> None:
    async with alone() as (chain, again):
        await added(chain, 5, 999)
        found = await chain.repeat(again)
    assert {number: finding.oracle for number, finding in found.items()} == {5: "not_restorable"}


@pytest.mark.anyio
async def test_a_call_that_does_not_come_back_is_not_made_again() -> None:
    async with alone(Limits(cpu_s=1.0)) as (chain, again):
        examined = await chain.call(0, tool("hang", "query"), ToolCall(name="hang", arguments={}))
        assert examined.hung
        assert await added(chain, 1, 1) == {"success": True, "total": 2}
        before = again.worker
        assert await chain.repeat(again) == {}
        assert again.worker is before


@pytest.mark.anyio
async def test_a_program_that_cannot_be_built_from_its_own_beginning_is_refused() -> None:
    async with Sandbox() as sandbox:
        sessions = Sessions(sandbox, Program(SOURCE, "Counter"), {"total": 1000})
        async with sessions:
            with pytest.raises(ProgramError, match="AssertionError"):
                await sessions.beginning()
