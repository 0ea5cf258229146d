"""Words for made-up records: names, places, products, reasons. Which field takes which is a blueprint's business."""

from __future__ import annotations

from functools import cache
from importlib import resources

import yaml


@cache
def _vocabularies() -> dict[str, tuple[str, ...]]:
    text = resources.files("envscaler.offline").joinpath("vocabularies.yaml").read_text(encoding="utf-8")
    return {name: tuple(map(str, words)) for name, words in yaml.safe_load(text).items()}


def names() -> frozenset[str]:
    """The names of the common vocabularies."""
    return frozenset(_vocabularies())


def common(name: str) -> tuple[str, ...]:
    """The entries of a common vocabulary; `{name}` in an entry stands for an entry of that vocabulary.

    Raises:
        KeyError: if there is none of that name.
    """
    return _vocabularies()[name]
