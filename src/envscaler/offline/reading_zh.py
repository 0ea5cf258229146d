"""Reads a Chinese task text by rule, as `reading` does with English ones: what is it about, and is that kept somewhere?

A text is cut by the longest words of a lexicon (`nouns.zh.yaml`) and needs no segmenter; what is not in there is passed
over. Chinese nouns lead to the English ones of `reading`'s lexicon, so that the same task gives the same environment
in either language.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from envscaler.offline.blueprint import Language
from envscaler.offline.files import load_yaml
from envscaler.offline.reading import Reading, Spoken, noun_entry

LANGUAGE: Language = "zh"


@dataclass(frozen=True)
class _Token:
    """A word of the lexicon where it stands in a text."""

    word: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.word)


@dataclass(frozen=True)
class _Thing:
    """A thing that a clause names."""

    head: str
    """Chinese head noun."""
    qualifiers: tuple[str, ...]
    start: int
    end: int
    sure: bool
    """Whether its head can be no verb there."""


@cache
def lexicon() -> dict[str, Any]:
    """The lexicon file."""
    text = resources.files("envscaler.offline").joinpath("nouns.zh.yaml").read_text(encoding="utf-8")
    loaded: dict[str, Any] = load_yaml(text)
    return loaded


@cache
def nouns() -> dict[str, str]:
    """Chinese noun → English head noun."""
    return {word: noun for noun, words in lexicon()["nouns"].items() for word in words}


@cache
def acts() -> dict[str, str]:
    """Verb → act, as `Reading.acts` has it."""
    return {verb: act for act, verbs in lexicon()["acts"].items() for verb in str(verbs).split()}


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(str(lexicon()[name]).split())


@cache
def _known() -> dict[str, tuple[str, ...]]:
    """All words by their first character, the longest first."""
    words = {*nouns(), *acts(), *lexicon()["qualifiers"], *_words("mine"), *_words("determiners")}
    words |= _words("stateless") | _words("objects") | _words("requests")
    by_first: dict[str, list[str]] = {}
    for word in sorted(words, key=lambda word: (-len(word), word)):
        by_first.setdefault(word[0], []).append(word)
    return {first: tuple(listed) for first, listed in by_first.items()}


_CLAUSE = re.compile(r"[^，。；！？,;!?\n]+")
_ID = re.compile(r"[A-Za-z]{1,6}[-_]?\d{2,}|#\w+|\d{4,}|编号|单号|号码")


def read_task(text: str, language: Language = LANGUAGE) -> Reading | None:
    """What the task is about, or None when it does not live in a stateful environment.

    Args:
        language: of the environment that is to be made.
    """
    clauses = [_tokens(clause) for clause in _CLAUSE.findall(text)]
    words = {token.word for clause in clauses for token in clause}
    if _words("stateless") & words and not _words("mine") & words:
        return None
    has_id = _ID.search(text) is not None
    best: tuple[int, str, _Thing] | None = None
    for place, clause in enumerate(clauses):
        following = clauses[place + 1] if place + 1 < len(clauses) else ()
        for thing in _things(clause):
            cue = _cue(clause, thing, following, has_id=has_id)
            if cue is not None and (best is None or cue[0] < best[0]):
                best = (*cue, thing)
    if best is None:
        return None
    return _reading(best[2], clauses, best[1], language)


def read_words(text: str, language: Language = LANGUAGE) -> Reading | None:
    """The first thing that a text names, whatever is said of it: for descriptions, which ask for nothing."""
    clauses = [_tokens(clause) for clause in _CLAUSE.findall(text)]
    for clause in clauses:
        for thing in _things(clause):
            return _reading(thing, clauses, _DESCRIBED, language)
    return None


def read_beginning(text: str, language: Language = LANGUAGE) -> Reading | None:
    """The thing that a text begins with, as summaries of ours do: “会员注册” of “会员注册审批处”."""
    heads = [(said, head) for head, said in lexicon()["alone"].items() if text.startswith(said)]
    if heads:
        said, head = max(heads, key=lambda named: len(named[0]))
        return _reading(_Thing(head, (), 0, len(said), sure=True), (), _DESCRIBED, language)
    tokens = _tokens(text)
    for index, token in enumerate(tokens[:2]):
        qualifiers = _qualifiers(tokens, index)
        start = token.start - sum(map(len, qualifiers))
        if token.word in nouns() and start == 0:
            return _reading(_Thing(token.word, qualifiers, 0, token.end, sure=True), (), _DESCRIBED, language)
    return None


_DESCRIBED = "描述如此"


def _reading(thing: _Thing, clauses: Sequence[Sequence[_Token]], why: str, language: Language) -> Reading:
    kinds = [lexicon()["qualifiers"][word] for word in thing.qualifiers]
    entry = noun_entry(nouns()[thing.head], kinds[-1] if kinds else "")
    qualified = " ".join(filter(None, [*kinds, nouns()[thing.head], entry.counted]))
    said = "".join(thing.qualifiers) + thing.head
    if not thing.qualifiers:
        qualified = lexicon()["english"].get(said) or entry.alone or qualified
        said = lexicon()["alone"].get(said, said)
    named = (acts().get(token.word) for clause in clauses for token in clause)
    roles, places = lexicon()["roles"], lexicon()["places"]
    return Reading(
        noun=nouns()[thing.head],
        thing=qualified,
        entry=entry,
        acts=tuple(dict.fromkeys(act for act in named if act is not None)),
        why=f"{why}（{said}）",
        language=language,
        spoken=Spoken(thing=said, person=roles[entry.person], place=places.get(entry.place, roles[entry.place])),
    )


@lru_cache(maxsize=10_000)
def _tokens(clause: str) -> tuple[_Token, ...]:
    """The words of the lexicon in a clause, at each place the longest one."""
    found: list[_Token] = []
    start = 0
    while start < len(clause):
        word = next((word for word in _known().get(clause[start], ()) if clause.startswith(word, start)), None)
        if word is not None:
            found.append(_Token(word, start))
        start += len(word) if word is not None else 1
    return tuple(found)


def _things(clause: Sequence[_Token]) -> Iterator[_Thing]:
    """The things that a clause names; one that could also be a verb counts if it stands where nouns stand."""
    for index, token in enumerate(clause):
        if token.word not in nouns() or _is_only_said_of_another(clause, index):
            continue
        qualifiers = _qualifiers(clause, index)
        sure = token.word not in acts() or bool(qualifiers) or _takes_noun(clause, index)
        start = token.start - sum(map(len, qualifiers))
        yield _Thing(token.word, qualifiers, start, token.end, sure)


def _is_only_said_of_another(clause: Sequence[_Token], index: int) -> bool:
    """Whether a noun belongs to another one: “门票订单”, “项目的里程碑”, but “签证材料” are about the visa."""
    before = [token for token in clause[:index] if token.end == clause[index].start]
    if clause[index].word in _words("generic") and before and before[0].word in nouns():
        return True
    after = clause[index + 1 : index + 3]
    end = clause[index].end
    if after and after[0].word == "的" and after[0].start == end:
        end, after = after[0].end, after[1:]
    if not after or after[0].start != end:
        return False
    return after[0].word in nouns() and after[0].word not in acts() and after[0].word not in _words("generic")


def _takes_noun(clause: Sequence[_Token], index: int) -> bool:
    """Whether what stands before a word is followed by a noun."""
    before = [token for token in clause[:index] if token.end == clause[index].start]
    adjacent = _words("objects") | _words("mine") | _words("determiners") | acts().keys()
    if before and before[0].word in adjacent:
        return True
    # “把下周的预约取消”: the object has a verb after it.
    later = any(token.word in acts() for token in clause[index + 1 :])
    return later and any(token.word in _words("objects") for token in clause[:index])


def _qualifiers(clause: Sequence[_Token], index: int) -> tuple[str, ...]:
    """At most one word right before a noun that says which kind is meant."""
    if index == 0:
        return ()
    before = clause[index - 1]
    fits = before.word in lexicon()["qualifiers"] and before.end == clause[index].start
    return (before.word,) if fits else ()


def _cue(
    clause: Sequence[_Token], thing: _Thing, following: Sequence[_Token], *, has_id: bool
) -> tuple[int, str] | None:
    """Why a thing is something that is kept: the strongest reason, with its rank."""
    others = [token for token in clause if token.end <= thing.start or token.start >= thing.end]
    before = [acts()[token.word] for token in others if token.word in acts() and token.end <= thing.start]
    after = [acts()[token.word] for token in others if token.word in acts() and token.start >= thing.end]
    asked = _asks(others)
    if thing.sure:
        if before and before[-1] != "read":
            return 0, "要求改动系统中保存的内容"
        if asked and any(act != "read" for act in after):
            return 1, "要求改动系统中保存的内容"
        if any(token.word in _words("mine") for token in others if token.end <= thing.start):
            return 2, "涉及用户自己保存在某处的内容"
        if (before or after) and has_id:
            return 3, "按编号查询保存的内容"
        # “试剂快过期了，请重新订购”: what is to be done stands in a clause of its own.
        orders = [acts()[token.word] for token in following if token.word in acts()]
        if _asks(following) and not any(_things(following)) and any(act != "read" for act in orders):
            return 4, "要求改动系统中保存的内容"
    # “帮我预约……”: nothing else is named than what the verb itself makes.
    if asked and acts().get(thing.head, "read") != "read":
        return 5, "要求办理系统中保存的事项"
    return None


def _asks(tokens: Sequence[_Token]) -> bool:
    return any(token.word in _words("requests") | _words("objects") for token in tokens)
