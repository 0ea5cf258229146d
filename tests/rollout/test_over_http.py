"""Rollouts with a model behind a server that fails: no episode is lost, doubled or scored falsely."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from rollout.test_run import keys, make_library
from servers.chat_server import EVERY_FAULT, TRANSPORT_FAULTS, ChatServer, Fault, at_random, tool_call

from envscaler.llm.transport import RetryPolicy
from envscaler.models import Models, ModelSettings, open_models
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import RunStore
from envscaler.trajectory import StopReason

QUICK = RetryPolicy(base_s=0.001, cap_s=0.01, attempts=30)


def lends(body: Mapping[str, Any]) -> str | Mapping[str, Any]:
    """Lends Emma; a first call has broken arguments, and an error is answered by another try."""
    observations = [message["content"] for message in body["messages"] if message["role"] == "tool"]
    if not observations:
        return {"content": None, "tool_calls": [tool_call("lend_book", '{"book_id": "B1", "member": ')]}
    if observations[-1].startswith("Error"):
        arguments = {"book_id": "B1", "member": "Ann"}
        return {"content": None, "reasoning_content": "again", "tool_calls": [tool_call("lend_book", arguments)]}
    return "Emma is lent."


def models(server: ChatServer) -> Models:
    return open_models(ModelSettings(model="test-model", base_url=server.base_url), retry=QUICK)


@pytest.mark.anyio
async def test_faults_of_the_transport_change_no_score(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    with ChatServer(lends, faults=at_random(0.3, kinds=TRANSPORT_FAULTS)) as server:
        async with models(server) as opened:
            report = await run_rollout(library, RolloutSettings(samples=4), opened)
    assert sum(server.injected.values()) > 10
    assert report.scores.stops == {"finished": 24}
    assert report.scores.solved_rate == 1.0
    assert report.scores.invalid_calls == 24
    assert len(keys(report.run)) == len(set(keys(report.run))) == 24
    use = report.scores.use
    assert use.calls == 24 * 3
    assert use.input_tokens > 0
    assert use.cost_usd is None


def every_fault() -> Iterable[Fault | None]:
    for fault in EVERY_FAULT:
        yield fault
        yield None


@pytest.mark.anyio
async def test_bad_replies_end_or_prolong_their_own_episode_only(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L")
    with ChatServer(lends, faults=every_fault()) as server:
        async with models(server) as opened:
            report = await run_rollout(library, RolloutSettings(samples=4), opened)
    assert set(server.injected) == {fault.name for fault in EVERY_FAULT}
    stored = list(RunStore(report.run).trajectories())
    assert len(stored) == 24
    assert set(report.scores.stops) <= {"finished", "invalid_action"}
    for trajectory in stored:
        assert trajectory.verdict is not None
        assert (trajectory.stop == StopReason.INVALID_ACTION) == (trajectory.error is not None)
        # A reply that the server withheld is recorded as it came, and its calls are not carried out.
        for step in trajectory.steps[: -1 if trajectory.error is not None else None]:
            assert [call.id for call in step.assistant.tool_calls] == [seen.tool_call_id for seen in step.observations]
    assert report.scores.judged == 24


@pytest.mark.anyio
async def test_reasoning_is_kept_apart_from_what_was_said(tmp_path: Path) -> None:
    library = make_library(tmp_path / "L", environments=1, scenarios=1)
    with ChatServer(lends) as server:
        async with models(server) as opened:
            report = await run_rollout(library, RolloutSettings(), opened)
    (trajectory,) = RunStore(report.run).trajectories()
    assert trajectory.steps[0].assistant.tool_calls[0].malformed == '{"book_id": "B1", "member": '
    assert trajectory.steps[1].assistant.reasoning == "again"
    assert trajectory.steps[1].assistant.content == ""
    assert [message["role"] for message in server.requests[-1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    assert all("solution" not in str(body) for body in server.requests)
