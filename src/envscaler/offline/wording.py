"""`Wording`: every sentence that the offline model says beside the texts of a blueprint, in one language.

Two files a language: what programs say (`program_wordings.yaml`) and what is said of scenarios, in tests and by
judges (`wordings.yaml`, `wordings.zh.yaml`). Which words an environment has of its own is its blueprint's business.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from random import Random
from typing import Any

from envscaler.offline.blueprint import FieldType
from envscaler.offline.files import load_yaml
from envscaler.offline.quantities import Quantities, quantities
from envscaler.state import JsonValue

_IDEOGRAPHS = "\u4e00-\u9fff\u3400-\u4dbf"
_IDEOGRAPH = re.compile(f"[{_IDEOGRAPHS}]")
_WORD = re.compile(rf"[{_IDEOGRAPHS}]+|[^\W_{_IDEOGRAPHS}]+")


@dataclass(frozen=True)
class Wording:
    """The sentences of one language."""

    phrases: Mapping[str, tuple[str, ...]]
    quantities: Quantities

    def say(self, key: str, rng: Random | None = None, /, **values: object) -> str:
        """A sentence, the first of its variants unless `rng` draws one, with its gaps filled."""
        variants = self.phrases[key]
        return (variants[0] if rng is None else rng.choice(variants)).format(**values)

    def spoken(self, value: JsonValue, kind: FieldType) -> str:
        """A value as a person writes it."""
        if value is True or value is False:
            return self.say("said_true" if value else "said_false")
        if isinstance(value, list):
            return self.listed([str(part) for part in value])
        if kind in {"date", "datetime"} and isinstance(value, str):
            day = date.fromisoformat(value[:10])
            text = self.say("date", day=day.day, month=self.phrases["months"][day.month - 1], year=day.year)
            return text if kind == "date" else self.say("moment", date=text, time=value[11:16])
        if isinstance(value, float):
            return str(int(value)) if value == int(value) else self.say("fraction", value=value)
        return str(value)

    def listed(self, parts: list[str]) -> str:
        """An enumeration: `a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return self.phrases["comma"][0].join(parts[:-1]) + self.say("and") + parts[-1]

    def joined(self, sentences: list[str]) -> str:
        """Sentences as one text; empty ones are left out."""
        return self.phrases["between_sentences"][0].join(sentence for sentence in sentences if sentence)


def is_chinese(text: str) -> bool:
    """Whether a text of ours is Chinese: it has at least one ideograph."""
    return _IDEOGRAPH.search(text) is not None


def words_of(text: str) -> frozenset[str]:
    """The words of a text in any case; of Chinese, which has no spaces, the pairs of neighbouring characters, and a
    character that stands alone."""
    words: set[str] = set()
    for word in _WORD.findall(text.casefold()):
        if is_chinese(word) and len(word) > 1:
            words.update(word[start : start + 2] for start in range(len(word) - 1))
        else:
            words.add(word)
    return frozenset(words)


def telling_words(text: str) -> frozenset[str]:
    """The words of a text that say something by themselves: those of four letters, and all of Chinese."""
    return frozenset(word for word in words_of(text) if len(word) > 3 or is_chinese(word))


@cache
def _languages() -> dict[str, Wording]:
    phrases: dict[str, dict[str, tuple[str, ...]]] = {}
    for file in ("program_wordings.yaml", "wordings.yaml", "wordings.zh.yaml"):
        for language, said in _read(file).items():
            phrases.setdefault(language, {}).update(
                {key: (text,) if isinstance(text, str) else tuple(map(str, text)) for key, text in said.items()}
            )
    return {language: Wording(said, quantities(language)) for language, said in phrases.items()}


def _read(file: str) -> dict[str, Any]:
    text = resources.files("envscaler.offline").joinpath(file).read_text(encoding="utf-8")
    loaded: dict[str, Any] = load_yaml(text)
    return loaded


def wording(language: str) -> Wording:
    """The wording of a language; English where we have none of it."""
    return _languages().get(language) or _languages()["en"]
