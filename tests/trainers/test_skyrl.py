"""Rows for SkyRL as its data set of prompts reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("skyrl", reason="SkyRL is not installed here: make test-trainers makes the place for it")

from skyrl.train.dataset.dataset import PromptDataset
from transformers import AutoTokenizer

from envscaler.export import export_rl
from envscaler.store import LibraryStore

pytestmark = pytest.mark.trainers


@pytest.mark.parametrize("ending", ["parquet", "jsonl"])
def test_prompts_come_with_their_environment_and_what_opens_the_scenario(
    ending: str, exported: tuple[LibraryStore, Path], tokenizer_folder: Path, tmp_path: Path
) -> None:
    store, _ = exported
    out = tmp_path / f"rows.{ending}"
    report = export_rl(store, out, format="skyrl")
    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    dataset = PromptDataset(str(out), tokenizer, max_prompt_length=8192, num_workers=1)
    assert len(dataset) == report.kept > 0
    batch = dataset.collate_fn([dataset[index] for index in range(len(dataset))])
    assert {row["env_class"] for row in batch} == {"envscaler"}
    assert [row["env_extras"]["scenario_id"] for row in batch] == [row.id for row in store.scenarios("lending-desk")]
    assert [[message["role"] for message in row["prompt"]] for row in batch] == [["system", "user"]] * len(batch)
