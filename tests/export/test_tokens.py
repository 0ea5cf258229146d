from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.export.tokens import _by_pieces, _marks

ADDED = [
    {"content": "<s>", "normalized": False},
    {"content": "<s>x", "normalized": True},
    {"content": "<e>", "normalized": False},
    {"content": "<l>", "normalized": False, "lstrip": True},
]


def whole(text: str) -> list[int]:
    """A tokenizer that parts texts at `<e>` first, and makes one token of white space and of words."""
    return [hash(part) for part in re.findall(r"<e>|\s+|(?:(?!<e>)\S)+", text)]


@given(st.text(st.sampled_from("ab <>e\n"), max_size=30))
def test_pieces_give_the_tokens_of_the_whole(text: str) -> None:
    assert list(_by_pieces(whole, ["<e>"])(text)) == whole(text)


def test_what_lies_between_marks_is_encoded_once() -> None:
    seen: list[str] = []
    encode = _by_pieces(lambda text: seen.append(text) or [len(text)], ["<e>"])
    encode("one<e>two<e>")
    encode("one<e>two<e>three")
    assert seen == ["one", "<e>", "two", "three"]


def test_texts_are_cut_at_tokens_that_nothing_else_can_take() -> None:
    assert _marks({"added_tokens": ADDED}) == ["<e>"]


@pytest.mark.parametrize("part", ["normalizer", "pre_tokenizer"])
@pytest.mark.parametrize("kind", ["Prepend", "Metaspace"])
def test_texts_whose_beginning_is_treated_apart_are_not_cut(part: str, kind: str) -> None:
    settings: dict[str, Any] = {"added_tokens": ADDED, part: {"type": "Sequence", "parts": [{"type": kind}]}}
    assert _marks(json.loads(json.dumps(settings))) == []
