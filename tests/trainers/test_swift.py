"""Rows for ms-swift as its own loader and preprocessors read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("swift", reason="ms-swift is not installed here: make test-trainers makes the place for it")

from swift.dataset import load_dataset
from swift.template import StdTemplateInputs
from trainers.conversations import calls_of, chats_of

from envscaler.export import export_sft

pytestmark = pytest.mark.trainers


def test_no_row_is_dropped_and_calls_are_those_that_were_played(run: Path, tmp_path: Path) -> None:
    export_sft(run, tmp_path / "rows.jsonl", format="swift")
    dataset, _ = load_dataset(str(tmp_path / "rows.jsonl"), strict=True, load_from_cache_file=False)
    chats = chats_of(run)
    assert len(dataset) == len(chats)
    for row, chat in zip(dataset, chats, strict=True):
        inputs = StdTemplateInputs.from_dict(dict(row))
        tools = [tool if isinstance(tool, dict) else json.loads(tool) for tool in inputs.tools]
        assert tools == chat["tools"]
        written = [json.loads(message["content"]) for message in row["messages"] if message["role"] == "tool_call"]
        assert written == [
            {"name": call["name"], "arguments": call["arguments"]} for call in calls_of(chat["messages"])
        ]
        text = "".join(message["content"] for message in row["messages"])
        assert all(message.get("reasoning_content", "") in text for message in chat["messages"])
        assert all(message["content"] in text for message in chat["messages"] if message["role"] == "tool")
