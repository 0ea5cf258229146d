"""Tests of the state class that is written by code."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.design import entities_of, rules_of
from envscaler.offline.domains import domains
from envscaler.program import analyze, class_name_of, containers
from envscaler.program.made_class import made_class
from envscaler.skeleton import Attribute, Entity, Rule

SINGLE = Entity(name="Desk", attributes=(Attribute(name="now", type="str"), Attribute(name="next_number", type="int")))


def thing(*attributes: Attribute, name: str = "Thing") -> Entity:
    return Entity(name=name, container="things", key="thing_id", attributes=attributes, description="A thing")


@pytest.mark.parametrize("domain", domains(), ids=lambda domain: domain.slug)
def test_the_class_holds_every_entity_with_every_attribute(domain: Blueprint) -> None:
    entities = entities_of(domain)
    source = made_class(domain.summary, entities, rules_of(domain), {})
    name = class_name_of(source)
    found = containers(source, name)
    wanted = {entity.container: [one.name for one in entity.attributes] for entity in entities if entity.container}
    assert {key: [field.name for field in one.fields] for key, one in found.items() if one.fields} == wanted
    assert {one.name for entity in entities if not entity.container for one in entity.attributes} <= set(found)
    assert [fault for fault in analyze(source, name, ()) if fault.kind != "undeclared_tool"] == []


def test_the_class_is_named_after_the_environment_and_says_its_rules() -> None:
    source = made_class(
        "Bicycle lending desk", (thing(), SINGLE), (Rule(text="One each."),), {"now": "x", "next_number": 1}
    )
    assert class_name_of(source) == "BicycleLendingDesk"
    assert "    - One each.\n" in source
    assert "self.next_number: int = config.get('next_number', 1)" in source
    assert "class Thing(TypedDict):" in source


@pytest.mark.parametrize("summary", ["图书馆", "", "Thing", "2 desks?"])
def test_any_summary_gives_a_class_that_is_none_of_the_records(summary: str) -> None:
    source = made_class(summary, (thing(Attribute(name="thing_id", type="str")), SINGLE), (), {})
    assert class_name_of(source) not in ("Thing", "")


@pytest.mark.parametrize(
    ("kind", "annotation"),
    [
        ("str | None", "str | None"),
        ("list[dict[str, int]]", "list[dict[str, int]]"),
        ("Optional[str]", "Optional[str]"),
        ("datetime", "Any"),
        ("list of str", "Any"),
        ("__import__('os')", "Any"),
    ],
)
def test_a_type_that_is_none_of_json_becomes_any(kind: str, annotation: str) -> None:
    source = made_class("Desk of", (thing(Attribute(name="part", type=kind)),), (), {})
    assert f"    part: {annotation}\n" in source


@given(st.text(max_size=40), st.text(max_size=40), st.text(max_size=40))
@example("None", "", "")
@example("typed dict", "", "")
def test_whatever_texts_say_the_class_parses(summary: str, description: str, rule: str) -> None:
    part = Attribute(name="part", type=description, description=description, enum=(rule,))
    entity = thing(part).model_copy(update={"description": description})
    tree = ast.parse(made_class(summary, (entity, SINGLE), (Rule(text=rule),), {}))
    assert next(node.name for node in tree.body if isinstance(node, ast.ClassDef)) == "Thing"
