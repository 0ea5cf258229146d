"""Models of an episode that goes on after a kill: asked for what was not answered, and for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.rollout.recall import EpisodeReplies
from envscaler.store import ReplyJournal

pytestmark = pytest.mark.anyio


def counted(request: ModelRequest) -> Scripted:
    arguments = {"n": len(request.messages), "text": "half a pair \ud800"}
    return AssistantMessage(content="é", reasoning="why", tool_calls=(ToolCall(name="t", arguments=arguments, id="c"),))


def replies(folder: Path, reused: list[str], episode: str = "e") -> EpisodeReplies:
    journal = ReplyJournal(folder)
    journal.load(lambda _: True)
    return EpisodeReplies(journal, episode, lambda role, completion: reused.append(role))


async def played(
    model: ScriptedModel, episode: EpisodeReplies, turns: int, *, seen: str = "seen \ud800", user: bool = False
) -> list[Completion]:
    """A conversation in which every reply is followed by an observation."""
    agent, other = episode.model(model), episode.model(model)
    conversation: list[Message] = [SystemMessage(content="s"), UserMessage(content="u")]
    said = []
    for turn in range(turns):
        said.append(await agent.complete(ModelRequest(role="agent_turn", messages=tuple(conversation))))
        conversation += [said[-1].message, ToolMessage(content=f"{seen} {turn}", tool_call_id="c", name="t")]
        if user:
            said.append(
                await other.complete(ModelRequest(role="user_turn", messages=(UserMessage(content=str(turn)),)))
            )
    return said


@pytest.mark.parametrize("user", [False, True])
async def test_what_was_answered_is_not_asked_again(tmp_path: Path, user: bool) -> None:
    model, reused = ScriptedModel(counted), list[str]()
    first = await played(model, replies(tmp_path / "r", reused), 3, user=user)
    assert reused == []
    again = ScriptedModel(counted)
    whole = await played(again, replies(tmp_path / "r", reused), 5, user=user)
    assert whole[: len(first)] == first
    assert len(again.requests) == len(whole) - len(first)
    assert len(reused) == len(first)
    last = ScriptedModel(counted)
    assert await played(last, replies(tmp_path / "r", reused), 5, user=user) == whole
    assert last.requests == []


async def test_another_observation_is_answered_anew_and_from_then_on_that_counts(tmp_path: Path) -> None:
    reused: list[str] = []
    await played(ScriptedModel(counted), replies(tmp_path / "r", reused), 4)
    other = ScriptedModel(counted)
    await played(other, replies(tmp_path / "r", reused), 4, seen="something else")
    assert len(other.requests) == 3  # the first question was the same
    last = ScriptedModel(counted)
    await played(last, replies(tmp_path / "r", reused), 4, seen="something else")
    assert last.requests == []


async def test_other_episodes_and_other_samples_have_replies_of_their_own(tmp_path: Path) -> None:
    reused: list[str] = []
    await played(ScriptedModel(counted), replies(tmp_path / "r", reused), 2)
    other = ScriptedModel(counted)
    await played(other, replies(tmp_path / "r", reused, "f"), 2)
    assert len(other.requests) == 2
    asked = ScriptedModel(counted)
    model = replies(tmp_path / "r", reused).model(asked)
    messages = (SystemMessage(content="s"), UserMessage(content="u"))
    await model.complete(ModelRequest(role="agent_turn", messages=messages, sample=(0, 1)))
    assert len(asked.requests) == 1
    assert (model.name, reused) == ("scripted", [])
