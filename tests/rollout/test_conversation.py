"""Conversations as they are recorded: what the user said, what it slipped in, and which episodes do not count."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario, skeleton

from envscaler.agents import prompt_digest
from envscaler.env import Library, open_library
from envscaler.errors import UsageError
from envscaler.llm.chat import ModelRequest
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall, ToolMessage
from envscaler.models import Models, ModelSettings, open_models
from envscaler.roles.types import UserTurnInputs
from envscaler.rollout import RolloutReport, RolloutSettings, RunRecord, run_rollout
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import StopReason, Trajectory

pytestmark = pytest.mark.anyio

ALL_AT_ONCE = "Please lend Emma to Ann."


@pytest.fixture
def library(tmp_path: Path) -> Library:
    store = LibraryStore.create(tmp_path / "L")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment)])
    store.write_index({})
    return open_library(tmp_path / "L")


def agent(request: ModelRequest) -> Scripted:
    if any(isinstance(message, ToolMessage) for message in request.messages):
        return "Done."
    return AssistantMessage(tool_calls=(ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}),))


def hasty_user(request: ModelRequest) -> Scripted:
    """Tells everything with its first message, however often it is asked."""
    assert isinstance(request.inputs, UserTurnInputs)
    return AssistantMessage(content="###STOP###", reasoning="over") if request.inputs.transcript else ALL_AT_ONCE


def models() -> Models:
    return open_models(ModelSettings(), offline=ScriptedModel({"agent_turn": agent, "user_turn": hasty_user}, name="m"))


async def rolled_out(library: Library, **settings: Any) -> tuple[RolloutReport, Trajectory]:
    report = await run_rollout(library, RolloutSettings(mode="conversation", **settings), models())
    (trajectory,) = RunStore(report.run).trajectories()
    return report, trajectory


@pytest.mark.parametrize(("policy", "asked", "masked"), [("keep", 2, False), ("retry", 4, False), ("mask", 4, True)])
async def test_what_the_user_wrote_is_stored_beside_the_agents_part(
    library: Library, policy: Any, asked: int, masked: bool
) -> None:
    _, trajectory = await rolled_out(library, user_slips=policy)
    assert trajectory.stop == StopReason.USER_STOPPED
    assert trajectory.user is not None
    assert trajectory.user.model == "m"
    assert [said.text for said in trajectory.user.utterances] == [ALL_AT_ONCE, "###STOP###"]
    assert trajectory.user.utterances[1].reasoning == "over"
    assert [slip.kind for slip in trajectory.user.slips] == ["tells_everything"]
    assert trajectory.use["user_turn"].calls == asked
    assert (trajectory.masked is not None) == masked
    # Whatever the user does wrong costs the agent nothing.
    assert trajectory.reward("gained") == 1.0


async def test_episodes_without_a_user_have_no_record_of_one(library: Library) -> None:
    report = await run_rollout(library, RolloutSettings(agent="oracle"))
    (trajectory,) = RunStore(report.run).trajectories()
    assert (trajectory.user, trajectory.masked) == (None, None)


async def test_runs_of_another_policy_are_other_runs_and_are_not_mixed(library: Library, tmp_path: Path) -> None:
    (kept, _), (masked, _) = [await rolled_out(library, user_slips=policy) for policy in ("keep", "mask")]
    assert kept.run != masked.run
    with pytest.raises(UsageError, match="user_slips"):
        await rolled_out(library, user_slips="keep", out=masked.run)
    # It decides nothing where there is no user.
    alone = [RolloutSettings(user_slips=policy).pins() for policy in ("keep", "mask")]
    assert alone[0] == alone[1]


async def test_system_prompt_of_the_users_is_played_and_pinned_by_its_digest(library: Library, tmp_path: Path) -> None:
    file = tmp_path / "mine.md"
    file.write_text("Be brief.\n\n{{ doc }}", encoding="utf-8")
    settings = RolloutSettings(agent="oracle", system_prompt=file, out=tmp_path / "run")
    report = await run_rollout(library, settings)
    (trajectory,) = RunStore(report.run).trajectories()
    assert trajectory.system_prompt == f"Be brief.\n\n{skeleton().doc}"
    record = RunStore(report.run).read_run(RunRecord)
    assert record is not None
    assert record.prompts["agent.non-conversation"] != prompt_digest("non-conversation")
    await asyncio.to_thread(file.write_text, "Be longer.\n\n{{ doc }}", encoding="utf-8")
    with pytest.raises(UsageError, match="prompts"):
        await run_rollout(library, settings)


async def test_a_varied_oracle_is_another_run_than_a_plain_one(library: Library) -> None:
    runs = {
        style: (await run_rollout(library, RolloutSettings(agent="oracle", oracle=style, samples=4))).run
        for style in ("plain", "varied")
    }
    calls = {
        style: [sum(len(step.assistant.tool_calls) for step in part.steps) for part in RunStore(run).trajectories()]
        for style, run in runs.items()
    }
    assert calls["plain"] == [2, 2, 2, 2]
    assert calls["varied"][0] == 2
    assert min(calls["varied"][1:]) > 2
