"""What tasks, checklists and schemas say is free of the accidents that filled-in sentences have."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random

import pytest

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.checks import make_checks
from envscaler.offline.derive import derive, template_names
from envscaler.offline.design import tools_of
from envscaler.offline.domains import domains
from envscaler.offline.plans import make_plan
from envscaler.offline.reading import NounEntry, Reading
from envscaler.offline.states import make_state
from envscaler.offline.wording import wording

ACCIDENTS = {
    "a before a vowel": r"\b[Aa] (?=[aeio])(?!one\b|eu)",
    "an before a consonant": r"\b[Aa]n (?![aeiouAEIOU]|hour|honest|SMS|X-ray|MRI)",
    "a word twice": r"\b([a-z]+) \1\b",
    "one with a plural": r"(?<![\d.,:/#-])\b1 (?!series\b|lens\b)[a-z]+[^su\W]s\b",
    "a switch by its name": r"\bset \w+ to (yes|no)\b",
    "a possessive that is none": r"\b(the|an) own\b",
    "a slot left open": r"[{}|]|<<|>>|\bNone\b",
    "a space too many": r"  | [.,;?]",
}
"""What a text of ours must not show."""


def accidents_in(text: str) -> list[str]:
    said = re.sub(r'"[^"]*"', '"Ann"', text)
    return [f"{kind}: {text}" for kind, pattern in ACCIDENTS.items() if re.search(pattern, said)]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a before a vowel", "make Noor Carter a editor"),
        ("an before a consonant", "find an free place"),
        ("a word twice", "the web server with the highest highest level"),
        ("one with a plural", 'change the rating of "Weekend list" to 1 stars'),
        ("a switch by its name", "set closed to no for Harbour House"),
        ("a possessive that is none", "Nobody approves the own spending."),
        ("a slot left open", "{closed:close|reopen} Harbour House"),
        ("a space too many", "close  Harbour House"),
    ],
)
def test_accidents_are_seen(kind: str, text: str) -> None:
    assert any(fault.startswith(f"{kind}:") for fault in accidents_in(text))
    assert accidents_in("close Harbour House and give it 1 star of 5") == []


def told(blueprint: Blueprint, seeds: int) -> Iterator[str]:
    said = wording("en")
    for seed in range(seeds):
        state = make_state(blueprint, seed=seed, index=seed, purpose="scenario")
        plan = make_plan(blueprint, state, Random(seed), said, index=seed)
        yield from (goal.wish for goal in plan.goals)
        yield from (check.description for check in make_checks(blueprint, state, plan.final(state), said))


def composed(template: str) -> list[Blueprint]:
    """Environments of several things, which take different parts."""
    return [
        derive(
            Reading(
                noun="plan",
                thing=thing,
                entry=NounEntry(template=template, person="author", place="agency"),
                acts=("create", "change", "move", "pay", "report"),
                why="",
            )
        )
        for thing in ("office plan", "user survey", "hour glass")
    ]


@pytest.mark.parametrize("template", template_names())
def test_what_is_said_about_a_composed_environment_has_no_accidents(template: str) -> None:
    for blueprint in composed(template):
        assert [fault for text in told(blueprint, 3) for fault in accidents_in(text)] == []


@pytest.mark.parametrize("slug", [blueprint.slug for blueprint in domains()])
def test_what_is_said_about_a_domain_has_no_accidents(slug: str) -> None:
    blueprint = next(blueprint for blueprint in domains() if blueprint.slug == slug)
    assert [fault for text in told(blueprint, 4) for fault in accidents_in(text)] == []


@pytest.mark.parametrize("template", template_names())
def test_no_description_of_a_parameter_says_a_thing_twice(template: str) -> None:
    for tool in (tool for blueprint in composed(template) for tool in tools_of(blueprint)):
        for name, schema in tool.parameters["properties"].items():
            parts = re.split(r"[,;.] ?", schema["description"].lower())
            assert len(set(filter(None, parts))) == len(list(filter(None, parts))), f"{tool.name}.{name}"
