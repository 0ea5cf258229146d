from __future__ import annotations

import pytest
from env.lending import scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.agents import STOP_TOKEN, UserSimulator
from envscaler.agents.user import parse_user_turn
from envscaler.errors import ReplyError
from envscaler.llm.scripted import ScriptedModel
from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.roles.role import Prompts
from envscaler.roles.types import UserTurnInputs

SCENARIO = scenario(skeleton())
TEXT = st.text().filter(lambda text: "#" not in text)


@given(TEXT, TEXT)
def test_stop_token_is_found_wherever_it_stands(before: str, after: str) -> None:
    turn = parse_user_turn(f"{before} {STOP_TOKEN}\n{after}")
    assert turn.stopped
    assert turn.text == before.strip()


@given(TEXT)
def test_text_without_token_goes_on(text: str) -> None:
    turn = parse_user_turn(text)
    assert not turn.stopped
    assert turn.text == text.strip()


@pytest.mark.parametrize("token", ["### STOP ###", "###stop###", "Thanks!###STOP###", "##STOP##"])
def test_stop_token_is_recognized_as_models_write_it(token: str) -> None:
    assert parse_user_turn(token).stopped


def test_word_stop_alone_stops_nothing() -> None:
    assert not parse_user_turn("Please stop the delivery. # STOP").stopped


@pytest.mark.anyio
async def test_user_hears_only_what_was_said_to_it() -> None:
    model = ScriptedModel({"user_turn": "For Ann."}, name="u")
    user = UserSimulator(model, SCENARIO, prompts=Prompts(), sample=2)
    conversation: list[Message] = [
        SystemMessage(content="secret"),
        UserMessage(content="Hello"),
        AssistantMessage(content="looking", tool_calls=(ToolCall(name="find_books", id="c"),)),
        ToolMessage(content="hidden", tool_call_id="c", name="find_books"),
        AssistantMessage(content="For whom?", reasoning="hm"),
    ]
    assert (await user.speak(conversation)).text == "For Ann."
    (request,) = model.requests
    inputs = request.inputs
    assert isinstance(inputs, UserTurnInputs)
    assert [message.content for message in inputs.transcript] == ["Hello", "For whom?"]
    assert inputs.stop_token == STOP_TOKEN
    assert request.sample == (2, 0)
    assert user.use.calls == 1


@pytest.mark.anyio
async def test_user_that_stops_before_it_began_is_asked_again() -> None:
    model = ScriptedModel({"user_turn": [STOP_TOKEN, "I need a book."]})
    user = UserSimulator(model, SCENARIO, prompts=Prompts())
    assert (await user.speak(())).text == "I need a book."
    assert user.use.calls == 2


@pytest.mark.anyio
async def test_user_without_a_usable_message_is_a_failure_of_its_own() -> None:
    user = UserSimulator(ScriptedModel({"user_turn": ""}), SCENARIO, prompts=Prompts())
    with pytest.raises(ReplyError):
        await user.speak(())
