"""`Quantities`: how a language counts things and compares numbers, by the endings of its words.

A language of which there is no file counts without measure words, says numbers without units, and knows one way of
comparing, which its sentences hold themselves. The sentences are `wording`'s business.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from envscaler.offline.files import load_yaml, packaged

_FILES = {"zh": "quantities.zh.yaml"}
_Value = TypeVar("_Value")
_BRACKETS = re.compile("（([^（）]+)）")


@dataclass(frozen=True)
class Degree:
    """How quantities of one kind are compared."""

    least: str = ""
    most: str = ""
    below: str = ""
    above: str = ""


@dataclass(frozen=True)
class Quantities:
    """The measure words, units and degrees of one language."""

    measures: Mapping[str, str]
    """Ending of a noun → its measure word."""
    units: Mapping[str, str]
    """Ending of a label → the unit of its values."""
    bracketed: Mapping[str, str]
    """What stands in brackets in a description → the unit that it means."""
    degrees: Mapping[str, Degree]
    """Ending of a label → how its values are compared; the empty ending is that of all others."""

    def measure(self, noun: str) -> str:
        """The measure word between a number, or “each”, and a noun; empty where the language has none."""
        return _by_longest_ending(noun, self.measures, "")

    def unit(self, label: str, description: str) -> str:
        """The unit behind a value of a field; empty where none is said."""
        named = (self.bracketed[said] for said in _BRACKETS.findall(description) if said in self.bracketed)
        return next(named, None) or _by_longest_ending(label, self.units, "")

    def degree(self, label: str) -> Degree:
        """How values of a field are compared."""
        return _by_longest_ending(label, self.degrees, Degree())


def _by_longest_ending(word: str, known: Mapping[str, _Value], default: _Value) -> _Value:
    ending = max(filter(word.endswith, known), key=len, default=None)
    return known[ending] if ending is not None else default


@cache
def quantities(language: str) -> Quantities:
    """How a language counts and compares."""
    if language not in _FILES:
        return Quantities({}, {}, {}, {})
    read: dict[str, Any] = load_yaml(packaged(_FILES[language]))
    return Quantities(
        _by_ending(read["measures"]),
        _by_ending(read["units"]),
        read["bracketed"],
        {
            ending: Degree(kind["least"], kind["most"], kind["below"], kind["above"])
            for kind in read["degrees"]
            for ending in kind["of"]
        },
    )


def _by_ending(words: Mapping[str, Iterable[str]]) -> dict[str, str]:
    return {ending: word for word, endings in words.items() for ending in endings}
