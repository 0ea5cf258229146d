"""Reads a task text by rule: does it live in a stateful environment, and which things, people and acts does it name?

English only. It knows a lexicon of nouns (`nouns.yaml`) and of verbs, and a few habits of how people ask. It is no
parser: what it does not recognise it leaves alone, and a task that it cannot read is judged not stateful.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

import inflection

from envscaler.offline.blueprint import Language
from envscaler.offline.files import load_yaml
from envscaler.record import Record

Words = frozenset[str]


class NounEntry(Record):
    """What the lexicon knows of a noun."""

    template: str
    """Structural template that an environment around it is composed from."""
    person: str = "client"
    """Who deals with it."""
    place: str = "site"
    """What holds or provides it."""
    alone: str | None = None
    """How the thing is called when no other noun stands before it; for nouns that say too little by themselves."""


@dataclass(frozen=True)
class Spoken:
    """The nouns of an environment as they are said in another language than English."""

    thing: str
    person: str
    place: str


@dataclass(frozen=True)
class Reading:
    """What was understood of a task."""

    noun: str
    """Head noun of the thing that the task is about, singular."""
    thing: str
    """The thing with the nouns that qualify it, such as `yoga class`."""
    entry: NounEntry
    acts: tuple[str, ...]
    """Acts named by the task's verbs: `create`, `change`, `remove`, `read`, `move`, `pay` …"""
    why: str
    """Why the task is taken for stateful."""
    language: Language = "en"
    """Language of the environment that is to be made."""
    spoken: Spoken | None = None
    """What thing, person and place are called in the task's language, where that is not English."""


@cache
def lexicon() -> dict[str, Any]:
    """The lexicon file."""
    text = resources.files("envscaler.offline").joinpath("nouns.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = load_yaml(text)
    return loaded


@cache
def _nouns() -> dict[str, NounEntry]:
    nouns: dict[str, NounEntry] = {}
    for template, groups in lexicon()["nouns"].items():
        for group in groups:
            shared = {key: value for key, value in group.items() if key != "words"}
            for word in group["words"]:
                nouns[word] = NounEntry(template=template, **shared)
    return nouns


@cache
def _words(name: str) -> Words:
    return frozenset(str(lexicon()[name]).split())


@cache
def _acts() -> dict[str, str]:
    return {verb: act for act, verbs in lexicon()["acts"].items() for verb in verbs.split()}


def noun_entry(noun: str) -> NounEntry:
    """What the lexicon knows of a noun.

    Raises:
        KeyError: if it is not in there.
    """
    return _nouns()[noun]


@lru_cache(maxsize=50_000)
def singular(word: str) -> str:
    """The singular of a noun that the lexicon knows; any other word as it is."""
    if word in _nouns() or word in _words("no_plural"):
        return word
    found = _singular_of().get(word) or inflection.singularize(word)
    return found if found in _nouns() else word


@lru_cache(maxsize=50_000)
def plural(noun: str) -> str:
    """The plural of a noun or of a compound."""
    *first, head = noun.split()
    if head in _words("no_plural"):
        return f"{noun} records" if head in _words("uncountable") else noun
    return " ".join([*first, lexicon()["irregular"].get(head) or inflection.pluralize(head)])


@cache
def _singular_of() -> dict[str, str]:
    return {many: one for one, many in lexicon()["irregular"].items()}


_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d[\w.,:-]*|[^\s\w]", re.IGNORECASE)
_ID = re.compile(r"\b(?:id|ids|number|code|no\.)\b|#\w+|\b[A-Z]{1,6}-?\d{2,}\b|\b[a-z]+_?\d{2,}\b")


def read_task(text: str) -> Reading | None:
    """What the task is about, or None when it does not live in a stateful environment."""
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    if not tokens or (_words("stateless").intersection(tokens) and not _words("mine").intersection(tokens)):
        return None
    best: tuple[int, str, str, str] | None = None
    for index, token in enumerate(tokens):
        noun = token if token in _nouns() else singular(token)
        if noun not in _nouns() or (token in _acts() and not _after_determiner(tokens, index)):
            continue
        start, thing = _compound(tokens, index, noun)
        cue = _cue(text, tokens, start)
        if cue is not None and (best is None or cue[0] < best[0]):
            best = (cue[0], cue[1], noun, thing)
    if best is None:
        return None
    _, why, noun, thing = best
    acts = tuple(dict.fromkeys(_acts()[token] for token in tokens if token in _acts()))
    return Reading(noun=noun, thing=thing, entry=_nouns()[noun], acts=acts, why=f"{why} ({thing})")


def read_words(text: str) -> Reading | None:
    """The first thing that a text names, whatever is said of it: for descriptions, which ask for nothing."""
    tokens = [token.lower() for token in _TOKEN.findall(text)]
    for index, token in enumerate(tokens):
        noun = token if token in _nouns() else singular(token)
        if noun in _nouns():
            acts = tuple(dict.fromkeys(_acts()[word] for word in tokens if word in _acts()))
            thing = _compound(tokens, index, noun)[1]
            return Reading(noun=noun, thing=thing, entry=_nouns()[noun], acts=acts, why="it is described so")
    return None


def _cue(text: str, tokens: list[str], start: int) -> tuple[int, str] | None:
    """Why the noun that begins at `start` is something that is kept: the strongest reason, with its rank."""
    before = tokens[max(0, start - _REACH) : start]
    for cut in (".", "?", "!", ";"):
        if cut in before:
            before = before[len(before) - before[::-1].index(cut) :]
    acts = [_acts()[token] for token in before if token in _acts()]
    if acts and acts[-1] != "read":
        return 0, f"it asks to {acts[-1]} something that is kept"
    if _words("mine").intersection(before):
        return 1, "it asks for something of the user's own that is kept somewhere"
    if acts and _ID.search(text):
        return 2, "it asks for a record by its id"
    return None


_REACH = 4
"""Words before a noun among which its verb or its owner is looked for."""


def _after_determiner(tokens: list[str], index: int) -> bool:
    return index > 0 and tokens[index - 1] in _words("determiners")


def _compound(tokens: list[str], index: int, noun: str) -> tuple[int, str]:
    """The thing with at most one qualifying noun before it, and where it begins."""
    entry = _nouns()[noun]
    if index > 0 and tokens[index - 1] in _words("qualifiers"):
        return index - 1, f"{tokens[index - 1]} {noun}"
    return index, entry.alone or noun
