"""Reads a task text by rule: does it live in a stateful environment, and which things, people and acts does it name?

English only. It knows a lexicon of nouns (`nouns.yaml`) and of verbs, and a few habits of how people ask. It is no
parser: what it does not recognise it leaves alone, and a task that it cannot read is judged not stateful.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
    counted: str | None = None
    """What is put behind a noun that has no plural: `steel` is dealt with in `steel grades`."""
    element: str = "element"
    """What a list of that name holds: a kind of `elements.yaml`."""


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
    return _entries("nouns")


@cache
def _entries(section: str) -> dict[str, NounEntry]:
    nouns: dict[str, NounEntry] = {}
    for template, groups in lexicon()[section].items():
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


def noun_entry(noun: str, before: str = "") -> NounEntry:
    """What the lexicon knows of a noun, after the word that stands before it: a database table is no dinner table.

    Raises:
        KeyError: if it is not in there.
    """
    return _entries("compounds").get(f"{before} {noun}") or _nouns()[noun]


@lru_cache(maxsize=50_000)
def singular(word: str) -> str:
    """The singular of a noun that the lexicon knows; any other word as it is."""
    if word in _nouns():
        return word
    found = _singular_of().get(word) or inflection.singularize(word)
    return found if found in _nouns() else word


@lru_cache(maxsize=50_000)
def plural(noun: str) -> str:
    """The plural of a noun or of a compound."""
    *first, head = noun.split()
    return " ".join([*first, lexicon()["irregular"].get(head) or inflection.pluralize(head)])


@cache
def _singular_of() -> dict[str, str]:
    return {plural(noun): noun for noun in _nouns()}


_TOKEN = re.compile(r"[a-z]+(?:'[a-z]+)?|\d[\w.,:-]*|[^\s\w]", re.IGNORECASE)
_ID = re.compile(r"\b(?:id|ids|number|code|no\.)\b|#\w+|\b[A-Z]{1,6}-?\d{2,}\b|\b[a-z]+_?\d{2,}\b")


def read_task(text: str) -> Reading | None:
    """What the task is about, or None when it does not live in a stateful environment."""
    tokens = [token for token in _tokens(text) if token not in _QUOTES]
    mine = bool(_words("mine").intersection(tokens))
    knowledge = bool(_words("stateless").intersection(tokens))
    if knowledge and not mine:
        return None
    best: tuple[int, str, _Found] | None = None
    for found in _things(tokens):
        cue = _cue(text, tokens, found.start)
        # Who asks to have something computed from the own things changes none of them.
        if cue is not None and (cue[0] == 0 or not knowledge) and (best is None or cue[0] < best[0]):
            best = (*cue, found)
    if best is None:
        return None
    _, why, found = best
    return _reading(found, tokens, f"{why} ({found.thing})")


def read_words(text: str) -> Reading | None:
    """The first thing that a text names, whatever is said of it: for descriptions, which ask for nothing."""
    tokens = _tokens(text)
    found = next(iter(_things(tokens)), None)
    return _reading(found, tokens, "it is described so") if found is not None else None


def _reading(found: _Found, tokens: list[str], why: str) -> Reading:
    acts = tuple(dict.fromkeys(_acts()[token] for token in tokens if token in _acts()))
    return Reading(noun=found.noun, thing=found.thing, entry=found.entry, acts=acts, why=why)


def _tokens(text: str) -> list[str]:
    return [token.lower() for token in _TOKEN.findall(text)]


_QUOTES = {"'", '"', "`", "“", "”", "‘", "’", "*"}


@dataclass(frozen=True)
class _Found:
    """A noun of the lexicon in a text, with the nouns before it that say which kind is meant."""

    noun: str
    thing: str
    entry: NounEntry
    start: int
    """Where the first of its words stands."""


def _things(tokens: list[str]) -> Iterator[_Found]:
    """The things that a text names, in order; of nouns in a row the last one is the thing."""
    for index, token in enumerate(tokens):
        noun = _noun_of(token)
        if noun is None or (token in _acts() and not _is_noun_here(tokens, index)):
            continue
        following = tokens[index + 1] if index + 1 < len(tokens) else ""
        if _noun_of(following) is not None and token == noun and not _is_verb_form(following):
            continue
        start = index
        while start > 0 and index - start < _QUALIFIERS and _qualifies(tokens, start - 1, noun):
            start -= 1
        qualifiers = tokens[start:index]
        entry = noun_entry(noun, qualifiers[-1] if qualifiers else "")
        yield _Found(noun, _called(noun, entry, qualifiers), entry, start)


_QUALIFIERS = 2
"""Nouns before a noun that belong to it, at most."""


def _noun_of(token: str) -> str | None:
    if token in _nouns():
        return token
    noun = singular(token) if token.endswith(_PLURAL_ENDINGS) else token
    return noun if noun in _nouns() else None


_PLURAL_ENDINGS = ("s", "i", "a", "en", "ft")


def _is_noun_here(tokens: list[str], index: int) -> bool:
    """Whether a word that can be a verb is a noun: it follows a determiner or a noun that qualifies it."""
    if index == 0:
        return False
    before = tokens[index - 1]
    # “Cancel order 17”: a request begins with one verb, not with two.
    if index == 1 and before in _acts() and before not in _nouns():
        return True
    if before in _words("determiners") or before == "of":
        return True
    return before not in _acts() and _says_kind(tokens, index - 1)


def _is_verb_form(token: str) -> bool:
    return token in _acts() and token not in _nouns()


def _qualifies(tokens: list[str], index: int, noun: str) -> bool:
    """Whether the word says of which kind the noun after it is."""
    word = tokens[index]
    if word == noun or (word in _acts() and not _is_noun_here(tokens, index)):
        return False
    return _says_kind(tokens, index)


def _says_kind(tokens: list[str], index: int) -> bool:
    """Whether the word can stand before any noun, or makes a compound of the lexicon with the next word."""
    word, following = tokens[index], tokens[index + 1]
    known = word in _words("qualifiers") or word in _nouns()
    return known or f"{word} {_noun_of(following)}" in _entries("compounds")


def _called(noun: str, entry: NounEntry, qualifiers: Sequence[str]) -> str:
    if not qualifiers and entry.alone is not None:
        return entry.alone
    return " ".join(filter(None, [*qualifiers, noun, entry.counted]))


def _cue(text: str, tokens: list[str], start: int) -> tuple[int, str] | None:
    """Why the noun that begins at `start` is something that is kept: the strongest reason, with its rank."""
    before = tokens[max(0, start - _REACH) : start]
    for cut in (".", "?", "!", ";"):
        if cut in before:
            before = before[len(before) - before[::-1].index(cut) :]
    acts = [_acts()[token] for token in before if token in _acts()]
    if acts and acts[-1] != "read":
        return 0, f"it asks to {acts[-1]} something that is kept"
    owned = [position for position, token in enumerate(before) if token in _words("mine")]
    # What something is done for is not what it is done to.
    if owned and not (owned[-1] > 0 and before[owned[-1] - 1] in _PURPOSE):
        return 1, "it asks for something of the user's own that is kept somewhere"
    if acts and _ID.search(text):
        return 2, "it asks for a record by its id"
    return None


_PURPOSE = {"for", "during", "about", "towards", "like", "of"}
_REACH = 4
"""Words before a noun among which its verb or its owner is looked for."""
