"""Every form in which servers write a reply, and the laws of taking reasoning and tool calls out of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.endpoint import Unreadable
from envscaler.llm.wire import combined, completion_from, request_body, split_reasoning
from envscaler.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling, Usage

SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
TOOL = ToolSpec(name="look", description="Looks.", parameters={"type": "object", "properties": {}}, effect="query")


def reply(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> Completion:
    body = {"model": "m-1", "choices": [{"message": message, "finish_reason": finish}], **more}
    return completion_from(body, model="m")


def called(arguments: Any) -> ToolCall:
    (call,) = reply({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": arguments}}]}).message.tool_calls
    return call


# -- requests -----------------------------------------------------------------------------------------------


def test_a_request_carries_messages_tools_schema_and_sampling_and_nothing_of_the_role() -> None:
    request = ModelRequest(
        role="plan tools!",
        messages=(
            SystemMessage(content="s"),
            UserMessage(content="u"),
            AssistantMessage(content="", reasoning="hidden", tool_calls=(ToolCall(name="look", id="c1"),)),
            ToolMessage(content="{}", tool_call_id="c1", name="look"),
        ),
        inputs=Usage(input_tokens=987654),
        tools=(TOOL,),
        response_schema=SCHEMA,
    )
    sampling = Sampling(temperature=0.5, max_tokens=9, extra={"top_k": 3})
    body = request_body(request, model="m", sampling=sampling, level="json_schema", extra={"service_tier": "flex"})
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["tools"][0]["function"]["name"] == "look"
    assert body["response_format"]["json_schema"] == {"name": "plan_tools_", "schema": SCHEMA}
    assert (body["temperature"], body["max_tokens"], body["top_k"], body["service_tier"]) == (0.5, 9, 3, "flex")
    assert "top_p" not in body
    assert "seed" not in body
    assert "hidden" not in json.dumps(body)
    assert "987654" not in json.dumps(body)


def test_levels_below_the_schema_ask_for_less() -> None:
    request = ModelRequest(role="r", messages=(UserMessage(content="u"),), response_schema=SCHEMA)
    body = request_body(request, model="m", sampling=Sampling(), level="json_object")
    assert body["response_format"] == {"type": "json_object"}
    assert "response_format" not in request_body(request, model="m", sampling=Sampling(), level="plain")


def test_what_a_request_sets_wins_over_the_defaults() -> None:
    defaults = Sampling(temperature=1.0, max_tokens=10, extra={"top_k": 1, "min_p": 0.1})
    assert combined(Sampling(temperature=0.0, extra={"top_k": 5}), defaults) == Sampling(
        temperature=0.0, max_tokens=10, extra={"top_k": 5, "min_p": 0.1}
    )


# -- replies ------------------------------------------------------------------------------------------------


def test_a_plain_reply_with_usage() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 8}}
    completion = reply({"content": "hi"}, usage=usage)
    assert completion.message == AssistantMessage(content="hi")
    assert completion.usage == Usage(input_tokens=10, cached_input_tokens=8, output_tokens=3)
    assert completion.model == "m-1"
    assert completion.cost_usd is None


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, "none", {"prompt_tokens": -4}])
def test_usage_that_is_not_reported_is_zero(usage: Any) -> None:
    assert reply({"content": "hi"}, usage=usage).usage == Usage()


@pytest.mark.parametrize(
    ("given_reason", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("tool_calls", "tool_calls"),
        ("function_call", "tool_calls"),
        (None, "unknown"),
        ("abort", "unknown"),
    ],
)
def test_finish_reasons_are_mapped(given_reason: str | None, reason: str) -> None:
    assert reply({"content": "x"}, given_reason).finish_reason == reason


def test_a_refusal_is_withheld_content() -> None:
    completion = reply({"content": None, "refusal": "I cannot help with that."})
    assert completion.finish_reason == "content_filter"
    assert completion.message.content == "I cannot help with that."


@pytest.mark.parametrize(
    "body",
    [
        [],
        "text",
        None,
        {},
        {"choices": []},
        {"choices": None},
        {"choices": ["x"]},
        {"choices": [{"finish_reason": "stop"}]},
        {"choices": [{"message": None}]},
        {"error": {"message": "overloaded"}},
        {"choices": [{"message": {"content": ""}, "finish_reason": "error", "error": {"code": 502}}]},
    ],
)
def test_what_is_no_reply_is_said_to_be_none(body: Any) -> None:
    with pytest.raises(Unreadable):
        completion_from(body, model="m")


# -- reasoning ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        {"content": "answer", "reasoning_content": "why"},
        {"content": "answer", "reasoning": "why"},
        {"content": "<think>why</think>answer"},
        {"content": "\n<think>\nwhy\n</think>\n\nanswer"},
        {"content": "why\n</think>\nanswer"},
        {"content": "answer\n<thinking>why</thinking>"},
        {
            "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
                {"type": "text", "text": "answer"},
            ]
        },
    ],
)
def test_reasoning_is_kept_apart_in_whatever_form_it_comes(message: dict[str, Any]) -> None:
    assert reply(message).message == AssistantMessage(content="answer", reasoning="why")


def test_reasoning_that_never_ends_leaves_no_answer() -> None:
    assert reply({"content": "<think>on and on"}, "length").message == AssistantMessage(reasoning="on and on")


def test_reasoning_in_field_and_text_is_kept_both() -> None:
    message = reply({"content": "<think>b</think>c", "reasoning_content": "a"}).message
    assert message == AssistantMessage(content="c", reasoning="a\nb")


def test_empty_reasoning_is_none() -> None:
    message = reply({"content": "<think>\n\n</think>\n\nc", "reasoning_content": ""}).message
    assert message == AssistantMessage(content="c")


def test_tags_that_are_spoken_of_are_no_reasoning() -> None:
    text = "Strip it with `re.sub('<think>.*</think>', '', text)`."
    assert split_reasoning(text) == (text, None)


@given(st.text())
def test_text_without_tags_is_left_as_it_is(text: str) -> None:
    if "think" not in text.lower():
        assert split_reasoning(text) == (text, None)


PLAIN = st.text(alphabet=st.characters(exclude_characters="<>", exclude_categories=["Cs"])).map(str.strip)


@given(PLAIN, PLAIN)
def test_a_think_block_and_the_answer_come_apart_exactly(thought: str, answer: str) -> None:
    assert split_reasoning(f"<think>{thought}</think>\n{answer}") == (answer, thought or None)


@given(st.text(alphabet="<>/thinkg \n{}a"))
def test_no_text_makes_the_splitting_fail(text: str) -> None:
    content, _ = split_reasoning(text)
    assert len(content) <= len(text)


# -- tool calls ---------------------------------------------------------------------------------------------


def test_a_tool_call_is_parsed() -> None:
    assert called('{"x": 1}') == ToolCall(name="f", arguments={"x": 1}, id="a")


@pytest.mark.parametrize("arguments", [{}, "", None, "{}"])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert called(arguments) == ToolCall(name="f", id="a")


def test_arguments_that_are_an_object_already_are_taken() -> None:
    assert called({"x": [1]}).arguments == {"x": [1]}


@pytest.mark.parametrize(
    "arguments", ['{"x": 1', "[1]", "null", "yes", '{"x": NaN}', "1", '{"x": 1e999}', '{"x": "\\ud83d"}']
)
def test_arguments_that_are_no_object_are_kept_as_text(arguments: str) -> None:
    assert called(arguments) == ToolCall(name="f", id="a", malformed=arguments)


@given(st.one_of(st.text(), st.binary().map(repr), st.recursive(st.none() | st.floats(), st.lists).map(repr)))
def test_no_arguments_make_the_parsing_fail(arguments: str) -> None:
    call = called(arguments)
    assert call.malformed is None or call.arguments == {}


def test_half_a_character_at_the_end_of_a_reply_can_still_be_stored() -> None:
    body = json.loads(r'{"choices": [{"message": {"content": "done \ud83d"}, "finish_reason": "length"}]}')
    assert json.loads(completion_from(body, model="m").model_dump_json())["message"]["content"].startswith("done ")


def test_calls_without_ids_get_different_ones() -> None:
    calls = [{"function": {"name": "f", "arguments": "{}"}}, {"id": "", "function": {"name": "g", "arguments": "{}"}}]
    completion = reply({"content": None, "tool_calls": calls}, "stop")
    assert [call.id for call in completion.message.tool_calls] == ["call_0", "call_1"]
    assert completion.finish_reason == "tool_calls"


def test_entries_that_are_no_calls_are_passed_over() -> None:
    assert reply({"content": "x", "tool_calls": ["f", {}, {"function": None}]}).message == AssistantMessage(content="x")
