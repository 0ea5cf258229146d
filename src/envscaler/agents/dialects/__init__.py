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
    TextDialect,
    prompt_file_digest,
)
from envscaler.agents.dialects.hermes import HermesDialect
from envscaler.agents.dialects.llama import LlamaDialect
from envscaler.agents.dialects.mistral import MistralDialect
from envscaler.agents.dialects.native import NativeDialect
from envscaler.agents.dialects.qwen35 import Qwen35Dialect
from envscaler.agents.dialects.react import ReactDialect
from envscaler.agents.dialects.schema import SchemaDialect
from envscaler.agents.dialects.slips import LIKELY, SLIPS, complaint
from envscaler.errors import require_one_of

_CLASSES: dict[DialectName, type[TextDialect]] = {
    "native": NativeDialect,
    "hermes": HermesDialect,
    "qwen3.5": Qwen35Dialect,
    "llama": LlamaDialect,
    "mistral": MistralDialect,
    "react": ReactDialect,
    "schema": SchemaDialect,
}

DIALECTS: tuple[DialectName, ...] = get_args(DialectName)


def dialect_of(name: DialectName, *, parallel: bool = True, reasoning: Kept | None = None) -> TextDialect:
    """The dialect of that name.

    Args:
        parallel: whether the model is told that it may make several calls at once.
        reasoning: which reasoning of earlier replies it is shown again; None: what its family is used to.

    Raises:
        UsageError: if there is none.
    """
    require_one_of("dialect", name, DIALECTS)
    return _CLASSES[name](parallel=parallel, reasoning=reasoning)


__all__ = [
    "DIALECTS",
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
]
