"""Rows for LLaMA-Factory as its own loader, converters and tool formatter read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("llamafactory", reason="LLaMA-Factory is not installed here: make test-trainers makes its place")

from llamafactory.data.loader import _get_merged_dataset
from llamafactory.data.template import TEMPLATES
from llamafactory.hparams import DataArguments, ModelArguments
from trainers.conversations import calls_of, chats_of, rows_in
from transformers import Seq2SeqTrainingArguments

from envscaler.export import export_sft

pytestmark = pytest.mark.trainers


def loaded(out: Path) -> list[dict[str, Any]]:
    """The data set as its training reads it, by the entry that the export wrote."""
    arguments = DataArguments(dataset_dir=str(out.parent), dataset=out.stem, template="qwen3", overwrite_cache=True)
    training = Seq2SeqTrainingArguments(output_dir=str(out.parent / "out"), use_cpu=True, report_to=[])
    # It reads nothing else of the model's arguments here, and they want a model that is there.
    model = ModelArguments(model_name_or_path="-", cache_dir=str(out.parent / "cache"))
    found = _get_merged_dataset([out.stem], model, arguments, training, "sft")
    assert found is not None
    return list(found)


@pytest.mark.parametrize("name", ["llamafactory-sharegpt", "llamafactory-alpaca"])
def test_no_row_is_skipped(name: str, run: Path, tmp_path: Path) -> None:
    report = export_sft(run, tmp_path / "rows.jsonl", format=name)
    rows = loaded(tmp_path / "rows.jsonl")
    assert len(rows) == len(rows_in(tmp_path / "rows.jsonl")) == report.kept
    for row in rows:
        # What it skips with a warning it leaves without prompt and response.
        assert row["_prompt"]
        assert row["_response"]
        assert row["_system"]


def test_calls_and_tools_of_sharegpt_rows_are_those_that_were_played(run: Path, tmp_path: Path) -> None:
    export_sft(run, tmp_path / "rows.jsonl", format="llamafactory-sharegpt")
    formatter = TEMPLATES["qwen3"].format_tools.tool_utils
    for row, chat in zip(loaded(tmp_path / "rows.jsonl"), chats_of(run), strict=True):
        assert json.loads(row["_tools"]) == chat["tools"]
        assert formatter.tool_formatter(json.loads(row["_tools"]))
        said = [*row["_prompt"], *row["_response"]]
        assert [message["role"] for message in said[::2]] == [
            "user" if message["role"] == "user" else "observation" for message in said[::2]
        ]
        written = [_written(message["content"]) for message in said if message["role"] == "function"]
        calls = [call for text in written for call in formatter.tool_extractor(text)]
        assert [(call.name, json.loads(call.arguments)) for call in calls] == [
            (call["name"], call["arguments"]) for call in calls_of(chat["messages"])
        ]
        for message in chat["messages"]:
            if reasoning := message.get("reasoning_content"):
                assert any(reasoning in part["content"] for part in said)
            if message["role"] == "tool":
                assert any(message["content"] in part["content"] for part in said if part["role"] == "observation")


def _written(content: str) -> str:
    """A call as its template for Qwen 3 writes it into what is learned, up to the end of the turn."""
    template = TEMPLATES["qwen3"]
    (text,) = template.format_function.apply(
        content=content, thought_words=template.thought_words, tool_call_words=template.tool_call_words
    )
    return str(text).removesuffix("<|im_end|>\n")
