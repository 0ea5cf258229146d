"""Tests that a trace holds every question and reply once, survives a kill, and holds no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.errors import BudgetExhausted, RequestFailed, StoreError
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.scripted import ScriptedModel
from envscaler.llm.tracing import Exchange, Fault, Mended, Trace, TracedModel, about, is_trace, read_trace
from envscaler.messages import AssistantMessage, UserMessage
from envscaler.trajectory import Sampling, Usage

pytestmark = pytest.mark.anyio

REPLY = Completion(
    message=AssistantMessage(content="Seven.", reasoning="Count."),
    usage=Usage(input_tokens=12, output_tokens=3),
    model="scripted",
    latency_s=1.23456,
    cost_usd=0.25,
)


def request(text: str = "How many?", attempt: int = 0) -> ModelRequest:
    return ModelRequest(
        role="count",
        messages=(UserMessage(content=text),),
        sampling=Sampling(temperature=0.5),
        sample=(2, attempt),
    )


def lines(path: Path) -> list[Exchange | Fault | Mended]:
    return list(read_trace(path))


async def test_an_exchange_tells_who_was_asked_what_and_what_came_of_it(tmp_path: Path) -> None:
    trace = Trace(tmp_path / "trace.jsonl")
    model = TracedModel(ScriptedModel([REPLY]), trace, sampling=Sampling(temperature=0.9, top_p=0.5))
    with about("a-desk"):
        await model.complete(request(attempt=1))
        trace.faulted(request(attempt=1), model.name, "misshapen", "count: not an integer")
    exchange, fault = lines(trace.path)
    assert isinstance(exchange, Exchange)
    assert (exchange.role, exchange.subject, exchange.model) == ("count", "a-desk", model.name)
    assert (exchange.sample, exchange.attempt) == (2, 1)
    assert exchange.sampling == Sampling(temperature=0.5, top_p=0.5)
    assert exchange.messages == (UserMessage(content="How many?"),)
    assert exchange.reply == REPLY.message
    assert (exchange.usage, exchange.cost_usd, exchange.latency_s) == (REPLY.usage, 0.25, 1.235)
    assert fault == Fault(id=exchange.id, kind="misshapen", fault="count: not an integer")
    assert is_trace(trace.path)


async def test_what_was_made_good_in_a_reply_is_kept_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    for _ in range(2):
        trace = Trace(path)
        model = TracedModel(ScriptedModel([REPLY]), trace)
        await model.complete(request())
        trace.mended(request(), model.name, ("no fence", "cut tail"))
        trace.close()
    exchange, mended = lines(path)
    assert mended == Mended(id=exchange.id, mended=("no fence", "cut tail"))


async def test_a_resumed_run_adds_what_is_new_alone(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    first = TracedModel(ScriptedModel([REPLY]), Trace(path))
    await first.complete(request())
    with path.open("ab") as file:
        file.write(b'{"schema_version": 1, "trace": {"what": "excha')  # killed while it wrote
    assert len(lines(path)) == 1
    again = TracedModel(ScriptedModel([REPLY.model_copy(update={"cached": True}), REPLY]), Trace(path))
    await again.complete(request())
    await again.complete(request("And now?"))
    assert [line.messages[0].content for line in lines(path) if isinstance(line, Exchange)] == ["How many?", "And now?"]


async def test_a_request_that_fails_is_kept_with_why_and_again_when_it_is_answered(tmp_path: Path) -> None:
    class Failing(ScriptedModel):
        async def complete(self, request: ModelRequest) -> Completion:
            if request.sample[1] == 0 and not self.requests:
                self.requests.append(request)
                raise RequestFailed("it is too long")
            return await super().complete(request)

    path = tmp_path / "trace.jsonl"
    model = TracedModel(Failing([REPLY]), Trace(path))
    with pytest.raises(RequestFailed):
        await model.complete(request())
    await model.complete(request())
    failed, answered = lines(path)
    assert isinstance(failed, Exchange)
    assert isinstance(answered, Exchange)
    assert (failed.error, failed.reply) == ("RequestFailed: it is too long", None)
    assert (answered.error, answered.reply) == (None, REPLY.message)


async def test_what_a_budget_kept_from_being_asked_is_not_in_the_trace(tmp_path: Path) -> None:
    class Spent(ScriptedModel):
        async def complete(self, request: ModelRequest) -> Completion:
            raise BudgetExhausted("used up")

    trace = Trace(tmp_path / "trace.jsonl")
    with pytest.raises(BudgetExhausted):
        await TracedModel(Spent([]), trace).complete(request())
    assert not trace.path.exists()


async def test_no_secret_gets_into_the_file_whatever_a_model_says(tmp_path: Path) -> None:
    key = 'sk-"quoted"-key-1'
    reply = REPLY.model_copy(update={"message": AssistantMessage(content=f"Your key is {key}, is it not?")})
    trace = Trace(tmp_path / "trace.jsonl", secrets=["sk-", key])
    await TracedModel(ScriptedModel([reply]), trace).complete(request(f"Keep {key} to yourself."))
    (exchange,) = lines(trace.path)
    assert isinstance(exchange, Exchange)
    assert exchange.reply is not None
    assert exchange.reply.content == "Your key is •••, is it not?"
    assert "quoted" not in trace.path.read_text(encoding="utf-8")


def test_a_file_of_somebody_else_is_not_added_to(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    path.write_text('{"note": 1}\n', encoding="utf-8")
    with pytest.raises(StoreError, match="not written by this command"):
        Trace(path)
