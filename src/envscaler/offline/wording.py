"""`Wording`: every sentence that the scenario side of the offline model says, in one language."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from random import Random

import yaml

from envscaler.offline.blueprint import FieldType
from envscaler.state import JsonValue


@dataclass(frozen=True)
class Wording:
    """The sentences of one language."""

    phrases: Mapping[str, tuple[str, ...]]

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
            return str(int(value)) if value == int(value) else f"{value:.2f}"
        return str(value)

    def listed(self, parts: list[str]) -> str:
        """An enumeration: `a, b and c`."""
        if len(parts) < 2:
            return "".join(parts)
        return ", ".join(parts[:-1]) + self.say("and") + parts[-1]


@cache
def _languages() -> dict[str, Wording]:
    text = resources.files("envscaler.offline").joinpath("wordings.yaml").read_text(encoding="utf-8")
    return {
        language: Wording({key: (said,) if isinstance(said, str) else tuple(said) for key, said in phrases.items()})
        for language, phrases in yaml.safe_load(text).items()
    }


def wording(language: str) -> Wording:
    """The wording of a language; English where we have none of it."""
    return _languages().get(language) or _languages()["en"]
