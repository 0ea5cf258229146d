"""Words what a run spent on its models, and what went wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from envscaler.cli.output import money
from envscaler.report.wording import count

if TYPE_CHECKING:
    from rich.console import Console

    from envscaler.models import Faults
    from envscaler.skeleton import ModelUse


def spent_text(calls: int, tokens: int, cost_usd: float | None) -> str:
    """What a run spent, in a few words."""
    return f"{calls:,} calls · {tokens:,} tokens · {money(cost_usd)}"


def faults_text(faults: Faults) -> str:
    """What was tried again or made good, in a few words; empty when nothing went wrong."""
    parts = []
    if faults.requests:
        kinds = ", ".join(f"{number:,} {kind.replace('_', ' ')}" for kind, number in faults.requests.items())
        parts.append(f"{count(sum(faults.requests.values()), 'failed request')} ({kinds})")
    if faults.replies:
        parts.append(f"{count(faults.replies, 'reply', 'replies')} that could not be used")
    if faults.mended:
        kinds = ", ".join(f"{number:,} {mending}" for mending, number in faults.mended.items())
        parts.append(f"{count(sum(faults.mended.values()), 'slip')} of form made good ({kinds})")
    return " and ".join(parts)


def show_spent(spent: ModelUse, faults: Faults, out: Console) -> None:
    """One line on calls, tokens and cost; another one when something went wrong."""
    from rich.text import Text

    if spent.calls:
        tokens = spent.input_tokens + spent.output_tokens
        out.print(f"Spent now: {spent_text(spent.calls, tokens, spent.cost_usd)}")
    else:
        out.print("Spent now: nothing; no model was asked.")
    if text := faults_text(faults):
        out.print(Text(f"On the way: {text}.", "yellow"))
