"""Standing rules: which of those that can be evaluated hold before and after a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from envscaler.sandbox import DEFAULT_CLOCK, CheckOutcome
from envscaler.skeleton import Rule
from envscaler.state import State


class Evaluator(Protocol):
    """What evaluates expressions over a state: a `Sandbox`, or a `Judge` for several times."""

    async def evaluate(
        self, expressions: Sequence[str], state: State, *, clock: str = DEFAULT_CLOCK
    ) -> tuple[CheckOutcome, ...]:
        """As `Sandbox.evaluate`."""
        ...


@dataclass(frozen=True)
class Standing:
    """Rules that held before a call, and those of them that do not after it."""

    held: tuple[Rule, ...]
    broken: tuple[Rule, ...]


async def standing_of(
    evaluator: Evaluator, rules: Sequence[Rule], before: State, after: State, *, clock: str = DEFAULT_CLOCK
) -> Standing:
    """Evaluate the rules that have a predicate and are not known to be left to nobody.

    Raises:
        SandboxError: if no process can be started.
    """
    told = tuple(rule for rule in rules if is_evaluated(rule))
    if not told:
        return Standing((), ())
    first = await evaluator.evaluate([str(rule.predicate) for rule in told], before, clock=clock)
    held = tuple(rule for rule, outcome in zip(told, first, strict=True) if outcome.value is True)
    if not held or after is before:
        return Standing(held, ())
    second = await evaluator.evaluate([str(rule.predicate) for rule in held], after, clock=clock)
    return Standing(held, tuple(rule for rule, outcome in zip(held, second, strict=True) if outcome.value is not True))


def is_evaluated(rule: Rule) -> bool:
    """Whether a rule can be read, and the program is to enforce it."""
    return rule.predicate is not None and rule.enforced is not False
