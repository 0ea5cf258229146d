"""How models of different families are told of tools, and how their replies are read: one dialect each."""

from __future__ import annotations

from typing import get_args

from envscaler.agents.dialects.choosing import choose_dialect
from envscaler.agents.dialects.dialect import (
    Dialect,
    DialectName,
    Kept,
    Memory,
    Reading,
)
from envscaler.agents.dialects.hermes import HermesDialect
from envscaler.agents.dialects.llama import LlamaDialect
from envscaler.agents.dialects.mistral import MistralDialect
from envscaler.agents.dialects.native import NativeDialect
from envscaler.agents.dialects.qwen35 import Qwen35Dialect
from envscaler.agents.dialects.react import ReactDialect
from envscaler.agents.dialects.schema import SchemaDialect
from envscaler.agents.dialects.slips import EMPTY_REPLY, LIKELY, SLIPS, complaint
from envscaler.agents.dialects.text_dialect import TextDialect, prompt_file_digest
from envscaler.errors import require_one_of

DIALECTS: tuple[DialectName, ...] = get_args(DialectName)

_TEXT: dict[DialectName, type[TextDialect]] = {
    "hermes": HermesDialect,
    "qwen3.5": Qwen35Dialect,
    "llama": LlamaDialect,
    "mistral": MistralDialect,
    "react": ReactDialect,
    "schema": SchemaDialect,
}


def dialect_of(name: DialectName, *, parallel: bool = True, reasoning: Kept | None = None) -> Dialect:
    """The dialect of that name.

    Args:
        parallel: whether the model is told that it may make several calls at once.
        reasoning: which reasoning of earlier replies it is shown again; None: what its family is used to.

    Raises:
        UsageError: if there is none.
    """
    require_one_of("dialect", name, DIALECTS)
    if name == "native":
        return NativeDialect(parallel=parallel, reasoning=reasoning)
    return text_dialect_of(name, parallel=parallel, reasoning=reasoning)


def text_dialect_of(name: DialectName, *, parallel: bool = True, reasoning: Kept | None = None) -> TextDialect:
    """As `dialect_of`, for whoever needs calls and results as text.

    Raises:
        UsageError: if there is none, or its calls are no text.
    """
    require_one_of("dialect of calls as text", name, tuple(_TEXT))
    return _TEXT[name](parallel=parallel, reasoning=reasoning)


__all__ = [
    "DIALECTS",
    "EMPTY_REPLY",
    "LIKELY",
    "SLIPS",
    "Dialect",
    "DialectName",
    "HermesDialect",
    "Kept",
    "LlamaDialect",
    "Memory",
    "MistralDialect",
    "NativeDialect",
    "Qwen35Dialect",
    "ReactDialect",
    "Reading",
    "SchemaDialect",
    "TextDialect",
    "choose_dialect",
    "complaint",
    "dialect_of",
    "prompt_file_digest",
    "text_dialect_of",
]
