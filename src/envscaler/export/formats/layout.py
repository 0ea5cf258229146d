"""`SftFormat`: how one trainer wants its rows, and the exception for an episode that it cannot take.

Which episodes are exported is the business of `selection`, into what kind of file that of `files`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from envscaler.export.files import Column
from envscaler.export.messages import Chat, Row
from envscaler.trajectory import Trajectory

THINK = "<think>"
END_THINK = "</think>"


class Unfit(Exception):
    """An episode that a format has no place for; the message says why, in the same words for the same reason."""

    def __init__(self, reason: str, detail: str | None = None) -> None:
        """
        Args:
            detail: what was wrong with this one, for whoever looks into it.
        """
        super().__init__(reason)
        self.detail = detail


RowOf = Callable[[Chat, Trajectory], Row]

Splitting = Literal["whole", "stretches", "turns"]
"""What is one row: a conversation; what is learned of it in one stretch (without a template: a turn); or a turn."""


@dataclass(frozen=True)
class SftFormat:
    """What one trainer takes."""

    name: str
    summary: str
    """One sentence for whoever chooses."""
    row: RowOf
    """The row of one conversation, or of the part of it that is one row; raises `Unfit`."""
    columns: dict[str, Column]
    """Types of the columns in a Parquet file."""
    prepare: Callable[[Chat], Chat] | None = None
    """What is made of a conversation before it is split."""
    splitting: Splitting = "whole"
    cut: bool = True
    """Whether the trainer renders the row with the model's template, so that samples can be cut by that."""
    tokens: bool = False
    """Whether rows are tokens, so that there are none without a template and a tokenizer."""
    structured: bool = False
    """Whether calls stand as calls also where they were played as text."""
    parquet_only: bool = False
    """Whether the trainer reads nothing else."""
    as_list: bool = False
    """Whether a file that is not named `.jsonl` holds one JSON list, as others' readers of this format expect."""
    companions: Callable[[Path], dict[Path, bytes]] = field(default=lambda out: {})
    """Files that the trainer wants beside the rows."""


def json_of(value: Any) -> str:
    """JSON in one line as templates write it, characters as they are."""
    return json.dumps(value, ensure_ascii=False)


def thought(message: Row) -> str:
    """The reasoning of a message as text before what it says, as Qwen and others write it; empty without any.

    Raises:
        Unfit: if the reasoning holds the mark that would end it.
    """
    reasoning = message.get("reasoning_content")
    if not reasoning:
        return ""
    if END_THINK in reasoning:
        raise Unfit(f"reasoning that holds {END_THINK}")
    return f"{THINK}\n{reasoning.strip(chr(10))}\n{END_THINK}\n\n"


def calls_of(message: Row) -> list[Row]:
    """Name and arguments of each call of a message."""
    return [call["function"] for call in message.get("tool_calls", ())]


def require_all_learned(chat: Chat, trainer: str) -> None:
    """
    Raises:
        Unfit: if some of the agent's messages are not to be learned.
    """
    if not chat.all_learned:
        raise Unfit(f"a sample with turns that are not learned, which {trainer} cannot leave out")
