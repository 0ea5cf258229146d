from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from envscaler.agents import ModelAgent
from envscaler.bench.crew import Crew
from envscaler.bench.installation import Installation
from envscaler.bench.world import BenchWorld
from envscaler.errors import SandboxError
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.rollout import play
from envscaler.rollout.world import TurnRules
from envscaler.trajectory import StopReason, Trajectory

DIM = ("dim", {"lamp": "desk", "level": 7})
HALL = ("dim", {"lamp": "hall", "level": 1})
NOTE = ("note", {"text": "dark"})


@pytest.fixture
async def crew(lamps: Installation) -> AsyncIterator[Crew]:
    async with lamps.crew() as opened:
        yield opened


def calls(*called: tuple[str, dict[str, Any]]) -> AssistantMessage:
    return AssistantMessage(tool_calls=tuple(ToolCall(name=name, arguments=given) for name, given in called))


def world(lamps: Installation, crew: Crew, task: str, *, withheld: str = "refuse", call_s: float = 20.0) -> BenchWorld:
    (found,) = (one for one in lamps.installed.tasks if one.id == f"multi_turn_{task}")
    rules = TurnRules(steps=lamps.installed.steps, empty_replies=True)
    return BenchWorld("bfcl", "v", found, crew, rules=rules, options={"withheld": withheld}, call_s=call_s)


async def played(
    lamps: Installation, crew: Crew, task: str, *replies: Scripted, withheld: str = "refuse", call_s: float = 20.0
) -> Trajectory:
    agent = ModelAgent(ScriptedModel({"agent_turn": list(replies)}, name="m"))
    return await play(world(lamps, crew, task, withheld=withheld, call_s=call_s), agent, step_limit=40)


def runs(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody asked about does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def observed(trajectory: Trajectory) -> list[str]:
    return [seen.content for step in trajectory.steps for seen in step.observations]


@pytest.mark.anyio
async def test_an_episode_goes_through_all_messages_and_is_judged_by_the_benchmarks_checker(
    lamps: Installation, crew: Crew
) -> None:
    trajectory = await played(lamps, crew, "base_0", calls(DIM), "Done.", calls(HALL), "Done.")
    assert trajectory.stop == StopReason.FINISHED
    assert [step.user.content for step in trajectory.steps if step.user is not None] == ["Desk to 7.", "Hall to 1."]
    assert trajectory.scores == {"official": 1.0, "recorded.raised": 0.0, "recorded.failed": 0.0}
    assert trajectory.reward("solved") == 1.0
    assert trajectory.system_prompt == ""
    wrong = await played(lamps, crew, "base_0", calls(DIM), "Done.", calls(DIM), "Done.")
    assert wrong.scores["official"] == 0.0
    assert wrong.verdict is not None
    assert "another state in turn 1" in wrong.verdict.checks[0].description


@pytest.mark.anyio
async def test_nothing_of_an_episode_is_left_to_the_next_one(lamps: Installation, crew: Crew) -> None:
    look = calls(("list_lamps", {}))
    first = await played(lamps, crew, "base_0", look, calls(HALL), look, "Done.", "Done.")
    second = await played(lamps, crew, "base_0", look, "Done.", "Done.")
    # The small benchmark counts its calls for all instances of a process together.
    assert observed(first)[0] == observed(second)[0] == '{"lamps": {"desk": 0, "hall": 5}, "calls": 1}'
    assert '"calls": 2' in observed(first)[2]


@pytest.mark.anyio
async def test_a_function_that_is_not_there_yet_is_refused_and_counted(lamps: Installation, crew: Crew) -> None:
    early = (calls(NOTE), "Done.", calls(("dim", {})), "Done.", calls(HALL), "Done.")
    refused = await played(lamps, crew, "miss_func_0", *early)
    assert "there is no tool named 'note'" in observed(refused)[0]
    assert observed(refused)[0].endswith("the tools are: dim, list_lamps")
    assert refused.scores["violation.withheld_tool"] == 1.0
    assert refused.scores["official"] == 0.0
    taken = await played(lamps, crew, "miss_func_0", *early, withheld="execute")
    assert taken.scores["official"] == 1.0  # acting early and then failing once is enough for the checker
    assert taken.scores["violation.withheld_tool"] == 1.0


@pytest.mark.anyio
async def test_a_held_back_function_is_shown_from_its_turn_on(lamps: Installation, crew: Crew) -> None:
    place = world(lamps, crew, "miss_func_0")
    await place.open()
    assert "note" not in {tool.name for tool in place.tools(0)}
    announced = await place.next_turn([AssistantMessage(content="I cannot.")])
    assert getattr(announced, "content", None) == "There are more functions now."
    assert place.tools(1)[-1].name == "note"
    assert place.tools(1)[-1].parameters["type"] == "object"
    await place.close()


@pytest.mark.anyio
async def test_guessing_what_was_not_told_is_counted_and_looking_around_is_not(lamps: Installation, crew: Crew) -> None:
    guessed = await played(lamps, crew, "miss_param_0", calls(DIM), "Done.", calls(("x", {})), "Done.", calls(HALL), "")
    assert guessed.scores["violation.acted_early"] == 1.0
    assert guessed.scores["official"] == 1.0
    looked = await played(
        lamps, crew, "miss_param_0", calls(("list_lamps", {})), "How far?", calls(DIM), "Done.", calls(HALL), "Done."
    )
    assert looked.scores["official"] == 1.0
    assert "violation.acted_early" not in looked.scores


@pytest.mark.anyio
async def test_a_tool_that_was_made_up_costs_no_episode(lamps: Installation, crew: Crew) -> None:
    made_up = calls(("__import__", {"name": "os"}), ("open", {"a b": "c"}))
    trajectory = await played(lamps, crew, "base_0", made_up, calls(DIM), "Done.", calls(HALL), "Done.")
    assert trajectory.scores["violation.unknown_tool"] == 2.0
    assert trajectory.scores["official"] == 1.0
    only = await played(lamps, crew, "base_0", made_up, "Done.", made_up, "Done.")
    assert only.scores["official"] == 0.0
    assert only.verdict is not None


@pytest.mark.anyio
async def test_a_call_that_ends_its_process_or_the_patience_leaves_the_rest_as_it_was(
    lamps: Installation, crew: Crew
) -> None:
    bad = calls(("note", {"text": "fall over"}), ("note", {"text": "take forever"}))
    trajectory = await played(lamps, crew, "base_0", calls(DIM), bad, "Done.", calls(HALL), "Done.", call_s=3.0)
    faults = [seen.fault for step in trajectory.steps for seen in step.observations]
    assert faults == [None, "killed", "timeout", None]
    assert trajectory.scores["official"] == 1.0


@pytest.mark.anyio
async def test_a_lost_session_is_made_anew_and_no_score_of_zero(lamps: Installation, crew: Crew) -> None:
    place = world(lamps, crew, "base_0")
    await place.open()
    await place.call(ToolCall(name=DIM[0], arguments=DIM[1]))
    before = place.state_digest
    assert place._session is not None
    os.kill(place._session.pid, signal.SIGKILL)
    await place.next_turn([AssistantMessage(content="Done.")])
    assert place.state_digest == before
    await place.call(ToolCall(name=HALL[0], arguments=HALL[1]))
    assert (await place.score()).scores["official"] == 1.0
    await place.close()
    await place.close()


@pytest.mark.anyio
async def test_the_process_that_sessions_come_from_may_die(lamps: Installation, crew: Crew) -> None:
    await (await crew.open()).close()
    assert crew._process is not None
    os.kill(crew._process.pid, signal.SIGKILL)
    session = await crew.open()
    assert (await session.ask("describe"))["version"] == "0.1"
    await session.close()


@pytest.mark.anyio
async def test_a_turn_ends_with_an_empty_reply_and_the_episode_with_too_many_steps(
    lamps: Installation, crew: Crew
) -> None:
    empty = await played(lamps, crew, "base_0", calls(DIM), "", calls(HALL), "")
    assert empty.stop == StopReason.FINISHED
    assert empty.scores["official"] == 1.0
    look = calls(("list_lamps", {}))
    endless = await played(lamps, crew, "base_0", calls(DIM), *[look] * 9)
    assert endless.stop == StopReason.STEP_LIMIT
    assert len(endless.steps) == 5
    assert endless.scores["official"] == 0.0


@pytest.mark.anyio
async def test_any_text_comes_into_the_benchmark_and_back(lamps: Installation, crew: Crew) -> None:
    text = "dim(x) note (y) \"q\" 'p' \\ \n 電燈 {'a': 1}"
    given = {"text": text, "tags": {"a (b)": [None, True, "dim (z)"]}}
    place = world(lamps, crew, "base_1")
    await place.open()
    seen = await place.call(ToolCall(name="note", arguments=given))
    assert seen.content == '{"notes": 1}'
    session = place._session
    assert session is not None
    answer = await session.ask("call", name="note", arguments={"text": text, "no such": 1})
    assert answer["raised"]
    await place.close()


@pytest.mark.anyio
async def test_a_benchmark_that_cannot_be_started_is_infrastructure_and_no_score(lamps: Installation) -> None:
    async with Crew(Path("/nowhere/python"), "bfcl", {}) as broken:
        trajectory = await played(lamps, broken, "base_0", calls(DIM), "Done.")
    assert trajectory.stop == StopReason.INFRASTRUCTURE
    assert trajectory.verdict is None
    assert trajectory.scores == {}
    async with Crew(Path(sys.executable), "bfcl", {}) as without:
        with pytest.raises(SandboxError, match="bfcl_eval"):
            await without.open()


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
async def test_a_call_that_does_not_end_ends_with_the_process_that_sessions_come_from(lamps: Installation) -> None:
    async with lamps.crew() as opened:
        session = await opened.open()
        await session.ask("open", task="multi_turn_base_0", options={"withheld": "refuse"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await session.ask("call", name="note", arguments={"text": "take forever"})
    for _ in range(100):
        if not runs(session.pid):
            return
        await asyncio.sleep(0.1)
    pytest.fail("it lives on")
