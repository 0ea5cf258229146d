from __future__ import annotations

import asyncio

import pytest
from env.lending import scenario, skeleton

from envscaler.env import AsyncToolEnv, ResetChecks
from envscaler.errors import SandboxError
from envscaler.messages import ToolCall
from envscaler.sandbox import CheckOutcome, Sandbox
from envscaler.trajectory import Verdict

LEND = ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"})


@pytest.mark.anyio
async def test_an_episode_goes_from_task_to_reward() -> None:
    environment = skeleton()
    async with Sandbox() as sandbox, AsyncToolEnv(environment, scenario(environment), sandbox, max_steps=5) as env:
        task, _ = await env.reset()
        assert task == "Lend Emma to Ann."
        assert not (await env.step(LEND))[4]["is_error"]
        async with await env.fork() as twin:
            assert (await twin.verify()).solved
        assert (await env.step("Done."))[1] == 1.0
        moment = await env.snapshot()
        await env.reset()
        await env.restore(moment)
        assert (await env.verify()).solved


@pytest.mark.anyio
async def test_episodes_side_by_side_share_nothing() -> None:
    environment = skeleton()
    remembered = ResetChecks()

    async def play(sandbox: Sandbox, lends: bool) -> Verdict:
        async with AsyncToolEnv(environment, scenario(environment), sandbox, reset_checks=remembered) as env:
            await env.reset()
            for _ in range(3):
                await env.call("find_books", {})
                await asyncio.sleep(0)
            if lends:
                await env.carry_out(LEND)
            return await env.verify()

    async with Sandbox() as sandbox:
        verdicts = await asyncio.gather(*(play(sandbox, number % 2 == 0) for number in range(16)))
    assert [verdict.solved for verdict in verdicts] == [number % 2 == 0 for number in range(16)]
    assert all(check.held_at_reset is not None for verdict in verdicts for check in verdict.checks)


@pytest.mark.anyio
async def test_the_checks_of_a_reset_are_run_once_for_all_who_ask_at_the_same_time() -> None:
    remembered, asked = ResetChecks(), 0

    async def look() -> tuple[CheckOutcome, ...]:
        nonlocal asked
        asked += 1
        await asyncio.sleep(0)
        return (CheckOutcome(True, None, False),)

    played = scenario(skeleton())
    found = await asyncio.gather(*(remembered.found(played, "d", look) for _ in range(5)))
    assert (asked, set(found)) == (1, {(CheckOutcome(True, None, False),)})
    await remembered.found(played, "another state", look)
    assert asked == 2

    async def fails() -> tuple[CheckOutcome, ...]:
        raise SandboxError("lost")

    for attempt in (fails, fails):
        with pytest.raises(SandboxError):
            await remembered.found(played, "third", attempt)
    assert await remembered.found(played, "third", look) == (CheckOutcome(True, None, False),)
