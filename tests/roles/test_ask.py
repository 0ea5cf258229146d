"""One question until its reply can be used; the model is played by a script of completions."""

from __future__ import annotations

import pytest

from envscaler.errors import EndpointUnavailable, ReplyError
from envscaler.llm.chat import Completion, FinishReason
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.roles.ask import Attempt, ask
from envscaler.roles.role import FILTER_TASK, USER_TURN, WRITE_CHECK, Prompts
from envscaler.roles.types import (
    FilterTaskInputs,
    FilterTaskReply,
    UserTurnInputs,
    WriteCheckInputs,
    reply_schema,
)
from envscaler.skeleton import EnvDescription, ToolSpec
from envscaler.trajectory import Sampling, Usage

pytestmark = pytest.mark.anyio

GOOD = '{"reason": "Bookings persist.", "stateful": true}'
TASK = FilterTaskInputs(task="Book table 4.")


def completion(text: str, finish: FinishReason = "stop", **fields: object) -> Completion:
    return Completion(
        message=AssistantMessage(content=text, **fields),  # type: ignore[arg-type]
        finish_reason=finish,
        usage=Usage(input_tokens=100, cached_input_tokens=40, output_tokens=10),
        model="scripted",
        cost_usd=0.5,
    )


def scripted(replies: list[Scripted]) -> ScriptedModel:
    return ScriptedModel([completion(reply) if isinstance(reply, str) else reply for reply in replies])


async def test_a_usable_reply_needs_one_question() -> None:
    model = scripted([GOOD])
    answer = await ask(model, FILTER_TASK, TASK, prompts=Prompts())
    assert answer.reply == FilterTaskReply(reason="Bookings persist.", stateful=True)
    assert (answer.attempts, answer.mended, answer.use.calls) == (1, (), 1)


async def test_a_request_carries_role_inputs_schema_sampling_and_sample() -> None:
    model = scripted([GOOD])
    await ask(model, FILTER_TASK, TASK, prompts=Prompts(), sample=3, sampling=Sampling(temperature=0.7))
    (request,) = model.requests
    assert (request.role, request.inputs) == ("filter_task", TASK)
    assert request.response_schema == reply_schema(FilterTaskReply)
    assert request.sampling.temperature == 0.7
    assert request.sample == (3, 0)


async def test_a_fault_goes_back_by_name_and_the_use_of_all_attempts_is_summed() -> None:
    model = scripted(['{"reason": "x"}', '{"reason": "x", "stateful": "maybe"}', GOOD])
    answer = await ask(model, FILTER_TASK, TASK, prompts=Prompts())
    assert answer.attempts == 3
    assert (answer.use.calls, answer.use.input_tokens, answer.use.cost_usd) == (3, 300, 1.5)
    assert [request.sample for request in model.requests] == [(0, 0), (0, 1), (0, 2)]
    assert "stateful: Field required" in model.requests[1].messages[-1].content
    assert "stateful: Input should be a valid boolean" in model.requests[2].messages[-1].content


async def test_only_the_last_bad_reply_goes_back() -> None:
    model = scripted(["first nonsense", "second nonsense", GOOD])
    await ask(model, FILTER_TASK, TASK, prompts=Prompts())
    contents = [message.content for message in model.requests[2].messages]
    assert "second nonsense" in contents
    assert "first nonsense" not in contents
    assert [message.role for message in model.requests[2].messages] == ["system", "user", "assistant", "user"]


async def test_after_the_last_attempt_the_fault_is_a_reply_error() -> None:
    model = scripted(["no", "no", GOOD])
    with pytest.raises(ReplyError, match=r"filter_task: it holds no JSON object, but says: no \(after 2 attempts\)"):
        await ask(model, FILTER_TASK, TASK, prompts=Prompts(), attempts=2)
    assert len(model.requests) == 2


async def test_a_doubt_of_the_caller_goes_back_like_a_fault() -> None:
    model = scripted([GOOD, '{"reason": "A joke.", "stateful": false}'])
    answer = await ask(
        model,
        FILTER_TASK,
        TASK,
        prompts=Prompts(),
        doubt=lambda reply: "tables are no state here" if reply.stateful else None,
    )
    assert not answer.reply.stateful
    assert "tables are no state here" in model.requests[1].messages[-1].content


async def test_a_doubt_may_try_the_reply_out_first() -> None:
    async def tried(reply: FilterTaskReply) -> str | None:
        return "it did not run" if reply.stateful else None

    model = scripted([GOOD, '{"reason": "A joke.", "stateful": false}'])
    answer = await ask(model, FILTER_TASK, TASK, prompts=Prompts(), doubt=tried)
    assert answer.attempts == 2
    assert "it did not run" in model.requests[1].messages[-1].content


async def test_a_reply_that_was_cut_off_ends_it_where_it_is_not_asked_for_again() -> None:
    cut = completion('{"reason": "Bookings and', finish="length")
    model = scripted(["no", cut, GOOD])
    with pytest.raises(ReplyError, match=r"cut off at the token limit.* \(after 2 attempts\)"):
        await ask(model, FILTER_TASK, TASK, prompts=Prompts(), again_if_cut=False)
    assert len(model.requests) == 2
    assert (await ask(scripted([cut, GOOD]), FILTER_TASK, TASK, prompts=Prompts())).attempts == 2


async def test_fields_too_many_are_left_out_and_counted_as_mended() -> None:
    model = scripted(['{"thoughts": "hm", "reason": "Bookings persist.", "stateful": true}'])
    answer = await ask(model, FILTER_TASK, TASK, prompts=Prompts())
    assert (answer.attempts, answer.mended) == (1, ("extra fields",))


async def test_what_was_made_good_is_told_of_every_reply_that_was_read() -> None:
    heard: list[Attempt] = []
    bad = "{'reason': 'x', 'stateful': True}"
    model = scripted(["no", bad, f"```\n{bad}", GOOD])
    answer = await ask(
        model,
        FILTER_TASK,
        TASK,
        prompts=Prompts(),
        attempts=4,
        doubt=lambda reply: "x is no reason" if reply.reason == "x" else None,
        on_attempt=heard.append,
    )
    assert [(one.kind, one.mended) for one in heard] == [
        ("unreadable", ()),
        ("rejected", ("JSON syntax",)),
        ("rejected", ("JSON syntax",)),
        (None, ()),
    ]
    assert answer.mended == ()


async def test_a_reply_with_a_field_too_many_and_one_too_few_is_asked_for_again() -> None:
    model = scripted(['{"thoughts": "hm", "stateful": true}', GOOD])
    await ask(model, FILTER_TASK, TASK, prompts=Prompts())
    fault = model.requests[1].messages[-1].content
    assert "reason: Field required" in fault
    assert "thoughts" not in fault


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (completion(""), "it is empty"),
        (completion("", tool_calls=(ToolCall(name="find", id="1"),)), "it is empty"),
        (completion("withheld", "content_filter"), "content filter"),
        (completion('{"reason": "' + "again " * 5000, "length"), "cut off at the token limit"),
        (completion("I'm sorry, but I can't help with that."), "no JSON object"),
    ],
)
async def test_a_reply_that_holds_nothing_is_asked_for_again(bad: Completion, fault: str) -> None:
    model = scripted([bad, GOOD])
    assert (await ask(model, FILTER_TASK, TASK, prompts=Prompts())).attempts == 2
    quoted, question = model.requests[1].messages[-2:]
    assert fault in question.content
    assert isinstance(quoted, AssistantMessage)
    assert quoted.tool_calls == ()
    assert 0 < len(quoted.content) <= 2100


async def test_code_is_asked_for_without_a_schema_and_read_from_its_fence() -> None:
    source = "def check_func(final_state: dict) -> bool:\n    return True\n"
    model = scripted([f"Here:\n```python\n{source}```"])
    inputs = WriteCheckInputs(
        description=EnvDescription(summary="Tool rental counter", introduction="Lends tools."),
        entities=(),
        rules=(),
        tools=(ToolSpec(name="find", description="", parameters={"type": "object"}, effect="query"),),
        state={},
        clock="2025-01-06T09:00:00",
        task="Lend me a drill.",
        index=0,
        seed=0,
        item="Has a drill been lent?",
        position=0,
    )
    answer = await ask(model, WRITE_CHECK, inputs, prompts=Prompts())
    assert answer.reply.source == source
    assert model.requests[0].response_schema is None


async def test_text_is_taken_as_it_is() -> None:
    model = scripted(["I need a drill {now}."])
    inputs = UserTurnInputs(task="Lend me a drill.", profile=None, stop_token="###STOP###")
    assert (await ask(model, USER_TURN, inputs, prompts=Prompts())).reply.text == "I need a drill {now}."


async def test_a_transport_failure_is_not_asked_again() -> None:
    model = scripted([EndpointUnavailable("down"), GOOD])
    with pytest.raises(EndpointUnavailable):
        await ask(model, FILTER_TASK, TASK, prompts=Prompts())
    assert len(model.requests) == 1
