"""Rows for TRL as its own SFTTrainer prepares them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="TRL is not installed here: make test-trainers makes the place for it")

from datasets import Dataset, load_dataset
from trainers.conversations import calls_of, chats_of, rows_in
from trainers.masks import learned
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import SFTConfig, SFTTrainer

from envscaler.export import SftFilters, export_sft
from envscaler.export.messages import chat_of
from envscaler.export.segmentation import segments
from envscaler.export.templates import ChatTemplate
from envscaler.export.tokens import load_tokenizer
from envscaler.store import RunStore

pytestmark = pytest.mark.trainers
TEMPLATES = ("qwen3", "qwen2_5", "qwen3_instruct_2507")


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tokenizer_folder)


def prepared(dataset: Any, tokenizer: Any, folder: Path, **settings: Any) -> list[dict[str, Any]]:
    """Tokens and labels that SFTTrainer makes of a data set."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=1,
        num_key_value_heads=1,
    )
    arguments = SFTConfig(
        output_dir=str(folder / "out"), max_length=None, report_to=[], use_cpu=True, bf16=False, **settings
    )
    trainer = SFTTrainer(LlamaForCausalLM(config), arguments, train_dataset=dataset, processing_class=tokenizer)
    return list(trainer.train_dataset)


@pytest.mark.parametrize("how", ["file", "list", "parquet"])
def test_messages_come_back_as_they_were_played(how: str, run: Path, tmp_path: Path) -> None:
    out = tmp_path / ("rows.parquet" if how == "parquet" else "rows.jsonl")
    export_sft(run, out)
    if how == "file":
        dataset = load_dataset("json", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    elif how == "parquet":
        dataset = load_dataset("parquet", data_files=str(out), split="train", cache_dir=str(tmp_path / "cache"))
    else:
        dataset = Dataset.from_list(rows_in(out), on_mixed_types="use_json")
    expected = chats_of(run)
    assert len(dataset) == len(expected)
    for row, chat in zip(dataset, expected, strict=True):
        assert calls_of(row["messages"]) == calls_of(chat["messages"])
        assert row["tools"] == chat["tools"]


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_turn_of_an_episode_is_learned_and_nothing_else(
    name: str, run: Path, tokenizer: Any, tmp_path: Path
) -> None:
    template = ChatTemplate.load(name)
    tokenizer.chat_template = template.source
    export_sft(run, tmp_path / "rows.jsonl")
    dataset = Dataset.from_list(rows_in(tmp_path / "rows.jsonl"), on_mixed_types="use_json")
    rows = prepared(dataset, tokenizer, tmp_path, assistant_only_loss=True)
    episodes = list(RunStore(run).trajectories())
    assert len(rows) == len(episodes)
    for row, episode in zip(rows, episodes, strict=True):
        turns = learned(row["input_ids"], (label != -100 for label in row["labels"]), tokenizer)
        chat = chat_of(episode)
        assert len(turns) == len(chat.turns)
        for text, turn in zip(turns, chat.turns, strict=True):
            assert chat.messages[turn]["content"] in text
            assert text.rstrip().endswith("<|im_end|>")
            assert "<tool_response>" not in text


@pytest.mark.parametrize("name", TEMPLATES)
def test_prompts_and_completions_cut_by_a_template_are_what_serving_shows(
    name: str, run: Path, tokenizer: Any, tmp_path: Path
) -> None:
    template = ChatTemplate.load(name)
    tokenizer.chat_template = template.source
    export_sft(run, tmp_path / "rows.jsonl", SftFilters(), format="trl-prompt-completion", template=template)
    written = rows_in(tmp_path / "rows.jsonl")
    dataset = Dataset.from_list(written, on_mixed_types="use_json")
    rows = prepared(dataset, tokenizer, tmp_path, completion_only_loss=True)
    prompts = set()
    for episode in RunStore(run).trajectories():
        chat = chat_of(episode)
        for segment in segments(chat.messages, chat.tools, template):
            prompts |= {segment.text[:start] for start, _ in segment.spans}
    for row, source in zip(rows, written, strict=True):
        ids, labels = row["input_ids"], row["labels"]
        start = next(at for at, label in enumerate(labels) if label != -100)
        prompt = template.render(source["prompt"], source["tools"], add_generation_prompt=True)
        assert prompt in prompts
        assert ids[:start] == tokenizer(prompt, add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("name", [*TEMPLATES, "qwen3_5_think", "llama3_1"])
def test_rows_of_tokens_are_taken_as_they_are(
    name: str, run: Path, tokenizer: Any, tokenizer_folder: Path, tmp_path: Path
) -> None:
    template = ChatTemplate.load(name, variables={"bos_token": "<|begin_of_text|>"})
    encode = load_tokenizer(tokenizer_folder)
    report = export_sft(run, tmp_path / "rows.jsonl", format="tokens", template=template, encode=encode)
    dataset = load_dataset("json", data_files=str(tmp_path / "rows.jsonl"), split="train", cache_dir=str(tmp_path))
    rows = prepared(dataset, tokenizer, tmp_path)
    expected: list[tuple[list[int], list[int]]] = []
    for episode in RunStore(run).trajectories():
        chat = chat_of(episode)
        if name == "llama3_1" and episode.id == "parallel":
            # Llama's template takes one call a turn.
            continue
        for segment in segments(chat.messages, chat.tools, template, encode):
            labels = [token if is_learned else -100 for token, is_learned in segment.tokens()]
            expected.append((list(segment.token_ids or ()), labels))
    assert [(row["input_ids"], row["labels"]) for row in rows] == expected
    assert len(rows) == report.kept
