"""Words for made-up records: names, places, products, reasons. Which field takes which is a blueprint's business."""

from __future__ import annotations

from functools import cache
from importlib import resources

from envscaler.offline.blueprint import Language
from envscaler.offline.files import load_yaml


@cache
def _vocabularies(language: Language) -> dict[str, tuple[str, ...]]:
    file = "vocabularies.yaml" if language == "en" else f"vocabularies.{language}.yaml"
    text = resources.files("envscaler.offline").joinpath(file).read_text(encoding="utf-8")
    return {name: tuple(map(str, words)) for name, words in load_yaml(text).items()}


def names(language: Language = "en") -> frozenset[str]:
    """The names of the common vocabularies, which are the same in all languages."""
    return frozenset(_vocabularies(language))


def common(name: str, language: Language = "en") -> tuple[str, ...]:
    """The entries of a common vocabulary; `{name}` in an entry stands for an entry of that vocabulary.

    Raises:
        KeyError: if there is none of that name.
    """
    return _vocabularies(language)[name]
