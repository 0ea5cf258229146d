"""Rows of token ids: what serving shows and which of it is learned, with nothing left to the trainer's own rendering.

TRL renders an episode with a template of its own where only some of it is learned, and that one keeps reasoning that
Qwen3 drops. Rows of tokens it takes as they are, as do Axolotl and whatever trains on `input_ids` and `labels`.

Source: TRL 1.16, SFTTrainer's pre-tokenized data sets.
"""

from __future__ import annotations

from envscaler.export.formats.layout import SftFormat
from envscaler.export.messages import Chat, Row
from envscaler.trajectory import Trajectory

_IGNORED = -100
"""Label of a token that is not learned, everywhere."""


def _row(chat: Chat, trajectory: Trajectory) -> Row:
    return {
        "input_ids": [token for token, _ in chat.tokens],
        "labels": [token if learned else _IGNORED for token, learned in chat.tokens],
    }


TOKENS = SftFormat(
    name="tokens",
    summary="`input_ids` and `labels`, exactly as served, for TRL and others; needs --template and --tokenizer.",
    row=_row,
    columns={"input_ids": ["int64"], "labels": ["int64"]},
    tokens=True,
)
