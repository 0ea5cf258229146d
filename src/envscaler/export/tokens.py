"""What text becomes for a model: the tokenizer in a folder, as a function from text to token ids.

It needs the package `tokenizers`, which nothing else here does. Where text comes from is not its business.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from envscaler.errors import UsageError

Encode = Callable[[str], Sequence[int]]
"""From text to token ids, with no token added at its beginning or end."""

SPECIAL_TOKENS = frozenset(f"{name}_token" for name in ("bos", "eos", "unk", "sep", "pad", "cls", "mask"))
"""Names under which transformers gives a tokenizer's special tokens to its chat template."""

_PIECES = 8192


def load_tokenizer(folder: Path | str) -> Encode:
    """The tokenizer of a folder with a `tokenizer.json`, or of such a file.

    Raises:
        UsageError: if there is none, it cannot be read, or the package `tokenizers` is missing.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise UsageError("counting tokens needs the package tokenizers: pip install 'envscaler[tokenizers]'") from error
    path = Path(folder)
    file = path / "tokenizer.json" if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"there is no tokenizer in {folder}: name a folder that holds tokenizer.json")
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
        tokenizer = Tokenizer.from_file(str(file))
    except Exception as error:  # the package raises plain exceptions, whatever is wrong with a file
        raise UsageError(f"{file} cannot be read as a tokenizer: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(text: str) -> Sequence[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    return _by_pieces(encode, marks) if (marks := _marks(settings)) else encode


def _by_pieces(encode: Encode, marks: Sequence[str]) -> Encode:
    """The same function, which remembers what lies between two marks: each prompt repeats most of the one before."""
    piece_ids = lru_cache(maxsize=_PIECES)(encode)
    cut = re.compile(f"({'|'.join(map(re.escape, sorted(marks, key=len, reverse=True)))})")

    def encode_pieces(text: str) -> Sequence[int]:
        return [token for piece in cut.split(text) if piece for token in piece_ids(piece)]

    return encode_pieces


def _marks(settings: dict[str, Any]) -> list[str]:
    """Added tokens at which a tokenizer parts every text before anything else, so that what lies between stands alone.

    Empty where the first piece of a text is treated otherwise than the rest, as SentencePiece does with its space.
    """
    text = json.dumps([settings.get("normalizer"), settings.get("pre_tokenizer")])
    if '"Prepend"' in text or '"Metaspace"' in text:
        return []
    added = settings.get("added_tokens") or []
    alone = [
        token["content"]
        for token in added
        if not any(token.get(rule) for rule in ("lstrip", "rstrip", "single_word", "normalized"))
    ]
    return [mark for mark in alone if not any(mark in token["content"] != mark for token in added)]


def special_tokens(folder: Path | str) -> dict[str, str]:
    """Special tokens by name (`bos_token` …) as the settings of a tokenizer's folder give them; empty without any."""
    path = Path(folder)
    found: dict[str, str] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        file = (path if path.is_dir() else path.parent) / name
        try:
            settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        except (OSError, ValueError) as error:
            raise UsageError(f"{file} cannot be read: {error}") from error
        for key in SPECIAL_TOKENS & settings.keys():
            token = settings[key]
            text = token.get("content") if isinstance(token, dict) else token
            if isinstance(text, str):
                found[key] = text
    return found
