"""Shows a trace in a terminal: each question with its reply, what was made good in it and what was wrong with it.

Reading is `llm.tracing`'s.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from envscaler.cli.output import Indented, money, text_of
from envscaler.llm.chat import Mending
from envscaler.llm.tracing import Exchange, Fault, Mended, read_trace
from envscaler.messages import AssistantMessage


@dataclass(frozen=True)
class Seen:
    """An exchange, and what was made of the reply."""

    index: int
    """Its place among all of the trace."""
    exchange: Exchange
    faults: tuple[str, ...]
    """What was wrong with the reply."""
    mended: tuple[Mending, ...]
    """What had to be made good before it could be read."""


def exchanges_of(path: Path, which: str | None = None) -> Iterator[Seen]:
    """The exchanges of a trace in its order.

    Args:
        which: a role, or a part of what exchanges are about; None: all.
    """
    # What is made of a reply is found out, and written, after the reply: only those lines are kept in memory.
    faults: dict[str, tuple[str, ...]] = {}
    mended: dict[str, tuple[Mending, ...]] = {}
    for line in read_trace(path):
        if isinstance(line, Fault):
            faults[line.id] = (*faults.get(line.id, ()), f"{line.kind}: {line.fault}")
        elif isinstance(line, Mended):
            mended[line.id] = line.mended
    exchanges = (line for line in read_trace(path) if isinstance(line, Exchange))
    for index, exchange in enumerate(exchanges):
        if which is None or which == exchange.role or which in (exchange.subject or ""):
            yield Seen(index, exchange, faults.get(exchange.id, ()), mended.get(exchange.id, ()))


def show_exchange(seen: Seen, out: Console) -> None:
    """One exchange as a block."""
    exchange = seen.exchange
    out.print(Text.assemble((f"#{seen.index} ", "dim"), text_of(exchange.role, "bold cyan"), text_of(_told(exchange))))
    for message in exchange.messages:
        out.print(text_of(message.role, "dim"))
        out.print(Indented(text_of(_text(message) if isinstance(message, AssistantMessage) else message.content), 2))
    if exchange.tools:
        out.print(text_of(f"tools: {', '.join(exchange.tools)}", "dim"))
    if exchange.reply is not None:
        out.print(text_of(f"reply ({exchange.finish_reason})", "green"))
        if exchange.reply.reasoning:
            out.print(Indented(text_of(exchange.reply.reasoning, "dim italic"), 2))
        out.print(Indented(text_of(_text(exchange.reply)), 2))
    if exchange.error is not None:
        out.print(text_of(f"no reply: {exchange.error}", "red"))
    if seen.mended:
        out.print(text_of(f"mended: {', '.join(seen.mended)}", "yellow"))
    for fault in seen.faults:
        out.print(text_of(f"not used: {fault}", "red"))
    out.print()


def _told(exchange: Exchange) -> str:
    usage = exchange.usage
    parts = [exchange.subject, exchange.model]
    if exchange.sample or exchange.attempt:
        parts.append(f"sample {exchange.sample}, attempt {exchange.attempt + 1}")
    sampling = exchange.sampling.model_dump(exclude_defaults=True)
    parts += [f"{name} {value}" for name, value in sampling.items()]
    if usage.input_tokens or usage.output_tokens:
        parts.append(f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens")
    if exchange.cost_usd:
        parts.append(money(exchange.cost_usd))
    if exchange.latency_s:
        parts.append(f"{exchange.latency_s:.1f} s")
    if exchange.cached:
        parts.append("from the cache")
    return "".join(f" · {part}" for part in parts if part)


def _text(message: AssistantMessage) -> str:
    calls = [f"{call.name}({json.dumps(call.arguments, ensure_ascii=False)})" for call in message.tool_calls]
    return "\n".join(filter(None, [message.content, *calls])) or "(nothing)"
