"""How each trainer wants its rows of supervised fine-tuning: one module a family."""

from envscaler.errors import require_one_of
from envscaler.export.formats.authors import RELEASED
from envscaler.export.formats.axolotl import AXOLOTL
from envscaler.export.formats.layout import SftFormat, Unfit
from envscaler.export.formats.llamafactory import ALPACA, SHAREGPT
from envscaler.export.formats.swift import SWIFT
from envscaler.export.formats.tokens import TOKENS
from envscaler.export.formats.trl import TRL, TRL_PROMPT_COMPLETION
from envscaler.export.formats.verl import VERL

SFT_FORMATS: dict[str, SftFormat] = {
    entry.name: entry
    for entry in (TRL, TRL_PROMPT_COMPLETION, SHAREGPT, ALPACA, SWIFT, AXOLOTL, VERL, TOKENS, RELEASED)
}


def sft_format(name: str) -> SftFormat:
    """The format of that name.

    Raises:
        UsageError: if there is none.
    """
    require_one_of("format", name, SFT_FORMATS)
    return SFT_FORMATS[name]


__all__ = ["SFT_FORMATS", "SftFormat", "Unfit", "sft_format"]
