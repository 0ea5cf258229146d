"""Rows for verl as its data sets of fine-tuning and of reinforcement learning read them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("verl", reason="verl is not installed here: make test-trainers makes the place for it")

from omegaconf import OmegaConf
from trainers.conversations import chats_of
from trainers.masks import learned
from transformers import AutoTokenizer
from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset
from verl.utils.dataset.rl_dataset import RLHFDataset, collate_fn

from envscaler.export import export_rl, export_sft
from envscaler.store import LibraryStore

pytestmark = pytest.mark.trainers


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(tokenizer_folder)


def test_every_turn_is_learned_and_its_own_check_holds(run: Path, tokenizer: Any, tmp_path: Path) -> None:
    out = tmp_path / "rows.parquet"
    export_sft(run, out, format="verl")
    tokenizer.chat_template = (tmp_path / "rows.chat_template.jinja").read_text(encoding="utf-8")
    settings = OmegaConf.create({"max_length": 32_768, "pad_mode": "no_padding", "truncation": "error"})
    dataset = MultiTurnSFTDataset(str(out), tokenizer, settings)
    chats = chats_of(run)
    assert len(dataset) == len(chats)
    for index, chat in enumerate(chats):
        # Reading a row compares it with the conversation rendered at once, and raises where they differ.
        row = dataset[index]
        turns = learned(row["input_ids"], row["loss_mask"], tokenizer)
        said = [message for message in chat["messages"] if message["role"] == "assistant"]
        assert len(turns) == len(said)
        for text, message in zip(turns, said, strict=True):
            assert message["content"] in text
            assert message.get("reasoning_content", "") in text
            assert text.rstrip().endswith("<|im_end|>")
            for call in message.get("tool_calls", ()):
                assert f'"name": "{call["function"]["name"]}"' in text


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_prompts_for_reinforcement_learning_come_with_what_opens_the_scenario(
    ending: str, exported: tuple[LibraryStore, Path], tokenizer: Any, tmp_path: Path
) -> None:
    store, _ = exported
    out = tmp_path / f"rows.{ending}"
    report = export_rl(store, out, format="verl")
    settings = OmegaConf.create(
        {"cache_dir": str(tmp_path / "cache"), "max_prompt_length": 8192, "filter_overlong_prompts": True}
    )
    dataset = RLHFDataset([str(out)], tokenizer, settings)
    assert len(dataset) == report.kept > 0
    batch = collate_fn([dataset[index] for index in range(len(dataset))])
    assert [row["scenario_id"] for row in batch["extra_info"]] == [row.id for row in store.scenarios("lending-desk")]
    assert all(messages[0]["role"] == "system" for messages in batch["raw_prompt"])
    assert all(batch["agent_name"])
    assert all(batch["data_source"])
