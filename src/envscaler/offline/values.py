"""`Maker`: makes one value by a blueprint's `Make`, from a seeded generator.

Which records exist and what has to hold between them is `states`' and `search`'s business.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from envscaler.offline.blueprint import Blueprint, FieldType, Make, ParamPlan
from envscaler.offline.vocabulary import common
from envscaler.state import JsonValue

PLACEHOLDER = re.compile(r"\{([^{}]+)\}")

Lookup = Callable[[str], JsonValue]
"""Value of a dotted path in a template; raises KeyError where there is none."""


def nothing_known(path: str) -> JsonValue:
    """A lookup that knows no path."""
    raise KeyError(path)


@dataclass(frozen=True)
class Maker:
    """Draws values."""

    blueprint: Blueprint
    rng: Random
    clock: str

    def words(self, name: str) -> tuple[str, ...]:
        """The entries of a vocabulary: the blueprint's, else a common one.

        Raises:
            KeyError: if neither has it.
        """
        own = self.blueprint.vocabularies.get(name)
        return own if own is not None else common(name, self.blueprint.language)

    def expanded(self, text: str, known: Lookup = nothing_known) -> str:
        """A template with paths and names of vocabularies replaced."""
        if "{" not in text:
            return text

        def part(match: re.Match[str]) -> str:
            path = match.group(1)
            try:
                value = known(path)
            except KeyError:
                return self.expanded(self.rng.choice(self.words(path)), known)
            return plain(value)

        return PLACEHOLDER.sub(part, text)

    def draw(
        self,
        make: Make,
        kind: FieldType,
        *,
        enum: Sequence[str] | None = None,
        ids: Sequence[str] = (),
        known: Lookup = nothing_known,
    ) -> JsonValue:
        """One value; `derive` and `only_if` are the caller's business.

        Args:
            ids: what a reference can be.
            known: values that templates may name.
        """
        if make.ref:
            return self.rng.choice(ids) if ids else None
        if make.weights is not None:
            return typed(self.rng.choices(list(make.weights), list(make.weights.values()))[0], kind)
        if make.pick is not None:
            choices: Sequence[Any] = self.words(make.pick) if isinstance(make.pick, str) else make.pick
            return self._picked(choices, kind, known)
        if make.text is not None:
            return self._picked(make.text, kind, known)
        if make.whole is not None:
            return typed(self._whole(make.whole, make.step), kind)
        if make.number is not None:
            return self._number(make.number, make.step)
        if make.date is not None:
            return self._date(make.date, kind, make.time)
        if make.time is not None:
            return self._time(make.time)
        if make.value is None and enum is not None and make.derive is None:
            return self.rng.choice(list(enum))
        return make.value

    def argument(self, param: ParamPlan, known: Lookup = nothing_known) -> JsonValue:
        """A value for a parameter that is no reference; a parameter without `make` gets one that fits its type."""
        if param.make is not None:
            return self.draw(param.make, param.type, enum=param.enum, known=known)
        if param.enum is not None:
            return self.rng.choice(param.enum)
        low = param.minimum if param.minimum is not None else 1
        high = param.maximum if param.maximum is not None else max(low, 5)
        makes: Mapping[str, Make] = {
            "int": Make(whole=(math.ceil(low), math.floor(high))),
            "float": Make(number=(low, high)),
            "bool": Make(pick=(True, False)),
            "date": Make(date=(1, 30)),
            "datetime": Make(date=(1, 30)),
            "time": Make(time=(9, 17)),
            "list[str]": Make(pick="tags"),
        }
        return self.draw(makes.get(param.type, Make(pick="notes")), param.type, known=known)

    def _picked(self, choices: Sequence[Any], kind: FieldType, known: Lookup) -> JsonValue:
        if kind == "list[str]":
            chosen = self.rng.sample(list(choices), self.rng.randint(1, min(3, len(choices))))
            if all(isinstance(value, str) for value in chosen):
                return [self.expanded(value, known) for value in chosen]
            return list(self.rng.choice(list(choices)))
        choice = self.rng.choice(list(choices))
        return self.expanded(choice, known) if isinstance(choice, str) else typed(choice, kind)

    def _whole(self, bounds: tuple[int, int], step: float | None) -> int:
        if step is None:
            return self.rng.randint(*bounds)
        return round(self.rng.randint(math.ceil(bounds[0] / step), math.floor(bounds[1] / step)) * step)

    def _number(self, bounds: tuple[float, float], step: float | None) -> float:
        if step is None:
            return round(self.rng.uniform(*bounds), 2)
        return round(self.rng.randint(math.ceil(bounds[0] / step), math.floor(bounds[1] / step)) * step, 2)

    def _date(self, bounds: tuple[int, int], kind: FieldType, hours: tuple[int, int] | None) -> str:
        day = datetime.fromisoformat(self.clock) + timedelta(days=self.rng.randint(*bounds))
        if kind != "datetime":
            return day.date().isoformat()
        return f"{day.date().isoformat()}T{self._time(hours or (8, 18))}:00"

    def _time(self, hours: tuple[int, int]) -> str:
        half = self.rng.randint(hours[0] * 2, hours[1] * 2)
        return f"{half // 2 % 24:02d}:{half % 2 * 30:02d}"


def typed(value: JsonValue, kind: FieldType) -> JsonValue:
    """The value in the type of its field: `1` is `1.0` in a float field, the key `true` of weights is a boolean."""
    if kind == "float" and isinstance(value, (int, str)) and not isinstance(value, bool):
        return float(value)
    if kind == "int" and isinstance(value, str):
        return int(value)
    if kind == "bool" and isinstance(value, str):
        return value.lower() == "true"
    return value


def plain(value: JsonValue) -> str:
    """A value inside a made text."""
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    return str(value)
