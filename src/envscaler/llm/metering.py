"""Counts calls, tokens and cost by role, and ends a run that reaches its budget.

What a call costs is `prices`' business; which replies come from a cache, `cache`'s.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from envscaler.errors import BudgetExhausted
from envscaler.llm.around import ModelAround
from envscaler.llm.chat import ChatModel, Completion, Mending, ModelRequest
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
    mended: dict[Mending, int] = {}
    """Replies that were used after something in their form was made good, by what that was."""


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

    @property
    def mended(self) -> dict[Mending, int]:
        """All replies that were mended, by what was made good."""
        return _summed(use.mended for use in self.roles.values())

    def __add__(self, other: MeterReport) -> MeterReport:
        roles = dict(self.roles)
        for role, use in other.roles.items():
            before = roles.get(role, RoleUse())
            roles[role] = RoleUse(
                spent=before.spent + use.spent,
                reused=before.reused + use.reused,
                without_usage=before.without_usage + use.without_usage,
                unusable=before.unusable + use.unusable,
                mended=_summed((before.mended, use.mended)),
            )
        return MeterReport(roles=dict(sorted(roles.items())))


def _summed(counts: Iterable[dict[Mending, int]]) -> dict[Mending, int]:
    sums: Counter[Mending] = Counter()
    for count in counts:
        sums.update(count)
    return dict(sorted(sums.items()))


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


class _Sum:
    """What replies used, added up in place: a record for each of very many calls would cost more than the rest."""

    __slots__ = ("cached_input_tokens", "calls", "cost_usd", "input_tokens", "output_tokens")

    def __init__(self) -> None:
        self.calls = self.input_tokens = self.cached_input_tokens = self.output_tokens = 0
        self.cost_usd: float | None = None

    def add(self, completion: Completion) -> None:
        usage, cost = completion.usage, completion.cost_usd
        if not self.calls:
            self.cost_usd = cost
        elif self.cost_usd is not None:
            self.cost_usd = None if cost is None else self.cost_usd + cost
        self.calls += 1
        self.input_tokens += usage.input_tokens
        self.cached_input_tokens += usage.cached_input_tokens
        self.output_tokens += usage.output_tokens

    def use(self) -> ModelUse:
        return ModelUse(**{name: getattr(self, name) for name in self.__slots__})


class _Tally:
    """What one role used so far."""

    def __init__(self) -> None:
        self.spent = _Sum()
        self.reused = _Sum()
        self.without_usage = 0
        self.unusable = 0
        self.mended: Counter[Mending] = Counter()

    def use(self) -> RoleUse:
        return RoleUse(
            spent=self.spent.use(),
            reused=self.reused.use(),
            without_usage=self.without_usage,
            unusable=self.unusable,
            mended=dict(sorted(self.mended.items())),
        )


def is_silent(completion: Completion) -> bool:
    """Whether the endpoint reported neither tokens nor cost."""
    return not (completion.usage.input_tokens or completion.usage.output_tokens) and completion.cost_usd is None


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
        self.limits_size = self.budget.max_tokens is not None or self.budget.max_cost is not None
        """Whether it has to be known how large calls are, also where the endpoint does not say."""
        self.limits_anything = self.limits_size or self.budget.max_calls is not None
        """Whether there is a budget at all."""
        self._earlier = earlier or MeterReport()
        self._counted = MeterReport()
        """What parts of this run counted with meters of their own."""
        self._tallies: dict[str, _Tally] = {}
        self._billed = Bill()
        self._reserved = Bill()
        self._changed = asyncio.Event()
        """Set, and replaced, when a call ends: wakes the calls that wait for what it leaves."""

    def report(self) -> MeterReport:
        """Use of this run."""
        return self._counted + MeterReport(roles={role: tally.use() for role, tally in self._tallies.items()})

    def total(self) -> MeterReport:
        """Use of this run and of those that it resumes."""
        return self._earlier + self.report()

    def count(self, report: MeterReport) -> None:
        """Count what a part of this run used that had a meter of its own."""
        self._counted = self._counted + report

    def count_spent(self, role: str, completion: Completion) -> None:
        """Count a reply that a model gave now."""
        tally = self._tally(role)
        tally.spent.add(completion)
        tally.without_usage += is_silent(completion)

    def count_reused(self, role: str, completion: Completion) -> None:
        """Count a reply that came from the cache."""
        self._tally(role).reused.add(completion)

    def count_unusable(self, role: str, replies: int) -> None:
        """Count replies that whoever asked could not use."""
        self._tally(role).unusable += replies

    def count_mended(self, role: str, mendings: Iterable[Mending]) -> None:
        """Count a reply that was used after this was made good in it."""
        for mending in mendings:
            self._tally(role).mended[mending] += 1

    def _tally(self, role: str) -> _Tally:
        tally = self._tallies.get(role)
        if tally is None:
            tally = self._tallies[role] = _Tally()
        return tally

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


class MeteredModel(ModelAround):
    """A model whose calls are counted under the role that asks, within the budget of a meter."""

    def __init__(self, model: ChatModel, meter: Meter, *, cost_of: CostOf) -> None:
        """
        Args:
            cost_of: price of a call of this model, to hold back the cost of calls in flight.
        """
        super().__init__(model)
        self._meter = meter
        self._cost_of = cost_of
        self._output_tokens = _FIRST_OUTPUT_TOKENS

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request, and count it.

        Raises:
            BudgetExhausted: if the budget does not allow the call.
        """
        if not self._meter.limits_anything:
            completion = await self._model.complete(request)
            self._meter.count_spent(request.role, completion)
            return completion
        if not self._meter.limits_size:
            # The whole conversation is not looked through at every turn for what nobody asks.
            guess = Bill(calls=1)
        else:
            output_tokens = request.sampling.max_tokens or self._output_tokens
            usage = Usage(input_tokens=_tokens_of(_text_of(request)), output_tokens=output_tokens)
            guess = self._bill_of(usage, self._cost_of(usage))
        async with self._meter.reserve(guess):
            completion = await self._model.complete(request)
            usage, cost = completion.usage, completion.cost_usd
            if self._meter.limits_size and is_silent(completion):
                usage = Usage(
                    input_tokens=_tokens_of(_text_of(request)), output_tokens=_tokens_of(_text_in(completion))
                )
                cost = self._cost_of(usage)
            self._meter.bill(self._bill_of(usage, cost))
            self._meter.count_spent(request.role, completion)
            # The last reply is a fair guess for the next one, and needs no memory of all that came before.
            self._output_tokens = usage.output_tokens
        return completion

    @staticmethod
    def _bill_of(usage: Usage, cost: float | None) -> Bill:
        return Bill(calls=1, tokens=usage.input_tokens + usage.output_tokens, cost=cost or 0.0)


_FIRST_OUTPUT_TOKENS = 500


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
