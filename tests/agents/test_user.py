from __future__ import annotations

import pytest
from env.lending import scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.agents import STOP_TOKEN, SlipPolicy, UserInstructions, UserSimulator
from envscaler.agents.user import parse_user_turn
from envscaler.errors import ReplyError
from envscaler.llm.scripted import ScriptedModel
from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.roles.role import Prompts
from envscaler.roles.types import PlayUserInputs, UserTurnInputs
from envscaler.skeleton import ToolSpec

SCENARIO = scenario(skeleton())
TEXT = st.text().filter(lambda text: "#" not in text)


@given(TEXT, TEXT)
def test_stop_token_is_found_wherever_it_stands(before: str, after: str) -> None:
    turn = parse_user_turn(f"{before}. {STOP_TOKEN}\n{after}")
    assert turn.stopped
    assert turn.text == f"{before}.".strip()


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


HELLO, ALL_AT_ONCE = "Hello, I need a book.", "Please lend Emma to Ann."


def simulator(*replies: str | AssistantMessage, slips: SlipPolicy) -> tuple[UserSimulator, ScriptedModel]:
    model = ScriptedModel({"user_turn": list(replies)}, name="u")
    return UserSimulator(model, SCENARIO, prompts=Prompts(), slips=slips), model


@pytest.mark.anyio
async def test_kept_slips_are_counted_and_nothing_else() -> None:
    user, model = simulator(ALL_AT_ONCE, slips="keep")
    assert (await user.speak(())).text == ALL_AT_ONCE
    assert len(model.requests) == 1
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("tells_everything", False)]
    assert user.masked is None


@pytest.mark.anyio
async def test_model_that_slipped_is_told_the_fault_and_asked_again() -> None:
    user, model = simulator(ALL_AT_ONCE, HELLO, slips="mask")
    assert (await user.speak(())).text == HELLO
    assert "everything at once" in model.requests[1].messages[-1].content
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("tells_everything", True)]
    assert user.record.utterances[0].text == HELLO
    assert user.use.calls == 2
    assert user.masked is None


@pytest.mark.anyio
@pytest.mark.parametrize(("policy", "masks"), [("retry", False), ("mask", True)])
async def test_what_slips_all_the_same_is_played_and_masks_the_episode_where_asked(
    policy: SlipPolicy, masks: bool
) -> None:
    user, model = simulator(*[ALL_AT_ONCE] * 3, slips=policy)
    assert (await user.speak(())).text == ALL_AT_ONCE
    assert len(model.requests) == 3
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("tells_everything", False)]
    assert (user.masked is not None) == masks
    if user.masked is not None:
        assert "message 1: tells_everything" in user.masked


@pytest.mark.anyio
async def test_first_mask_stands_whatever_follows() -> None:
    user, _ = simulator(*[ALL_AT_ONCE] * 3, "The number is 555-0182.", HELLO, slips="mask")
    await user.speak(())
    before = user.masked
    await user.speak((UserMessage(content=ALL_AT_ONCE), AssistantMessage(content="Which number?")))
    assert user.masked == before


@pytest.mark.anyio
async def test_conversation_that_the_user_does_not_end_is_ended_for_it() -> None:
    chat: list[Message] = [UserMessage(content=ALL_AT_ONCE), AssistantMessage(content="Done.")]
    for said in ("Thank you!", "Thanks again, bye!"):
        chat += [UserMessage(content=said), AssistantMessage(content="You are welcome.")]
    kept, _ = simulator("Bye, thanks!", slips="keep")
    assert not (await kept.speak(chat)).stopped
    user, model = simulator(*["Bye, thanks!"] * 3, slips="mask")
    assert (await user.speak(chat)).stopped
    assert len(model.requests) == 3
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("never_stops", True)]
    assert user.masked is None


@pytest.mark.anyio
async def test_user_that_stops_too_early_goes_on_when_told() -> None:
    chat = (UserMessage(content="Lend Emma to somebody."), AssistantMessage(content="Done."))
    user, model = simulator(STOP_TOKEN, "It is for Ann.", slips="retry")
    turn = await user.speak(chat)
    assert (turn.text, turn.stopped) == ("It is for Ann.", False)
    assert "For Ann." in model.requests[1].messages[-1].content


@pytest.mark.anyio
async def test_reasoning_is_kept_apart_and_is_nothing_that_was_said() -> None:
    reply = AssistantMessage(content=f"<think>write {STOP_TOKEN}?</think>{HELLO}", reasoning="my part")
    user, _ = simulator(reply, slips="mask")
    turn = await user.speak(())
    assert (turn.text, turn.stopped) == (HELLO, False)
    (utterance,) = user.record.utterances
    assert utterance.reasoning == f"my part\nwrite {STOP_TOKEN}?"
    assert utterance.text == reply.content


@pytest.mark.anyio
async def test_reply_of_reasoning_alone_is_asked_for_again_under_every_policy() -> None:
    user, _ = simulator("<think>nothing to say", HELLO, slips="keep")
    assert (await user.speak(())).text == HELLO
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("empty", True)]


@pytest.mark.anyio
async def test_label_of_the_own_role_and_the_assistants_turn_are_cut_off() -> None:
    user, model = simulator("You: Hello, I need a book.\nAssistant: Which one?", slips="mask")
    assert (await user.speak(())).text == HELLO
    assert len(model.requests) == 1
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("speaks_as_agent", True)]
    assert user.masked is None


@pytest.mark.anyio
async def test_user_that_goes_in_circles_before_all_is_told_is_not_stopped() -> None:
    said = "Can you lend me something?"
    chat: list[Message] = []
    for _ in range(2):
        chat += [UserMessage(content=said), AssistantMessage(content="What exactly?")]
    user, _ = simulator(*[said] * 3, slips="mask")
    assert not (await user.speak(chat)).stopped
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("never_stops", False)]
    assert user.masked is not None


PHONE = ToolSpec(name="look", description="Looks at the phone.", parameters={"type": "object"}, effect="query")
PART = UserInstructions(
    text="Your phone (555-0199) has no signal. If told to switch it off, refuse. Your name is Ann Lee.",
    greeting="Hello!",
    tools=(PHONE,),
)


def instructed(*replies: str, slips: SlipPolicy = "retry") -> tuple[UserSimulator, ScriptedModel]:
    model = ScriptedModel({"play_user": list(replies)}, name="u")
    return UserSimulator(model, PART, prompts=Prompts(), slips=slips), model


@pytest.mark.anyio
async def test_an_instructed_user_does_something_itself_and_only_it_sees_what_came_of_it() -> None:
    call = 'Let me look.\n```json\n{"name": "look", "arguments": {}}\n```'
    user, model = instructed("No signal.", call, "It says 17 bars.", STOP_TOKEN)
    conversation: list[Message] = [UserMessage(content=(await user.speak(())).text)]
    conversation.append(AssistantMessage(content="What does it show?"))
    turn = await user.speak(conversation)
    assert turn.call == ToolCall(name="look")
    user.saw(conversation, ToolMessage(content="17 bars", tool_call_id="", name="look"))
    assert (await user.speak(conversation)).text == "It says 17 bars."
    conversation += [UserMessage(content="It says 17 bars."), AssistantMessage(content="Then it works.")]
    assert (await user.speak(conversation)).stopped
    inputs = model.requests[-1].inputs
    assert isinstance(inputs, PlayUserInputs)
    assert [line.speaker for line in inputs.transcript] == ["user", "assistant", "user", "tool", "user", "assistant"]
    assert inputs.transcript[3].text == "17 bars"
    assert [said.observation is not None for said in user.record.utterances] == [False, True, False, False]
    assert user.record.slips == ()  # 17 was shown to it, and nothing of its part has to be told


@pytest.mark.anyio
async def test_an_instructed_user_that_invents_or_does_what_it_cannot_is_asked_again() -> None:
    user, model = instructed("My number is 555-0100.", '{"name": "restart", "arguments": {}}', "No signal here.")
    assert (await user.speak(())).text == "No signal here."
    assert len(model.requests) == 3
    assert "nothing named 'restart'" in model.requests[-1].messages[-1].content
    assert [(slip.kind, slip.repaired) for slip in user.record.slips] == [("invents", True)]


@pytest.mark.anyio
async def test_json_of_a_user_without_tools_is_only_text() -> None:
    model = ScriptedModel({"play_user": 'It shows {"name": "look"} there.'})
    user = UserSimulator(model, PART.model_copy(update={"tools": ()}), prompts=Prompts(), slips="keep")
    assert (await user.speak(())).call is None
