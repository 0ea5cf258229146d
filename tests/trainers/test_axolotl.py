"""Rows for Axolotl as its `chat_template` strategy makes tokens of them, by the YAML that the export wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("axolotl", reason="Axolotl is not installed here: make test-trainers makes the place for it")

from axolotl.prompt_strategies.chat_template import load
from axolotl.utils.dict import DictDefault
from datasets import load_dataset
from trainers.conversations import chats_of
from trainers.masks import learned
from transformers import AutoTokenizer

from envscaler.export import export_sft

pytestmark = pytest.mark.trainers

CHATML = """\
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.reasoning_content %}<think>
{{ message.reasoning_content }}
</think>

{% endif %}{{ message.content }}{% if message.tool_calls %}{% for call in message.tool_calls %}

<tool_call>
{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}
</tool_call>{% endfor %}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""
"""It looks in the template which keys of a message are used, and finds those of `message` only."""


@pytest.fixture(scope="module")
def tokenizer(tokenizer_folder: Path) -> Any:
    found = AutoTokenizer.from_pretrained(tokenizer_folder)
    found.chat_template = CHATML
    found.eos_token = "<|im_end|>"
    return found


def test_every_turn_is_learned_and_nothing_else(run: Path, tokenizer: Any, tmp_path: Path) -> None:
    export_sft(run, tmp_path / "rows.jsonl", format="axolotl")
    settings = yaml.safe_load((tmp_path / "rows.axolotl.yaml").read_text(encoding="utf-8"))
    (entry,) = settings["datasets"]
    strategy = load(tokenizer, DictDefault({"sequence_len": 32_768, "train_on_inputs": False, **settings}), entry)
    dataset = load_dataset("json", data_files=str(tmp_path / "rows.jsonl"), split="train", cache_dir=str(tmp_path))
    chats = chats_of(run)
    assert len(dataset) == len(chats)
    for row, chat in zip(dataset, chats, strict=True):
        made = strategy.tokenize_prompt(row)
        turns = learned(made["input_ids"], (label != -100 for label in made["labels"]), tokenizer)
        said = [message for message in chat["messages"] if message["role"] == "assistant"]
        assert len(turns) == len(said)
        for text, message in zip(turns, said, strict=True):
            assert message["content"] in text
            assert message.get("reasoning_content", "") in text
            for call in message.get("tool_calls", ()):
                assert f'"name": "{call["function"]["name"]}"' in text
        assert "null" not in tokenizer.decode(made["input_ids"]).replace('"phone": null', "")
