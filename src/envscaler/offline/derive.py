"""Composes an environment from a task's own nouns and verbs over a structural template.

A template is a domain file with slots (`<<thing>>`) and optional parts (`<% if "waitlist" in parts %>`). The nouns
fill the slots; the parts are those that the task's acts ask for, and others drawn by the digest of the thing.
"""

from __future__ import annotations

import keyword
import re
from functools import cache, lru_cache
from importlib import resources

import yaml
from jinja2 import Environment, StrictUndefined, Template

from envscaler.errors import ProgramError
from envscaler.offline.blueprint import Blueprint
from envscaler.offline.domains import blueprint_faults, complete
from envscaler.offline.files import load_yaml
from envscaler.offline.reading import Reading, plural
from envscaler.offline.writing import article
from envscaler.state import text_digest


class Noun:
    """A noun in the forms that templates need."""

    def __init__(self, one: str) -> None:
        self.one = one
        self.many = plural(one)
        self.var = re.sub(r"\W+", "_", one.lower())
        self.container = re.sub(r"\W+", "_", self.many.lower())
        self.Name = "".join(word.capitalize() for word in re.findall(r"\w+", one))
        self.a = article(one)
        self.A, self.Many = self.a[:1].upper() + self.a[1:], self.many[:1].upper() + self.many[1:]
        self.Title = one[:1].upper() + one[1:]
        words = one.upper().split()
        self.prefix = "".join(word[0] for word in words)[:3] if len(words) > 1 else words[0][:3]

    @property
    def names(self) -> str:
        """Name of the vocabulary that has names for such a place."""
        return "person_names" if self.one in _PEOPLE else "place_names"

    def __str__(self) -> str:
        return self.one


_PEOPLE = {"practitioner", "instructor", "technician", "therapist"}
"""Places that are people."""
_RESERVED = {"self", "copy", "date", "datetime", "timedelta", "wanted", "part", "now", "today", "it", "state", "data"}


@lru_cache(maxsize=5_000)
def derive(reading: Reading) -> Blueprint:
    """The environment around the thing that a task is about.

    Raises:
        ProgramError: if the composed blueprint contradicts itself: a fault of the template.
    """
    thing = Noun(_usable(reading.thing))
    taken = {thing.var}
    nouns = {}
    for role, word in (("person", reading.entry.person), ("place", reading.entry.place)):
        word = word if Noun(word).var not in taken else f"{'responsible' if role == 'person' else 'main'} {word}"
        nouns[role] = Noun(word)
        taken.add(nouns[role].var)
    number = int(text_digest(reading.thing), 16)
    parts = {act for act in reading.acts if act != "read"}
    text = _template(reading.entry.template).render(
        thing=thing, parts=_Parts(parts, number), pick=_Pick(number), **nouns
    )
    try:
        plan = load_yaml(text)
        blueprint = complete({**plan, "derived": True})
    except (yaml.YAMLError, ValueError, KeyError, TypeError) as fault:
        raise ProgramError(f"template {reading.entry.template} with {reading.thing!r}: {fault}") from fault
    faults = blueprint_faults(blueprint)
    if faults:
        raise ProgramError(f"template {reading.entry.template} with {reading.thing!r}: {'; '.join(faults[:3])}")
    return blueprint


def _usable(thing: str) -> str:
    """The thing, in words that can name a variable and say what it is."""
    return f"{thing} entry" if keyword.iskeyword(thing) or thing in _RESERVED else thing


class _Parts:
    """`"waitlist" in parts`: asked for by the task, or drawn for this thing, one part in two."""

    def __init__(self, asked: set[str], number: int) -> None:
        self._asked = asked
        self._number = number

    def __contains__(self, part: object) -> bool:
        drawn = int(text_digest(f"{self._number}:{part}"), 16) % 2 == 0
        return part in self._asked or drawn


class _Pick:
    """`pick("limit", [2, 3, 5])`: one of the choices, drawn for this thing."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __call__(self, name: str, choices: list[object]) -> object:
        return choices[int(text_digest(f"{self._number}:{name}"), 16) % len(choices)]


_JINJA = Environment(
    undefined=StrictUndefined,
    variable_start_string="<<",
    variable_end_string=">>",
    block_start_string="<%",
    block_end_string="%>",
    comment_start_string="<#",
    comment_end_string="#>",
    trim_blocks=True,
    lstrip_blocks=True,
    autoescape=False,
)


@cache
def _template(name: str) -> Template:
    path = resources.files("envscaler.offline").joinpath("templates", f"{name}.yaml")
    return _JINJA.from_string(path.read_text(encoding="utf-8"))
