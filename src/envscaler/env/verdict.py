"""Turns what check functions said of a final state into a `Verdict`. Running them is the sandbox's business."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence

from envscaler.sandbox import CheckOutcome
from envscaler.scenario import Check, Scenario
from envscaler.trajectory import CheckResult, Verdict


class ResetChecks:
    """Remembers what the checks of a scenario say of its own reset, so that every episode need not ask again."""

    def __init__(self, size: int = 1024) -> None:
        self._size = size
        self._asking: dict[tuple[str, str], asyncio.Lock] = {}
        self._known: OrderedDict[tuple[str, str], tuple[CheckOutcome, ...]] = OrderedDict()

    def get(self, scenario: Scenario, reset_digest: str) -> tuple[CheckOutcome, ...] | None:
        """The outcomes at reset, if they are known."""
        return self._known.get((scenario.digest, reset_digest))

    def put(self, scenario: Scenario, reset_digest: str, outcomes: tuple[CheckOutcome, ...]) -> None:
        """Remember outcomes; the oldest are forgotten when there are too many."""
        self._known[scenario.digest, reset_digest] = outcomes
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    async def found(
        self, scenario: Scenario, reset_digest: str, look: Callable[[], Awaitable[tuple[CheckOutcome, ...]]]
    ) -> tuple[CheckOutcome, ...]:
        """The outcomes at reset: known, or found out by `look`, once for all who ask at the same time."""
        key = (scenario.digest, reset_digest)
        known = self._known.get(key)
        if known is not None:
            return known
        async with self._asking.setdefault(key, asyncio.Lock()):
            known = self._known.get(key)
            if known is None:
                known = await look()
                self.put(scenario, reset_digest, known)
                self._asking.pop(key, None)  # who waits has it; who comes later finds the outcomes
            return known


def verdict_of(
    checks: Sequence[Check], final: Sequence[CheckOutcome], at_reset: Sequence[CheckOutcome] | None
) -> Verdict:
    """The verdict on a final state.

    A check that gave no boolean did not pass. At reset such a check says nothing: `held_at_reset` is None.

    Source: paper section 4, r(τ): an item counts when its function returns True.
    """
    reset: Sequence[CheckOutcome | None] = at_reset if at_reset is not None else [None] * len(checks)
    return Verdict(
        checks=tuple(
            CheckResult(
                description=check.description,
                kind=check.kind,
                passed=outcome.value is True,
                held_at_reset=before.value if before is not None else None,
                error=outcome.error,
            )
            for check, outcome, before in zip(checks, final, reset, strict=True)
        )
    )
