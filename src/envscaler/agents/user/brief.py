"""`Brief`: what the user of one scenario has to tell, part by part, and what it can know at all.

The parts are the facts of the profile; without one, the sentences of the task. A part is recognized by its details:
the values in it that nobody says by chance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from envscaler.agents.user.instructions import UserInstructions
from envscaler.agents.user.reading import (
    capitalized_in,
    folded,
    full_names_in,
    ids_in,
    is_han,
    numbers_in,
    quoted_in,
    telling_words,
    tokens_of,
    written_numbers,
)
from envscaler.scenario import Scenario
from envscaler.state import JsonValue, leaves

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？；])")
_COUNTS = 12
"""Whole numbers up to this are said by chance."""
_STEM = 5


class Heard:
    """A text, or several, in the forms in which details are looked for."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.text = "\n".join(texts)

    @cached_property
    def folded(self) -> str:
        return folded(self.text)

    @cached_property
    def bare(self) -> str:
        """Letters and digits alone."""
        return re.sub(r"[\W_]+", "", self.text.casefold())

    @cached_property
    def tokens(self) -> frozenset[str]:
        return frozenset(tokens_of(self.text))

    @cached_property
    def stems(self) -> frozenset[str]:
        return frozenset(token[:_STEM] for token in self.tokens)

    @cached_property
    def numbers(self) -> frozenset[float]:
        return numbers_in(self.text)

    @cached_property
    def words(self) -> frozenset[str]:
        return telling_words(self.text)

    def has(self, value: str | float) -> bool:
        """Whether a value was said: a number, or a text in its words, endings aside."""
        if isinstance(value, float):
            return value in self.numbers
        if folded(value) in self.folded:
            return True
        tokens = tokens_of(value)
        if any(is_han(token) for token in tokens):
            return False
        return bool(tokens) and all(
            token in self.tokens or (len(token) >= _STEM and token[:_STEM] in self.stems) for token in tokens
        )


@dataclass(frozen=True)
class Part:
    """One part of what is to be told."""

    text: str
    details: tuple[str | float, ...]
    """Values that tell that it was said. Without any it cannot be known for certain."""

    def is_told(self, heard: Heard) -> bool:
        """Whether all of it was certainly said."""
        if folded(self.text) in heard.folded:
            return True
        return bool(self.details) and all(heard.has(detail) for detail in self.details)

    def is_untold(self, heard: Heard) -> bool:
        """Whether it was certainly not said, not even in part."""
        strong = [detail for detail in self.details if not _is_weak(detail)]
        if not strong or any(heard.has(detail) for detail in strong):
            return False
        words = telling_words(self.text)
        return len(words & heard.words) <= len(words) // 2


class Brief:
    """What the user has to tell and what it knows."""

    def __init__(self, scenario: Scenario | UserInstructions) -> None:
        self.parts: tuple[Part, ...] = ()
        self.facts: tuple[str, ...] = ()
        self.known: tuple[str, ...]
        if isinstance(scenario, UserInstructions):
            # What of it is told, and when, may hang on what happens: no part of it has to be.
            self.task, self.opening, self._profiled, self.known = scenario.text, "", False, scenario.known
            return
        profile = scenario.user_profile
        self.task = scenario.task
        self.opening = profile.opening if profile is not None else ""
        self.facts = profile.facts if profile is not None else ()
        self._profiled = bool(self.facts)
        texts = self.facts or tuple(part.strip() for part in _SENTENCE_END.split(scenario.task) if part.strip())
        values = tuple(_solution_values(scenario))
        opened = Heard([self.opening])
        self.parts = tuple(Part(text, tuple(_details(text, values, opened))) for text in texts)
        self.known = (
            scenario.task,
            *((profile.opening, *profile.facts, profile.persona, *profile.refuses) if profile is not None else ()),
            # The user lives at the time of the scenario.
            scenario.clock[:10],
        )

    @cached_property
    def tellable(self) -> tuple[Part, ...]:
        """The parts that are recognized when they are told."""
        return tuple(part for part in self.parts if part.details)

    def untold(self, heard: Heard) -> tuple[Part, ...]:
        """The parts that certainly nobody spoke of."""
        return tuple(part for part in self.parts if part.is_untold(heard))


def _is_weak(detail: str | float) -> bool:
    if isinstance(detail, float):
        return detail <= _COUNTS
    return len(detail) < (2 if is_han(detail) else 3)


def _solution_values(scenario: Scenario) -> Iterator[str | float]:
    """What the calls of the solution are given by the user: the arguments that no earlier call returned."""
    for call in scenario.solution or ():
        for path, value in leaves(call.arguments):
            if f"/{'/'.join(path)}" in call.bindings:
                continue
            yield from _values(value)


def _values(value: JsonValue) -> Iterator[str | float]:
    if isinstance(value, str) and len(value) >= 2:
        yield value
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield float(value)


def _details(text: str, values: Iterable[str | float], opened: Heard) -> Iterator[str | float]:
    own = Heard([text])
    names = (*quoted_in(text), *full_names_in(text), *ids_in(text), *capitalized_in(text))
    given = tuple(value for value in values if own.has(value))
    found: list[str | float] = []
    for detail in (*names, *given, *sorted(written_numbers(text))):
        within = isinstance(detail, str) and any(isinstance(part, str) and detail in part for part in found)
        if detail not in found and not within and not opened.has(detail):
            found.append(detail)
    yield from found
