"""Nothing lies in the files of words that nothing reads: vocabularies, sentences, entries of the lexicons."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable

import pytest

from envscaler.offline import reading_zh
from envscaler.offline.blueprint import Language
from envscaler.offline.derive import Noun, template_names
from envscaler.offline.files import packaged
from envscaler.offline.reading import NounEntry, lexicon, noun_entry
from envscaler.offline.values import PLACEHOLDER
from envscaler.offline.vocabulary import common, names
from envscaler.offline.wording import wording

PACKAGE = resources.files("envscaler.offline")
DRAWN = re.compile(r"""\bpick[:=] ?"?(\w+)|\{(\w+)\}""")


def files(folder: Traversable) -> Iterator[str]:
    for path in folder.iterdir():
        if path.is_dir():
            yield from files(path)
        elif path.name.endswith(".yaml"):
            yield path.read_text(encoding="utf-8")


def drawn_from() -> set[str]:
    """The vocabularies that anything but a vocabulary names and has not itself."""
    found: set[str] = set()
    for text in (*files(PACKAGE.joinpath("domains")), *files(PACKAGE.joinpath("templates")), packaged("values.py")):
        own = set(re.findall(r"^  (\w+):", text, re.MULTILINE))
        found |= {name or gap for name, gap in DRAWN.findall(text)} - own
    found |= {Noun(place).names for place in places_in("<<place.names>>")}
    wishes = {Noun(place).wishes for place in places_in("<<place.wishes>>")}
    return found | wishes | {f"new_{name}" for name in wishes}


def entries() -> list[NounEntry]:
    """What the lexicon knows of each noun and compound."""
    words = [
        word
        for section in ("nouns", "compounds")
        for groups in lexicon()[section].values()
        for group in groups
        for word in group["words"]
    ]
    return [noun_entry(word.split()[-1], word.rpartition(" ")[0]) for word in words]


def places_in(slot: str) -> set[str]:
    """The places of the lexicon's things whose template has that slot."""
    asking = {name for name in template_names() if slot in packaged("templates", f"{name}.yaml")}
    return {entry.place for entry in entries() if entry.template in asking}


@pytest.mark.parametrize(("section", "slot"), [("named", "<<place.names>>"), ("wishes", "<<place.wishes>>")])
def test_the_lexicon_says_of_no_place_what_no_template_asks(section: str, slot: str) -> None:
    listed = {place for places in lexicon()[section].values() for place in places}
    assert listed - places_in(slot) == set()


def test_the_chinese_lexicon_has_no_role_that_no_thing_has() -> None:
    roles = {role for entry in entries() for role in (entry.person, entry.place)}
    assert set(reading_zh.lexicon()["roles"]) == roles


def test_no_list_of_the_lexicons_has_a_word_twice() -> None:
    for known in (lexicon(), reading_zh.lexicon()):
        lists = [words for words in (*known.values(), *known["acts"].values()) if isinstance(words, str)]
        assert len(lists) > 10
        assert [word for words in lists for word, count in Counter(words.split()).items() if count > 1] == []


def test_every_sentence_is_said_by_something() -> None:
    files = [path.read_text(encoding="utf-8") for path in PACKAGE.iterdir() if path.name.endswith(".py")]
    nodes = [node for text in files for node in ast.walk(ast.parse(text))]
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    # The docstrings of a program's own checks are filed under the names of these, `_is_date`.
    said = texts | {text.removeprefix("_") for text in texts if text.startswith("_is_")}
    patterns = {_pattern(node) for node in nodes if isinstance(node, ast.JoinedStr)}
    filled = [re.compile(pattern) for pattern in patterns if re.search("[a-z]{2}_|_[a-z]{2}", pattern)]

    words = {word for text in texts if re.fullmatch("[a-z_]*", text) for word in ("", *text.split("_"))}

    def is_said(key: str) -> bool:
        matches = [match for pattern in filled if (match := pattern.fullmatch(key)) is not None]
        return key in said or any(words.issuperset("_".join(match.groups()).split("_")) for match in matches)

    assert [key for key in wording("en").phrases if not is_said(key)] == []


def _pattern(formatted: ast.JoinedStr) -> str:
    """A pattern of what `intent_{kind}` can give."""
    return "".join(
        re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"(\w*)" for part in formatted.values
    )


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_vocabulary_is_drawn_from(language: Language) -> None:
    reached = drawn_from() & names(language)
    waiting = list(reached)
    while waiting:
        further = {name for entry in common(waiting.pop(), language) for name in PLACEHOLDER.findall(entry)} - reached
        reached |= further
        waiting += further
    assert names(language) - reached == set()
