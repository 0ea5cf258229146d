"""Rows for verl's `MultiTurnSFTDataset`: everything is text already when it reads them.

Parquet would merge the schemas of tools, and arguments of calls, into one with nulls; verl refuses them as JSON
strings; and it renders message by message, which templates with calls do not survive. Plain text does.

Source: verl 0.9, utils/dataset/multiturn_sft_dataset.py.
"""

from __future__ import annotations

from pathlib import Path

from envscaler.export.formats.layout import SftFormat, require_all_learned, thought
from envscaler.export.formats.qwen import plain_chat
from envscaler.export.messages import Chat, Row
from envscaler.trajectory import Trajectory

_CHATML = (
    "{%- for message in messages -%}"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' -}}"
    "{%- endfor -%}"
    "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}"
)
"""Stock templates write the last message otherwise than the ones before, which verl's check refuses."""


def _row(chat: Chat, trajectory: Trajectory) -> Row:
    require_all_learned(chat, "verl")
    messages = [
        {"role": message["role"], "content": thought(message) + message["content"]} for message in chat.messages
    ]
    return {"messages": messages}


def _companions(out: Path) -> dict[Path, bytes]:
    return {out.with_name(f"{out.stem}.chat_template.jinja"): _CHATML.encode()}


VERL = SftFormat(
    name="verl",
    summary="Parquet with `messages` for verl, tools and calls written into the text as Qwen writes them, with the "
    "ChatML template that renders them message by message.",
    row=_row,
    columns={"messages": [{"role": "string", "content": "string"}]},
    prepare=plain_chat,
    cut=False,
    parquet_only=True,
    companions=_companions,
)
