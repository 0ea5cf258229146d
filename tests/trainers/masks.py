"""Which tokens of a prepared row are learned, as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def learned(tokens: Iterable[int], marks: Iterable[bool], tokenizer: Any) -> list[str]:
    """The stretches of tokens that are marked."""
    stretches: list[list[int]] = []
    inside = False
    for token, marked in zip(tokens, marks, strict=True):
        if marked and not inside:
            stretches.append([])
        if marked:
            stretches[-1].append(int(token))
        inside = bool(marked)
    return [str(tokenizer.decode(stretch)) for stretch in stretches]
