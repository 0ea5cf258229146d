"""A run in the dialect that its endpoint was found to speak."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rollout.test_over_http import models
from rollout.test_run import make_library
from servers.chat_server import ChatServer, refused, tool_call

from envscaler.errors import UsageError
from envscaler.rollout import RolloutSettings, run_replay, run_rollout
from envscaler.store import RunStore

LEND = '{"tool": "lend_book", "arguments": {"book_id": "B1", "member": "Ann"}}'


def small_server(body: Mapping[str, Any]) -> str:
    """Takes tools and gives text; keeps to a schema."""
    if "response_format" not in body:
        return "I would look it up."
    if body["messages"][-1]["content"].startswith("Result of"):
        return '{"final_answer": "Emma is lent."}'
    if body["messages"][0]["role"] == "system":
        return LEND
    return '{"tool": "look_up_weather", "arguments": {"city": "Oslo"}}'


@pytest.mark.anyio
async def test_what_was_found_out_is_recorded_and_asked_once(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1, scenarios=2)
    settings = RolloutSettings(dialect="auto")
    with ChatServer(small_server) as server:
        async with models(server) as opened:
            report = await run_rollout(library, settings, opened)
        served = server.served
        async with models(server) as opened:
            again = await run_rollout(library, settings, opened)
        assert server.served == served == 2 + 4
    assert (again.played, again.resumed, again.run) == (0, 2, report.run)
    assert report.record.settings.dialect == "schema"
    assert "agent.tools.schema" in report.record.prompts
    assert {trajectory.dialect for trajectory in RunStore(report.run).trajectories()} == {"schema"}
    assert report.scores.solved_rate == 1.0


@pytest.mark.anyio
async def test_a_run_is_not_gone_on_with_in_another_dialect(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1, scenarios=1)
    with ChatServer(small_server) as server:
        async with models(server) as opened:
            await run_rollout(library, RolloutSettings(dialect="schema", out=tmp_path / "run"), opened)
            with pytest.raises(UsageError, match="dialect"):
                await run_rollout(library, RolloutSettings(dialect="hermes", out=tmp_path / "run"), opened)
            gone_on = await run_rollout(library, RolloutSettings(dialect="auto", out=tmp_path / "run"), opened)
    assert (gone_on.resumed, gone_on.played) == (1, 0)


def test_agents_without_a_model_have_no_dialect_to_pin() -> None:
    plain, other = RolloutSettings(agent="oracle"), RolloutSettings(agent="oracle", dialect="hermes", on_slip="stop")
    assert plain.pins() == other.pins()
    assert RolloutSettings().pins() != RolloutSettings(on_slip="stop").pins()


@pytest.mark.anyio
async def test_reasoning_goes_back_to_an_endpoint_until_it_refuses_it(tmp_path: Path) -> None:
    def answer(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
        if any(message["role"] == "tool" for message in body["messages"]):
            return "Emma is lent."
        call = tool_call("lend_book", {"book_id": "B1", "member": "Ann"})
        return {"content": None, "reasoning_content": "B1 is Emma.", "tool_calls": [call]}

    def refusing(index: int, body: Mapping[str, Any]) -> Any:
        sent = any("reasoning_content" in message for message in body["messages"])
        return refused(400, "property 'reasoning_content' is unsupported") if sent else None

    for name, faults in (("takes", lambda index, body: None), ("refuses", refusing)):
        library = make_library(tmp_path / name, environments=1, scenarios=2)
        with ChatServer(answer, faults=faults) as server:
            async with models(server) as opened:
                report = await run_rollout(library, RolloutSettings(concurrency=1), opened)
        assert report.scores.solved_rate == 1.0
        sent = [any("reasoning_content" in message for message in body["messages"]) for body in server.requests]
        assert sent.count(True) == (2 if name == "takes" else 1)


@pytest.mark.anyio
async def test_calls_that_were_answered_without_being_made_are_not_made_by_replay(tmp_path: Path) -> None:
    lend = tool_call("lend_book", {"book_id": "B2", "member": "Bo"})
    replies: list[Mapping[str, Any]] = [
        {"content": None, "tool_calls": [tool_call("lend_book", {"book_id": "B1", "member": "Ann"}), lend]},
        {"content": None, "tool_calls": [tool_call("lend_book", '{"book_id": "B'), lend]},
    ]

    def answer(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
        turn = sum(message["role"] == "assistant" for message in body["messages"])
        return replies[turn] if turn < len(replies) else "Emma is lent."

    library = make_library(tmp_path / "L", environments=1, scenarios=1)
    with ChatServer(answer) as server:
        async with models(server) as opened:
            report = await run_rollout(library, RolloutSettings(parallel_calls=False), opened)
    assert report.scores.solved_rate == 1.0
    (trajectory,) = RunStore(report.run).trajectories()
    assert [seen.is_error for step in trajectory.steps for seen in step.observations] == [False, True, True, True]
    (again,) = (await run_replay(library, Path(report.run))).episodes
    assert again.reward_equal
    assert (again.observations, again.observations_equal) == (1, 1)
