"""Tasks are read by rule: what they are about, whether it is kept somewhere, what is asked for."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.offline.derive import template_names
from envscaler.offline.reading import lexicon, noun_entry, plural, read_task, read_words, singular


@pytest.mark.parametrize(
    ("task", "thing"),
    [
        ("Book me a dental cleaning appointment for Friday.", "dental cleaning appointment"),
        ("Please cancel the yoga class reservation of Mrs. Lind.", "yoga class reservation"),
        ("Set a medication reminder for taking a daily dose.", "medication reminder"),
        ("Could you renew my library book?", "library book"),
        ("I want to file an insurance claim for water damage; please submit the claim today.", "insurance claim"),
        ("Add 20 bottles of milk to the kitchen inventory.", "milk product"),
        ("Move my savings account to another branch.", "savings account"),
        ("Book the 'Fitness Cardio' class with instructor Wang Li.", "group class"),
        ("Approve John's medical leave request.", "medical leave request"),
        ("Please register for the tennis tournament in May.", "tennis tournament"),
        ("Check the status of order #8812.", "customer order"),
    ],
)
def test_the_thing_says_what_the_task_says(task: str, thing: str) -> None:
    reading = read_task(task)
    assert reading is not None
    assert reading.thing == thing


@pytest.mark.parametrize(
    "task",
    [
        "",
        "What is the capital of Portugal?",
        "Calculate the definite integral of x^2 from 1 to 5.",
        "Calculate the carbon emissions of my flight from Oslo to Rome.",
        "Translate my message into German.",
        "Tell me a joke about a library.",
        "I need slides for my team.",
    ],
)
def test_questions_and_calculations_are_no_tasks(task: str) -> None:
    assert read_task(task) is None


def test_acts_are_named_once_in_the_order_of_the_task() -> None:
    reading = read_task("Cancel my appointment, then book another appointment and cancel the old reminder.")
    assert reading is not None
    assert reading.acts == ("remove", "create")


def test_a_word_that_can_be_a_verb_is_a_noun_after_a_determiner_or_a_noun() -> None:
    assert read_task("Record the results.") is None
    changed = read_task("Please update the medical record of patient 12.")
    assert changed is not None
    assert changed.thing == "medical record"


def test_a_word_that_can_be_a_verb_is_a_noun_right_after_the_verb_that_begins_a_request() -> None:
    reading = read_task("Cancel order ORD-17 and refund the customer.")
    assert reading is not None
    assert reading.noun == "order"
    assert reading.acts[:1] == ("remove",)


@pytest.mark.parametrize(
    "task", ["Lend the book 'Salt Roads' to Tom Baker.", "I'd like to borrow a wheelchair.", "Resolve ticket TK-21."]
)
def test_what_people_do_with_things_that_are_kept_is_recognised(task: str) -> None:
    assert read_task(task) is not None


def test_a_description_is_read_for_the_first_thing_that_it_names() -> None:
    reading = read_words("Pottery class booking desk. A booking desk for pottery classes and more.")
    assert reading is not None
    assert reading.thing == "pottery class"
    assert read_words("Nothing of that kind.") is None


@settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=200))
def test_any_text_is_read_without_an_error_and_always_the_same(text: str) -> None:
    assert read_task(text) == read_task(text)


def test_the_lexicon_is_large_and_every_noun_stands_in_it_once() -> None:
    words = Counter(word for groups in lexicon()["nouns"].values() for group in groups for word in group["words"])
    assert len(words) >= 600
    assert [word for word, count in words.items() if count > 1] == []
    assert set(lexicon()["nouns"]) <= set(template_names())
    assert all(isinstance(word, str) and word.isalpha() and word.islower() for word in words)


@pytest.mark.parametrize(
    ("task", "template", "person"),
    [
        ("Update the inventory table with these counts.", "document", "analyst"),
        ("Book the corner table for Friday.", "booking", "guest"),
        ("Please file my tax return.", "approval", "filer"),
        ("Cancel my pregnancy test.", "booking", "patient"),
        ("Change my treatment plan.", "membership", "patient"),
        ("Update our customer database.", "configuration", "developer"),
        ("Create a new session token.", "configuration", "administrator"),
    ],
)
def test_the_word_before_a_noun_decides_what_it_is(task: str, template: str, person: str) -> None:
    reading = read_task(task)
    assert reading is not None
    assert (reading.entry.template, reading.entry.person) == (template, person)


def test_compounds_differ_from_the_nouns_that_they_end_with() -> None:
    for template, groups in lexicon()["compounds"].items():
        assert template in template_names()
        for group in groups:
            for words in group["words"]:
                before, noun = words.split()
                assert noun_entry(noun, before) != noun_entry(noun), words
                assert noun_entry(noun, "no such word") == noun_entry(noun)


COMPOUNDS = [
    words for groups in lexicon()["compounds"].values() for group in groups for words in map(str, group["words"])
]


@pytest.mark.parametrize("compound", COMPOUNDS)
def test_every_compound_is_read_as_what_the_lexicon_says_of_it(compound: str) -> None:
    before, noun = compound.split()
    for text in (f"update the {compound}", f"update the {plural(compound)}"):
        reading = read_words(text)
        assert reading is not None
        assert reading.entry == noun_entry(noun, before)
        assert reading.thing.startswith(compound)


def test_every_noun_has_a_plural_that_is_read_back() -> None:
    for groups in lexicon()["nouns"].values():
        for group in groups:
            for word in group["words"]:
                if noun_entry(word).counted is None and plural(word) != word:
                    assert singular(plural(word)) == word


@pytest.mark.parametrize(
    ("one", "many"),
    [
        ("yoga class", "yoga classes"),
        ("diagnosis", "diagnoses"),
        ("steel grade", "steel grades"),
        ("hour glass", "hour glasses"),
        ("quota", "quotas"),
        ("bonus", "bonuses"),
    ],
)
def test_plurals_are_right(one: str, many: str) -> None:
    assert plural(one) == many


@pytest.mark.slow
def test_most_kinds_of_source_tasks_are_recognised(shared_data: Path) -> None:
    lines = (shared_data / "data" / "source_tasks.jsonl").read_text(encoding="utf-8").splitlines()
    readings = [reading for line in lines if (reading := read_task(json.loads(line)["task"])) is not None]
    assert 0.15 <= len(readings) / len(lines) <= 0.5
    assert len({reading.thing for reading in readings}) >= 450
