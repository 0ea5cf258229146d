"""What is spent is counted once, under the role that asked, and never exceeds the budget by more than is in flight."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import BudgetExhausted, EndpointUnavailable
from envscaler.llm import (
    Budget,
    CachedModel,
    Completion,
    Meter,
    MeteredModel,
    MeterReport,
    ModelRequest,
    ReplyCache,
    RoleUse,
    ScriptedModel,
)
from envscaler.messages import AssistantMessage, UserMessage
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Usage

pytestmark = pytest.mark.anyio


def asking(role: str = "judge_call", text: str = "?") -> ModelRequest:
    return ModelRequest(role=role, messages=(UserMessage(content=text),))


def reply(tokens: int = 10, cost: float | None = 0.5) -> Completion:
    usage = Usage(input_tokens=tokens - tokens // 2, output_tokens=tokens // 2)
    return Completion(message=AssistantMessage(content="x"), usage=usage, model="m", cost_usd=cost)


def slowly(completion: Completion) -> ScriptedModel:
    async def answer(request: ModelRequest) -> Completion:
        await asyncio.sleep(0.001)
        return completion

    return ScriptedModel(answer)


def metered(model: ScriptedModel, price: float | None = 0.05, **limits: Any) -> tuple[MeteredModel, Meter]:
    """A model whose price is so much a token."""
    meter = Meter(Budget(**limits))

    def cost_of(usage: Usage) -> float | None:
        return None if price is None else price * (usage.input_tokens + usage.output_tokens)

    return MeteredModel(model, meter, cost_of=cost_of), meter


async def until_exhausted(model: MeteredModel) -> None:
    for _ in range(100):
        await model.complete(asking())


async def many(model: MeteredModel, count: int) -> list[Completion | BaseException]:
    return await asyncio.gather(*(model.complete(asking()) for _ in range(count)), return_exceptions=True)


async def test_use_is_counted_by_role_and_in_total() -> None:
    model, meter = metered(ScriptedModel(reply()))
    for role in ("judge_call", "user_turn", "judge_call"):
        await model.complete(asking(role))
    report = meter.report()
    assert report.roles["judge_call"].spent == ModelUse(calls=2, input_tokens=10, output_tokens=10, cost_usd=1.0)
    assert report.roles["user_turn"].spent.calls == 1
    assert report.spent == ModelUse(calls=3, input_tokens=15, output_tokens=15, cost_usd=1.5)
    assert report.reused == ModelUse()


async def test_what_was_made_good_is_counted_by_role_and_kind() -> None:
    _, meter = metered(ScriptedModel(reply()))
    meter.count_mended("judge_call", ("no fence", "cut tail"))
    meter.count_mended("write_check", ("no fence",))
    assert meter.report().roles["judge_call"].mended == {"cut tail": 1, "no fence": 1}
    assert meter.report().mended == {"cut tail": 1, "no fence": 2}


async def test_one_unknown_cost_makes_the_total_unknown() -> None:
    model, meter = metered(ScriptedModel([reply(), reply(cost=None)]))
    await model.complete(asking())
    await model.complete(asking())
    assert meter.report().spent.cost_usd is None
    assert meter.report().spent.input_tokens == 10


async def test_replies_without_usage_are_told_apart() -> None:
    silent = Completion(message=AssistantMessage(content="x"), model="m")
    model, meter = metered(ScriptedModel(silent))
    await model.complete(asking())
    assert meter.report().roles["judge_call"] == RoleUse(spent=ModelUse(calls=1), without_usage=1)


async def test_cached_replies_are_reused_and_not_spent(tmp_path: Path) -> None:
    inner, meter = metered(ScriptedModel(reply()), max_calls=1)
    cache = ReplyCache(tmp_path / "r.sqlite")
    model = CachedModel(inner, cache, scope={}, on_reuse=meter.count_reused)
    for _ in range(3):
        await model.complete(asking())
    assert meter.report().spent.calls == 1
    assert meter.report().reused == ModelUse(calls=2, input_tokens=10, output_tokens=10, cost_usd=1.0)
    with pytest.raises(BudgetExhausted):
        await model.complete(asking(text="new"))
    cache.close()


async def test_a_limit_of_calls_is_exact_also_side_by_side() -> None:
    inner = slowly(reply())
    model, _ = metered(inner, max_calls=7)
    outcomes = await many(model, 20)
    assert len(inner.requests) == 7
    assert sum(isinstance(outcome, BudgetExhausted) for outcome in outcomes) == 13


@pytest.mark.parametrize(("limits", "calls"), [({"max_tokens": 95}, 10), ({"max_cost": 4.75}, 10)])
async def test_limits_of_tokens_and_cost_are_overrun_by_one_call_at_most_one_after_another(
    limits: dict[str, Any], calls: int
) -> None:
    model, meter = metered(ScriptedModel(reply(10, 0.5)), **limits)
    with pytest.raises(BudgetExhausted):
        await until_exhausted(model)
    assert meter.report().spent.calls == calls


@pytest.mark.parametrize("price", [0.0, None])
async def test_a_call_that_costs_nothing_known_exceeds_no_limit_on_cost(price: float | None) -> None:
    meter = Meter(Budget(max_cost=0.0))
    free = MeteredModel(ScriptedModel(reply(cost=price)), meter, cost_of=lambda usage: price)
    for _ in range(3):
        await free.complete(asking())
    assert meter.report().spent.calls == 3
    paid = MeteredModel(ScriptedModel(reply()), meter, cost_of=lambda usage: 0.01)
    with pytest.raises(BudgetExhausted):
        await paid.complete(asking())
    assert meter.report().spent.calls == 3


async def test_what_a_part_of_the_run_used_is_counted_with_the_rest() -> None:
    model, meter = metered(ScriptedModel(reply()))
    await model.complete(asking())
    meter.count(MeterReport(roles={"judge_call": RoleUse(spent=ModelUse(calls=2, output_tokens=7, cost_usd=0.25))}))
    assert meter.report().roles["judge_call"].spent == ModelUse(
        calls=3, input_tokens=5, output_tokens=12, cost_usd=0.75
    )


@pytest.mark.parametrize("limits", [{"max_tokens": 2000}, {"max_cost": 100.0}])
async def test_calls_side_by_side_do_not_all_pass_the_check_that_one_would_pass(limits: dict[str, Any]) -> None:
    # Each call is 1000 tokens and 50 dollars: two of them use the budget up, whoever is in flight beside them.
    inner = slowly(reply(1000, 50.0))
    model, _ = metered(inner, price=0.05, **limits)
    outcomes = await many(model, 50)
    assert sum(isinstance(outcome, BudgetExhausted) for outcome in outcomes) == 50 - len(inner.requests)
    # Only before the first reply is the size of a call a guess; five such guesses fit in at most.
    assert 2 <= len(inner.requests) <= 5


async def test_what_calls_in_flight_leave_over_is_used() -> None:
    # Held back at the first guess of 500 tokens each, the calls turn out to need 10.
    model, meter = metered(slowly(reply(10, 0.0)), max_tokens=1000)
    await many(model, 90)
    assert meter.report().spent.calls == 90


async def test_a_failed_call_gives_back_what_was_held_for_it() -> None:
    inner = ScriptedModel([EndpointUnavailable("down"), reply(), reply()])
    model, meter = metered(inner, max_calls=2)
    outcomes = [*await many(model, 2), *await many(model, 2)]
    assert [type(outcome).__name__ for outcome in outcomes] == [
        "EndpointUnavailable",
        "Completion",
        "Completion",
        "BudgetExhausted",
    ]
    assert meter.report().spent.calls == 2


async def test_a_cancelled_call_gives_back_what_was_held_for_it() -> None:
    async def answer(request: ModelRequest) -> Completion:
        if len(inner.requests) == 1:
            await asyncio.sleep(60)
        return reply()

    inner = ScriptedModel(answer)
    model, _ = metered(inner, max_calls=1)
    task = asyncio.create_task(model.complete(asking()))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(model.complete(asking()))
    await asyncio.sleep(0.01)
    assert not waiting.done()
    task.cancel()
    assert (await waiting).message.content == "x"


async def test_tokens_that_nobody_reports_are_estimated_for_the_budget_only() -> None:
    silent = Completion(message=AssistantMessage(content="word " * 400), model="m")
    model, meter = metered(ScriptedModel(silent), price=None, max_tokens=2000)
    with pytest.raises(BudgetExhausted):
        await until_exhausted(model)
    assert 3 <= meter.report().spent.calls <= 5
    assert meter.report().spent.output_tokens == 0


async def test_the_message_says_which_limit_and_that_the_command_resumes() -> None:
    model, _ = metered(ScriptedModel(reply()), max_calls=0)
    with pytest.raises(BudgetExhausted, match=r"used up \(0 of 0 calls\).*same command"):
        await model.complete(asking())


async def test_an_earlier_run_is_reported_but_not_counted_against_the_budget() -> None:
    model, meter = metered(ScriptedModel(reply()))
    await model.complete(asking())
    plain = meter.report().model_dump(mode="json")
    resumed = Meter(Budget(max_calls=1), earlier=MeterReport.model_validate(plain))
    await MeteredModel(ScriptedModel(reply()), resumed, cost_of=lambda usage: 0.0).complete(asking("user_turn"))
    assert resumed.report().spent.calls == 1
    assert resumed.total().spent == ModelUse(calls=2, input_tokens=10, output_tokens=10, cost_usd=1.0)
    assert list(resumed.total().roles) == ["judge_call", "user_turn"]


uses = st.builds(
    ModelUse,
    calls=st.integers(0, 5),
    input_tokens=st.integers(0, 100),
    output_tokens=st.integers(0, 100),
    cost_usd=st.none() | st.integers(0, 100).map(float),
)
mended = st.dictionaries(st.sampled_from(["no fence", "cut tail"]), st.integers(1, 5))
reports = st.builds(
    MeterReport,
    roles=st.dictionaries(
        st.sampled_from("abc"), st.builds(RoleUse, spent=uses, reused=uses, mended=mended), max_size=3
    ),
)


@given(reports, reports)
def test_reports_add_up(one: MeterReport, other: MeterReport) -> None:
    total = one + other
    assert total.spent.calls == one.spent.calls + other.spent.calls
    assert sum(total.mended.values()) == sum(one.mended.values()) + sum(other.mended.values())
    assert MeterReport.model_validate(total.model_dump(mode="json")) == total
