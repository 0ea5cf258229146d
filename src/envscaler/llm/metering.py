"""Counts calls, tokens and cost by role, and ends a run that reaches its budget.

What a call costs is `prices`' business; which replies come from a cache, `cache`'s.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from envscaler.errors import BudgetExhausted
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.messages import to_openai
from envscaler.record import Record
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Usage

CostOf = Callable[[Usage], float | None]
"""US dollars for that many tokens of one model; None: unknown."""


class Budget(Record):
    """Limits on what one run may spend; None: no limit. Replies from the cache are not spent."""

    max_cost: float | None = None
    """US dollars."""
    max_tokens: int | None = None
    """Input and output tokens together."""
    max_calls: int | None = None


class RoleUse(Record):
    """What one role used."""

    spent: ModelUse = ModelUse()
    """Calls that a model answered now."""
    reused: ModelUse = ModelUse()
    """Replies that came from the cache, with what they had cost when they were made."""
    without_usage: int = 0
    """Calls among the spent ones for which the endpoint reported no tokens; they count zero tokens above."""
    unusable: int = 0
    """Replies that could not be used (empty, withheld, of another form, or doubted) and were asked for again or given
    up."""


class MeterReport(Record):
    """What was used, by role. Its `model_dump()` is the plain form that run records keep."""

    roles: dict[str, RoleUse] = {}

    @property
    def spent(self) -> ModelUse:
        """All that was spent; its cost is None as soon as that of one call is unknown."""
        return sum((use.spent for use in self.roles.values()), start=ModelUse())

    @property
    def reused(self) -> ModelUse:
        """All replies that came from the cache."""
        return sum((use.reused for use in self.roles.values()), start=ModelUse())

    @property
    def unusable(self) -> int:
        """All replies that could not be used."""
        return sum(use.unusable for use in self.roles.values())

    def __add__(self, other: MeterReport) -> MeterReport:
        roles = dict(self.roles)
        for role, use in other.roles.items():
            before = roles.get(role, RoleUse())
            roles[role] = RoleUse(
                spent=before.spent + use.spent,
                reused=before.reused + use.reused,
                without_usage=before.without_usage + use.without_usage,
                unusable=before.unusable + use.unusable,
            )
        return MeterReport(roles=dict(sorted(roles.items())))


@dataclass(slots=True)
class Bill:
    """What the budget counts of one call or many: reported figures, and estimates where none were reported."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0

    def add(self, other: Bill, sign: int = 1) -> None:
        self.calls += sign * other.calls
        self.tokens += sign * other.tokens
        self.cost += sign * other.cost


class Meter:
    """The use of all models of a run, and its budget.

    The budget counts what this run spends: a resumed run has its whole budget again, and what earlier runs spent is
    only reported. The estimate of a call in flight is held back, so that calls that run side by side do not all pass
    the check that only one of them would have passed.
    """

    def __init__(self, budget: Budget | None = None, *, earlier: MeterReport | None = None) -> None:
        """
        Args:
            earlier: use of the runs that this one resumes; added to `total()`, not counted by the budget.
        """
        self.budget = budget or Budget()
        self._earlier = earlier or MeterReport()
        self._roles: dict[str, RoleUse] = {}
        self._billed = Bill()
        self._reserved = Bill()
        self._changed = asyncio.Event()
        """Set, and replaced, when a call ends: wakes the calls that wait for what it leaves."""

    def report(self) -> MeterReport:
        """Use of this run."""
        return MeterReport(roles=dict(sorted(self._roles.items())))

    def total(self) -> MeterReport:
        """Use of this run and of those that it resumes."""
        return self._earlier + self.report()

    def count(self, report: MeterReport) -> None:
        """Count what a part of this run used that had a meter of its own."""
        self._roles = (self.report() + report).roles

    def count_spent(self, role: str, completion: Completion) -> None:
        """Count a reply that a model gave now."""
        before = self._roles.get(role, RoleUse())
        silent = completion.usage == Usage() and completion.cost_usd is None
        self._roles[role] = before.model_copy(
            update={"spent": before.spent + _use(completion), "without_usage": before.without_usage + silent}
        )

    def count_reused(self, role: str, completion: Completion) -> None:
        """Count a reply that came from the cache."""
        before = self._roles.get(role, RoleUse())
        self._roles[role] = before.model_copy(update={"reused": before.reused + _use(completion)})

    def count_unusable(self, role: str, replies: int) -> None:
        """Count replies that whoever asked could not use."""
        before = self._roles.get(role, RoleUse())
        self._roles[role] = before.model_copy(update={"unusable": before.unusable + replies})

    @asynccontextmanager
    async def reserve(self, estimate: Bill) -> AsyncIterator[None]:
        """Hold the estimate of one call back while it is in flight; waits while calls in flight may use up the rest.

        Raises:
            BudgetExhausted: if the budget is spent.
        """
        # A call that costs nothing, or nobody knows what, exceeds no limit on cost.
        costs = estimate.cost > 0
        while (limit := self._reached(self._billed, self._reserved, costs=costs)) is not None:
            if (spent := self._reached(self._billed, costs=costs)) is not None or not self._reserved.calls:
                raise BudgetExhausted(
                    f"the budget is used up ({spent or limit}); what was made is kept, and the same command "
                    "goes on where it stopped, with a new budget"
                )
            await self._changed.wait()
        self._reserved.add(estimate)
        try:
            yield
        finally:
            self._reserved.add(estimate, sign=-1)
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    def bill(self, bill: Bill) -> None:
        """Take what a call was into the budget."""
        self._billed.add(bill)

    def _reached(self, *bills: Bill, costs: bool) -> str | None:
        budget = self.budget
        calls, tokens = sum(bill.calls for bill in bills), sum(bill.tokens for bill in bills)
        cost = sum(bill.cost for bill in bills)
        if budget.max_calls is not None and calls >= budget.max_calls:
            return f"{calls} of {budget.max_calls} calls"
        if budget.max_tokens is not None and tokens >= budget.max_tokens:
            return f"{tokens} of {budget.max_tokens} tokens"
        if costs and budget.max_cost is not None and cost >= budget.max_cost:
            return f"${cost:.4f} of ${budget.max_cost:.4f}"
        return None


class MeteredModel:
    """A model whose calls are counted under the role that asks, within the budget of a meter."""

    def __init__(self, model: ChatModel, meter: Meter, *, cost_of: CostOf) -> None:
        """
        Args:
            cost_of: price of a call of this model, to hold back the cost of calls in flight.
        """
        self._model = model
        self._meter = meter
        self._cost_of = cost_of
        self._outputs = Usage(output_tokens=_FIRST_OUTPUT_TOKENS)

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def needs_messages(self) -> bool:
        """False for a model that answers from `role` and `inputs` alone."""
        return bool(getattr(self._model, "needs_messages", True))

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request, and count it.

        Raises:
            BudgetExhausted: if the budget does not allow the call.
        """
        output_tokens = request.sampling.max_tokens or self._outputs.output_tokens
        guess = Usage(input_tokens=_tokens_of(_text_of(request)), output_tokens=output_tokens)
        async with self._meter.reserve(self._bill_of(guess, self._cost_of(guess))):
            completion = await self._model.complete(request)
            usage = completion.usage
            if usage == Usage() and completion.cost_usd is None:
                usage = Usage(input_tokens=guess.input_tokens, output_tokens=_tokens_of(_text_in(completion)))
                self._meter.bill(self._bill_of(usage, self._cost_of(usage)))
            else:
                self._meter.bill(self._bill_of(usage, completion.cost_usd))
            self._meter.count_spent(request.role, completion)
            # The last reply is a fair guess for the next one, and needs no memory of all that came before.
            self._outputs = usage
        return completion

    async def aclose(self) -> None:
        await self._model.aclose()

    @staticmethod
    def _bill_of(usage: Usage, cost: float | None) -> Bill:
        return Bill(calls=1, tokens=usage.input_tokens + usage.output_tokens, cost=cost or 0.0)


_FIRST_OUTPUT_TOKENS = 500


def _use(completion: Completion) -> ModelUse:
    usage = completion.usage
    return ModelUse(
        calls=1,
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cached_input_tokens,
        output_tokens=usage.output_tokens,
        cost_usd=completion.cost_usd,
    )


def _text_of(request: ModelRequest) -> str:
    parts: list[Any] = [to_openai(message) for message in request.messages]
    parts += [tool.to_openai() for tool in request.tools]
    return json.dumps(parts, ensure_ascii=False)


def _text_in(completion: Completion) -> str:
    message = completion.message
    calls = "".join(call.name + json.dumps(call.arguments, ensure_ascii=False) for call in message.tool_calls)
    return (message.reasoning or "") + message.content + calls


def _tokens_of(text: str) -> int:
    """About so many tokens: four bytes each, in any language."""
    return len(text.encode("utf-8", "surrogatepass")) // 4 + 1
