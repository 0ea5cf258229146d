"""Conversations: the agent plays the solution, the user tells all, and both come to an end."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.interpret import interpret
from envscaler.offline.states import make_state
from envscaler.offline.tasks import write_task
from envscaler.offline.turns import agent_turn, user_turn
from envscaler.roles.types import AgentTurnInputs, UserTurnInputs, WriteTaskInputs, WriteTaskReply
from envscaler.scenario import Binding, SolutionCall, UserProfile
from envscaler.skeleton import EnvDescription
from envscaler.state import State

STOP = "###STOP###"
seeds = st.integers(0, 2_000)


def scenario_of(blueprint: Blueprint, seed: int) -> tuple[State, WriteTaskReply]:
    state = make_state(blueprint, seed=seed, index=0, purpose="scenario")
    inputs = WriteTaskInputs(
        description=EnvDescription(summary=blueprint.summary, introduction=blueprint.introduction),
        entities=(),
        rules=(),
        tools=(),
        state=state,
        clock=state["current_time"],
        index=0,
        seed=seed,
    )
    return state, write_task(blueprint, inputs)


def observation(blueprint: Blueprint, state: State, call_name: str, arguments: dict[str, object]) -> tuple[str, State]:
    operation = blueprint.operation(call_name)
    assert operation is not None
    prediction = interpret(blueprint, operation, state, arguments)
    return json.dumps({"success": prediction.success, "data": prediction.data}), prediction.state


def play(
    blueprint: Blueprint, state: State, reply: WriteTaskReply, *, conversation: bool
) -> tuple[list[Message], State]:
    """An episode between agent and user; fails if it does not end."""
    messages: list[Message] = [SystemMessage(content="Rules of the house.")]

    def user_says() -> bool:
        heard = tuple(
            message
            for message in messages
            if isinstance(message, UserMessage) or (isinstance(message, AssistantMessage) and not message.tool_calls)
        )
        said = user_turn(
            UserTurnInputs(
                task=reply.task,
                profile=reply.user_profile.told if reply.user_profile is not None else None,
                transcript=heard,
                stop_token=STOP,
            )
        ).text
        if said != STOP:
            messages.append(UserMessage(content=said))
        return said != STOP

    if conversation:
        assert user_says()
    else:
        messages.append(UserMessage(content=reply.task))
    for turn in range(60):
        content, call = agent_turn(AgentTurnInputs(task=reply.task, solution=reply.plan, conversation=tuple(messages)))
        if call is None:
            assert content
            messages.append(AssistantMessage(content=content))
            if not conversation or not user_says():
                return messages, state
            continue
        named = call.model_copy(update={"id": f"call_{turn}"})
        messages.append(AssistantMessage(content=content, tool_calls=(named,)))
        text, state = observation(blueprint, state, call.name, call.arguments)
        messages.append(ToolMessage(content=text, tool_call_id=f"call_{turn}", name=call.name))
    raise AssertionError("the episode does not end")


def final_of(blueprint: Blueprint, state: State, plan: tuple[SolutionCall, ...]) -> State:
    for call in plan:
        _, state = observation(blueprint, state, call.name, call.arguments)
    return state


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_told_the_whole_task_the_agent_plays_the_solution_and_closes(tool_library: Blueprint, seed: int) -> None:
    state, reply = scenario_of(tool_library, seed)
    messages, final = play(tool_library, state, reply, conversation=False)
    assert final == final_of(tool_library, state, reply.plan)
    calls = [call.name for message in messages if isinstance(message, AssistantMessage) for call in message.tool_calls]
    assert calls == [call.name for call in reply.plan]
    assert sum(isinstance(message, AssistantMessage) and not message.tool_calls for message in messages) == 1


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_in_a_conversation_everything_is_told_done_and_ended_by_the_user(tool_library: Blueprint, seed: int) -> None:
    state, reply = scenario_of(tool_library, seed)
    messages, final = play(tool_library, state, reply, conversation=True)
    assert final == final_of(tool_library, state, reply.plan)
    told = [message.content for message in messages if isinstance(message, UserMessage)]
    assert reply.user_profile is not None
    assert told == [reply.user_profile.opening, *reply.user_profile.told.facts]


@settings(deadline=None, max_examples=20)
@given(seed=seeds)
def test_the_agent_does_nothing_before_it_was_told_what(tool_library: Blueprint, seed: int) -> None:
    _, reply = scenario_of(tool_library, seed)
    assert reply.user_profile is not None
    content, call = agent_turn(
        AgentTurnInputs(
            task=reply.task,
            solution=reply.plan,
            conversation=(UserMessage(content=reply.user_profile.opening),),
        )
    )
    assert call is None
    assert content.endswith("?")


SOLUTION = (
    SolutionCall(name="find", arguments={"title": "Salt Road"}),
    SolutionCall(
        name="lend", arguments={"book_id": "BK-1"}, bindings={"/book_id": Binding(call=0, pointer="/data/0/id")}
    ),
)


def test_ids_come_from_what_the_tools_really_returned() -> None:
    conversation: tuple[Message, ...] = (
        UserMessage(content="Lend the Salt Road."),
        AssistantMessage(),
        ToolMessage(content='{"success":true,"data":[{"id":"BK-7"}]}', tool_call_id="a", name="find"),
    )
    inputs = AgentTurnInputs(task="Lend the Salt Road.", solution=SOLUTION, conversation=conversation)
    _, call = agent_turn(inputs)
    assert call is not None
    assert call.arguments == {"book_id": "BK-7"}


def test_a_failure_on_the_way_is_told_at_the_end() -> None:
    conversation: tuple[Message, ...] = (
        UserMessage(content="Lend the Salt Road."),
        ToolMessage(content='{"success":true,"data":[]}', tool_call_id="a", name="find"),
        ToolMessage(content='{"success":false,"error":"no copy is left"}', tool_call_id="b", name="lend"),
    )
    content, call = agent_turn(AgentTurnInputs(task="x", solution=SOLUTION, conversation=conversation))
    assert call is None
    assert "no copy is left" in content


def test_without_a_solution_the_agent_leaves_everything_as_it_is() -> None:
    conversation = (UserMessage(content="Lend it."),)
    _, call = agent_turn(AgentTurnInputs(task="Lend it.", solution=None, conversation=conversation))
    assert call is None
    content, call = agent_turn(AgentTurnInputs(task="Lend it.", solution=(), conversation=conversation))
    assert (call, bool(content)) == (None, True)


def test_somebody_who_words_things_differently_is_not_asked_for_ever() -> None:
    conversation: list[Message] = []
    for turn in range(12):
        conversation.append(UserMessage(content="You know the novel that I mean."))
        inputs = AgentTurnInputs(task="Lend the Salt Road.", solution=SOLUTION, conversation=tuple(conversation))
        content, call = agent_turn(inputs)
        if call is not None:
            assert turn > 1
            return
        conversation.append(AssistantMessage(content=content))
    raise AssertionError("the agent never acts")


PROFILE = UserProfile(opening="Hello, about a loan.", facts=("Please lend the Salt Road.", "It is for Mei Tan."))


def said_after(*transcript: Message) -> str:
    return user_turn(UserTurnInputs(task="t", profile=PROFILE, transcript=transcript, stop_token=STOP)).text


def test_the_user_tells_one_fact_a_turn_and_stops_when_all_is_told_and_done() -> None:
    opening = UserMessage(content=PROFILE.opening)
    ask = AssistantMessage(content="What can I do?")
    facts = [UserMessage(content=fact) for fact in PROFILE.facts]
    done = AssistantMessage(content="Done. Is there anything else?")
    assert said_after() == PROFILE.opening
    assert said_after(opening, ask) == PROFILE.facts[0]
    assert said_after(opening, ask, facts[0], done) == PROFILE.facts[1]
    assert said_after(opening, ask, facts[0], ask, facts[1], done) == STOP


def test_a_question_after_all_was_told_is_answered_and_not_taken_for_the_end() -> None:
    told: list[Message] = [UserMessage(content=text) for text in (PROFILE.opening, *PROFILE.facts)]
    assert said_after(*told, AssistantMessage(content="Shall I proceed?")) == "Yes, please go ahead."
    assert said_after(*told, AssistantMessage(content="Which book, the Salt Road?")) == PROFILE.facts[0]
    nagging: list[Message] = [*told]
    for _ in range(10):
        nagging.append(AssistantMessage(content="Shall I proceed?"))
        answer = said_after(*nagging)
        if answer == STOP:
            return
        nagging.append(UserMessage(content=answer))
    raise AssertionError("the user answers for ever")


def test_without_a_profile_the_task_is_told_sentence_by_sentence() -> None:
    def said(*transcript: Message) -> str:
        task = "Lend the Salt Road to Mei. Then call her!"
        return user_turn(UserTurnInputs(task=task, profile=None, transcript=transcript, stop_token=STOP)).text

    opening = said()
    assert "Salt" not in opening
    first = said(UserMessage(content=opening), AssistantMessage(content="Yes?"))
    assert first == "Lend the Salt Road to Mei."
