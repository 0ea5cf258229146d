"""Rows for Axolotl's `chat_template` datasets, and the part of its configuration that reads them.

Source: Axolotl 0.19, prompt_strategies/chat_template.py: JSON strings are decoded, every null is taken out before.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from envscaler.export.formats.layout import SftFormat, json_of
from envscaler.export.messages import Chat, Row
from envscaler.trajectory import Trajectory

_TRAINED = "training"


def _row(chat: Chat, trajectory: Trajectory) -> Row:
    learned = None if chat.all_learned else set(chat.learned or ())
    messages = [_message(message, learned, index) for index, message in enumerate(chat.messages)]
    return {"messages": messages, "tools": json_of(list(chat.tools))}


def _message(message: Row, learned: set[int] | None, index: int) -> Row:
    row = dict(message)
    if "tool_calls" in message:
        # As text, arguments keep the nulls that they really have, and none of another call is merged in.
        row["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": json_of(call["function"]["arguments"])}}
            for call in message["tool_calls"]
        ]
    if learned is not None and message["role"] == "assistant":
        row[_TRAINED] = index in learned
    return row


def _companions(out: Path) -> dict[Path, bytes]:
    dataset = {
        "path": out.name,
        "ds_type": "parquet" if out.suffix == ".parquet" else "json",
        "type": "chat_template",
        "field_messages": "messages",
        "field_tools": "tools",
        "field_thinking": "reasoning_content",
        "template_thinking_key": "reasoning_content",
        "message_field_training": _TRAINED,
        "roles_to_train": ["assistant"],
        "train_on_eos": "turn",
    }
    text = yaml.safe_dump({"chat_template": "tokenizer_default", "datasets": [dataset]}, sort_keys=False)
    return {out.with_name(f"{out.stem}.axolotl.yaml"): text.encode()}


AXOLOTL = SftFormat(
    name="axolotl",
    summary="`messages` and `tools` for Axolotl's `chat_template`, with the YAML that reads them beside the file.",
    row=_row,
    columns={"messages": "json", "tools": "string"},
    companions=_companions,
)
