"""Files of another language say the same as the English ones: same structure, same keys, other words."""

from __future__ import annotations

import ast
import re
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any

import pytest
from offline.shapes import shape

from envscaler.offline.blueprint import Blueprint, Language
from envscaler.offline.derive import compose, fits, part_names, template_names
from envscaler.offline.domains import domains
from envscaler.offline.reading import NounEntry, Reading, Spoken, noun_entry
from envscaler.offline.reading_zh import acts, lexicon, nouns
from envscaler.offline.values import PLACEHOLDER
from envscaler.offline.vocabulary import common, names
from envscaler.offline.wording import wording

ENGLISH_ONLY = {"summary", "introduction", "noun", "plural", "description", "label", "keywords", "language"}
SENTENCES = {"error", "rule", "message"}
EXPRESSIONS = {"when", "where", "holds", "derive", "only_if", "value"}
PACKAGE = resources.files("envscaler.offline")
OUR_ENGLISH = {blueprint.slug: blueprint for blueprint in domains()}
OUR_CHINESE = domains("zh")


class Comparison:
    """Walks two blueprints at once and notes where their structures part."""

    def __init__(self, english: Blueprint, other: Blueprint) -> None:
        self.faults: list[str] = []
        self.words: dict[str, set[str]] = {}
        """English enumerated value → what stands for it in the other language."""
        first, second = english.model_dump(mode="json"), other.model_dump(mode="json")
        self._learn(first, second)
        self._compare(first, second, "")
        self._rules(english, other)

    def _learn(self, first: Any, second: Any) -> None:
        if isinstance(first, dict) and isinstance(second, dict):
            for key in first.keys() & second.keys():
                if key == "enum" and first[key] and second[key]:
                    for one, other in zip(first[key], second[key], strict=False):
                        self.words.setdefault(one, set()).add(other)
                self._learn(first[key], second[key])
        elif isinstance(first, list) and isinstance(second, list):
            for one, other in zip(first, second, strict=False):
                self._learn(one, other)

    def _compare(self, first: Any, second: Any, place: str) -> None:
        key = place.rpartition("/")[2]
        if key in ENGLISH_ONLY:
            return
        if key == "vocabularies":
            self._expect(first.keys() == second.keys(), place, first.keys() ^ second.keys())
        elif key == "weights" and first is not None and second is not None:
            self._expect(list(first.values()) == list(second.values()), place, (first, second))
            self._same_words(list(first), list(second), place)
        elif isinstance(first, dict) and isinstance(second, dict):
            self._expect(first.keys() == second.keys(), place, first.keys() ^ second.keys())
            for name in first.keys() & second.keys():
                self._compare(first[name], second[name], f"{place}/{name}")
        elif key in {"enum", "pick", "ask", "text"} and isinstance(first, list) and isinstance(second, list):
            self._lists(key, first, second, place)
        elif isinstance(first, list) and isinstance(second, list):
            self._expect(len(first) == len(second), place, (len(first), len(second)))
            for index, (one, other) in enumerate(zip(first, second, strict=False)):
                self._compare(one, other, f"{place}/{index}")
        elif isinstance(first, str) and isinstance(second, str):
            self._texts(key, first, second, place)
        else:
            self._expect(first == second, place, (first, second))

    def _lists(self, key: str, first: list[Any], second: list[Any], place: str) -> None:
        self._expect(len(first) == len(second) or key == "text", place, (first, second))
        if key in {"enum", "pick"}:
            self._same_words(first, second, place)
        elif key == "ask":
            for one, other in zip(first, second, strict=False):
                said = [{path.partition(":")[0] for path in PLACEHOLDER.findall(text)} for text in (one, other)]
                self._expect(said[0] == said[1], place, (one, other))

    def _texts(self, key: str, first: str, second: str, place: str) -> None:
        if key in SENTENCES:
            return
        if key in EXPRESSIONS or "/values/" in place:
            self._expressions(first, second, place)
        else:
            self._expect(first == second or second in self.words.get(first, ()), place, (first, second))

    def _expressions(self, first: str, second: str, place: str) -> None:
        one, other = _without_texts(first), _without_texts(second)
        self._expect(one[0] == other[0], place, (first, second))
        self._same_words(one[1], other[1], place)

    def _same_words(self, first: list[Any], second: list[Any], place: str) -> None:
        for one, other in zip(first, second, strict=False):
            if isinstance(one, list) and isinstance(other, list):
                self._lists("pick", one, other, place)
            elif one in self.words:
                self._expect(other in self.words[one], place, (one, other))
            elif not isinstance(one, str):
                self._expect(one == other, place, (one, other))

    def _rules(self, english: Blueprint, other: Blueprint) -> None:
        """Requirements that share a rule share it in the other language too."""

        def pattern(blueprint: Blueprint) -> list[int]:
            rules = [need.rule for operation in blueprint.operations for need in operation.requires]
            rules += [invariant.rule for invariant in blueprint.invariants]
            return [rules.index(rule) for rule in rules]

        self._expect(pattern(english) == pattern(other), "rules", (pattern(english), pattern(other)))

    def _expect(self, holds: bool, place: str, what: Any) -> None:
        if not holds:
            self.faults.append(f"{place}: {what}")


def _without_texts(expression: str) -> tuple[str, list[str]]:
    """An expression with its texts taken out, and the texts."""
    texts: list[str] = []

    class Blank(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            if isinstance(node.value, str):
                texts.append(node.value)
                return ast.Constant("")
            return node

    tree = Blank().visit(ast.parse(expression, mode="eval"))
    return ast.unparse(tree), texts


THINGS = ("garden widget", "brass gadget", "paper model", "silver token", "oak carving")
"""What is drawn for a thing differs: several of them see every alternative of a file."""


def reading_of(template: str, language: Language, thing: str = THINGS[0]) -> Reading:
    english = NounEntry(template=template, person="patient", place="venue")
    return Reading(
        noun="widget",
        thing=thing,
        entry=english,
        acts=("create", "change", "move", "pay", "report"),
        why="",
        language=language,
        spoken=Spoken(thing="花园摆件", person="患者", place="场馆"),
    )


def test_a_comparison_sees_what_differs() -> None:
    english, chinese = OUR_ENGLISH[OUR_CHINESE[0].slug], OUR_CHINESE[0]
    assert Comparison(english, chinese).faults == []
    fewer = chinese.model_copy(update={"operations": chinese.operations[:-1]})
    assert Comparison(english, fewer).faults
    wrong = next(op for op in chinese.operations if op.requires)
    bent = wrong.requires[0].model_copy(update={"when": f"not ({wrong.requires[0].when})"})
    changed = wrong.model_copy(update={"requires": (bent, *wrong.requires[1:])})
    operations = tuple(changed if op is wrong else op for op in chinese.operations)
    assert Comparison(english, chinese.model_copy(update={"operations": operations})).faults


@pytest.mark.parametrize("slug", [blueprint.slug for blueprint in OUR_CHINESE])
def test_a_chinese_domain_has_the_structure_of_the_english_one(slug: str) -> None:
    chinese = next(blueprint for blueprint in OUR_CHINESE if blueprint.slug == slug)
    assert chinese.language == "zh"
    assert Comparison(OUR_ENGLISH[slug], chinese).faults == []
    assert shape(OUR_ENGLISH[slug]) == shape(chinese)


@pytest.mark.parametrize("template", template_names("zh"))
def test_a_chinese_template_has_the_structure_of_the_english_one(template: str) -> None:
    for thing in THINGS:
        english, chinese = (
            compose(reading_of(template, "en", thing), ()),
            compose(reading_of(template, "zh", thing), ()),
        )
        assert chinese.language == "zh"
        assert Comparison(english, chinese).faults == []


@pytest.mark.parametrize("part", part_names("zh"))
def test_a_chinese_part_has_the_structure_of_the_english_one(part: str) -> None:
    taken = 0
    for index, template in enumerate(template for template in template_names("zh") if fits(part, template)):
        # A part's alternatives are drawn by the thing alone: the templates share the things between them.
        for thing in (THINGS[index % len(THINGS)], THINGS[(index + 2) % len(THINGS)]):
            chinese = compose(reading_of(template, "zh", thing), (part,))
            if chinese != without_parts(template, thing):
                english = compose(reading_of(template, "en", thing), (part,))
                assert Comparison(english, chinese).faults == [], template
                taken += 1
    assert taken >= len(THINGS)


@cache
def without_parts(template: str, thing: str) -> Blueprint:
    return compose(reading_of(template, "zh", thing), ())


def test_every_sentence_is_there_in_both_languages_with_the_same_gaps() -> None:
    english, chinese = wording("en").phrases, wording("zh").phrases
    assert english.keys() == chinese.keys()
    for key in english:
        said = {name for text in english[key] for _, name, _, _ in Formatter().parse(text) if name}
        also = {name for text in chinese[key] for _, name, _, _ in Formatter().parse(text) if name}
        # What it has of its own is how it counts and compares, and nouns where English has pronouns.
        own = {"measure", "degree", "whole", "noun"}
        assert also <= said | own or key in {"date", "field_twice", "field_once"}, key
        # What Chinese leaves out is grammar: it has no plurals.
        assert said - also <= {"plural", "noun", "month", "numbered", "nouns"}, key


def test_every_vocabulary_is_there_in_both_languages() -> None:
    assert names("en") == names("zh")
    for name in names("zh"):
        entries = common(name, "zh")
        assert entries
        for entry in entries:
            assert set(PLACEHOLDER.findall(entry)) <= names("zh"), name
        if f"new_{name}" in names("zh") and not re.search(r"\{", entries[0]):
            assert not set(entries) & set(common(f"new_{name}", "zh")), name


def test_every_chinese_noun_leads_to_an_english_one_and_to_its_people_and_places() -> None:
    listed = [word for words in lexicon()["nouns"].values() for word in words]
    assert len(listed) == len(set(listed)) >= 250
    assert len(acts()) >= 120
    for noun in set(nouns().values()):
        entry = noun_entry(noun)
        assert entry.person in lexicon()["roles"], noun
        assert entry.place in lexicon()["roles"], noun
    assert set(lexicon()["alone"]) | set(lexicon()["english"]) <= {*listed, *lexicon()["alone"].values()}


def test_every_file_is_there_in_both_languages() -> None:
    for folder in ("domains", "templates"):
        english = {path.name for path in PACKAGE.joinpath(folder).iterdir() if path.name.endswith(".yaml")}
        others = {path.name for path in PACKAGE.joinpath(folder, "zh").iterdir() if path.name.endswith(".yaml")}
        assert others == english
    assert part_names("zh") == part_names("en")
