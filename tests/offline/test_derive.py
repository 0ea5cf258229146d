"""Environments composed from templates and parts: sound programs, legal states, tasks that can be done, English."""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from random import Random

import pytest
from offline.playing import results_in_agreement
from offline.shapes import shape

from envscaler.offline.blueprint import Blueprint, Language
from envscaler.offline.derive import compose, derive, part_names, template_names
from envscaler.offline.design import class_source, entities_of, rules_of, tools_of
from envscaler.offline.expression import CLOCK, Scope, evaluate
from envscaler.offline.files import load_yaml, packaged
from envscaler.offline.labels import names
from envscaler.offline.methods import method_source
from envscaler.offline.plans import make_plan
from envscaler.offline.reading import NounEntry, Reading, Spoken, lexicon, read_task
from envscaler.offline.search import Search
from envscaler.offline.situation import named_in
from envscaler.offline.states import make_state
from envscaler.offline.values import PLACEHOLDER, Maker
from envscaler.offline.wording import wording
from envscaler.program import analyze, assemble, state_faults
from envscaler.state import State

ENGLISH = wording("en")
HANDFUL = ["umbrella", "user survey", "hour glass"]


def reading(template: str, thing: str = "yoga class", acts: tuple[str, ...] = ()) -> Reading:
    entry = NounEntry(template=template, person="client", place="studio")
    return Reading(noun=thing, thing=thing, entry=entry, acts=acts, why="")


def fitting(part: str) -> list[str]:
    found = re.search(r"^fits: \[(.*)\]$", packaged("templates", "parts", f"{part}.yaml"), re.MULTILINE)
    assert found is not None, f"{part} says nowhere which templates it fits"
    return found[1].split(", ")


@cache
def with_part(template: str, part: str | None) -> Blueprint:
    return compose(reading(template), [] if part is None else [part])


def assert_sound(blueprint: Blueprint, operations: set[str], *, seeds: int = 3, calls: int = 24) -> None:
    """Its program is clean and does what the interpreter predicts, its states are legal, its asks can be fulfilled."""
    methods = {operation.name: method_source(blueprint, operation) for operation in blueprint.operations}
    source = assemble(class_source(blueprint), methods)
    assert analyze(source, blueprint.class_name, tools_of(blueprint)) == ()
    states = [make_state(blueprint, seed=seed, index=seed, purpose="scenario") for seed in range(seeds)]
    for state in states:
        assert_legal(blueprint, state)
    for entity in blueprint.entities:
        # Invariants can leave a state without records that hang on many others; some state has them.
        assert any(state[entity.container] for state in states), f"no {entity.noun} in any state"
    results_in_agreement(blueprint, source, states[0], calls=calls, seed=3, preferred=operations)
    for operation in blueprint.operations:
        if operation.ask and operation.name in operations:
            needed = {param.name for param in operation.params if not param.optional}
            for phrase in operation.ask:
                assert needed <= named_in(phrase), phrase
            more = (make_state(blueprint, seed=seed, index=seed, purpose="scenario") for seed in range(seeds, 25))
            assert any(can_be_done(blueprint, operation.name, state) for state in (*states, *more)), operation.name


def assert_legal(blueprint: Blueprint, state: State) -> None:
    assert state_faults(state, entities_of(blueprint)) == ()
    for invariant in blueprint.invariants:
        for row in state[blueprint.entity(invariant.entity).container].values():
            assert evaluate(invariant.holds, Scope(blueprint, state).with_it(invariant.entity, row)), invariant.rule


def can_be_done(blueprint: Blueprint, name: str, state: State) -> bool:
    operation = blueprint.operation(name)
    assert operation is not None
    named = {entity.name: list(names(blueprint, state, entity, ENGLISH)) for entity in blueprint.entities}
    include = {param.name for param in operation.params}
    maker = Maker(blueprint, Random(7), state[CLOCK])
    search = Search(operation, state, maker, include=include, candidates=lambda param: named[param.ref or ""])
    return next(search.found(), None) is not None


def brought(template: str, part: str) -> set[str]:
    """Operations that a part brings or joins; empty where it does not fit in."""
    plain, joined = with_part(template, None), with_part(template, part)
    return {
        operation.name
        for operation in joined.operations
        if operation.effect == "update" and plain.operation(operation.name) != operation
    }


@pytest.mark.parametrize("template", template_names())
def test_every_template_is_sound_alone(template: str) -> None:
    blueprint = with_part(template, None)
    assert_sound(blueprint, {op.name for op in blueprint.operations if op.effect == "update"}, calls=40)


@pytest.mark.parametrize("part", part_names())
def test_every_part_is_sound_with_a_template_that_it_fits(part: str) -> None:
    templates = fitting(part)
    start = len(part) % len(templates)
    joined = next((template for template in (*templates[start:], *templates[:start]) if brought(template, part)), None)
    assert joined is not None, f"{part} joins none of {templates}"
    assert_sound(with_part(joined, part), brought(joined, part))


@pytest.mark.slow
@pytest.mark.parametrize("template", template_names())
def test_every_part_is_sound_with_every_template_that_it_fits(template: str) -> None:
    for part in part_names():
        if template in fitting(part) and (operations := brought(template, part)):
            assert_sound(with_part(template, part), operations)


def test_every_template_has_parts_enough_for_its_things() -> None:
    for template in template_names():
        joined = [part for part in part_names() if template in fitting(part) and brought(template, part)]
        assert len(joined) >= 6, f"{template}: {joined}"


@pytest.mark.parametrize("template", template_names())
def test_things_of_one_template_differ_in_structure(template: str) -> None:
    things = [
        f"{word} {noun}" for word in ("spring", "harbour", "night") for noun in ("lamp", "report", "walk", "fund")
    ]
    blueprints = [derive(reading(template, thing)) for thing in things]
    assert len({shape(blueprint) for blueprint in blueprints}) == len(things)
    for blueprint in blueprints:
        assert_rich(blueprint)


def assert_rich(blueprint: Blueprint) -> None:
    assert 12 <= len(blueprint.operations) <= 25
    assert sum(operation.effect == "update" for operation in blueprint.operations) >= 4
    assert len(rules_of(blueprint)) >= 6
    assert len(blueprint.entities) >= 3


def test_the_same_reading_gives_the_same_environment() -> None:
    assert compose(reading("booking"), None) == compose(reading("booking"), None) == derive(reading("booking"))


@pytest.mark.parametrize("place", ["shop", "shovel stand"])
def test_ids_of_different_entities_begin_differently(place: str) -> None:
    for template in template_names():
        entry = NounEntry(template=template, person="shopper", place=place)
        blueprint = compose(Reading(noun="shoe", thing="shoe", entry=entry, acts=(), why=""), None)
        prefixes = [entity.prefix for entity in blueprint.entities]
        assert len(set(prefixes)) == len(prefixes)
        assert all(re.fullmatch(r"[A-Z]{2,4}", prefix) for prefix in prefixes)


def test_acts_of_the_task_bring_the_parts_that_they_ask_for() -> None:
    asked = derive(reading("collection", "tide table", acts=("change",)))
    assert asked.operation("rate_element") is not None or asked.entity("Element").field("rating") is not None


KINDS = sorted(load_yaml(packaged("elements.yaml")))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_list_holds_elements_of_its_own_kind_under_names_of_that_kind(kind: str, language: Language) -> None:
    known = load_yaml(packaged("elements.yaml" if language == "en" else f"elements.{language}.yaml"))[kind]
    entry = NounEntry(template="collection", person="client", place="site", element=kind)
    spoken = Spoken(thing="周末清单", person="客户", place="站点")
    asked = Reading(noun="list", thing="week list", entry=entry, acts=(), why="", language=language, spoken=spoken)
    blueprint = derive(asked)
    element = next(entity for entity in blueprint.entities if entity.variable == kind)
    assert element.noun == known.get("noun", kind)
    state = make_state(blueprint, seed=3, index=1, purpose="scenario")
    titles = {row["title"] for row in state[element.container].values()}
    assert len(titles) >= 8
    assert titles <= set(known["names"])


def test_every_list_of_the_lexicon_says_what_it_holds() -> None:
    groups = [group for section in ("nouns", "compounds") for group in lexicon()[section]["collection"]]
    held = {group["element"] for group in groups}
    assert len(held) >= 8
    assert held <= set(KINDS)


@pytest.mark.parametrize("seed", range(8))
def test_no_reader_has_written_a_document_and_nobody_is_granted_access_to_their_own(seed: int) -> None:
    blueprint = next(
        made
        for word in ("map", "plan", "memo", "poster", "letter", "notice", "song", "essay", "sketch", "chart")
        if (made := compose(reading("document", f"wall {word}"), [])).operation("grant_access") is not None
    )
    state = make_state(blueprint, seed=seed, index=seed, purpose="scenario")
    thing = next(entity for entity in blueprint.entities if entity.field("checked_out") is not None)
    writers = {key: row["client_id"] for key, row in state[thing.container].items()}
    assert all(state["clients"][writer]["role"] != "reader" for writer in writers.values())
    assert state["access_rights"]
    assert all(writers[row[thing.key]] != row["client_id"] for row in state["access_rights"].values())


def test_steps_costs_and_wishes_go_with_the_kind_of_thing() -> None:
    steps = {template: with_part(template, "steps").vocabularies["step_titles"] for template in fitting("steps")}
    assert len(set(steps.values())) >= 6
    assert len({with_part(template, "costs").vocabularies["cost_purposes"] for template in fitting("costs")}) >= 4
    for task, wishes in (("Book a flight to Oslo.", "travel_wishes"), ("Book a dental appointment.", "care_wishes")):
        read = read_task(task)
        assert read is not None
        note = derive(read).entity("Booking").field("note")
        assert note is not None
        assert note.make.pick == wishes


def texts(blueprint: Blueprint) -> list[str]:
    out = [blueprint.summary, blueprint.introduction]
    for operation in blueprint.operations:
        out += [operation.description, operation.message, *operation.ask]
        out += [text for requirement in operation.requires for text in (requirement.error, requirement.rule)]
    return out


@pytest.mark.parametrize("template", template_names())
@pytest.mark.parametrize("thing", HANDFUL)
def test_articles_and_sentences_are_right(template: str, thing: str) -> None:
    for text in texts(derive(reading(template, thing))):
        spoken = PLACEHOLDER.sub(lambda match: f"Ann-{match.start()}", text)
        assert not re.search(r"\b[Aa] (?=[aeio])(?!one\b|eu)", spoken), text
        assert not re.search(r"\b[Aa]n (?![aeiouAEIOU]|hour|honest|SMS)", spoken), text
        assert not re.search(r"<<|>>|<%|\bNone\b|  ", spoken), text
        assert not re.search(r"\b([a-z]+) \1\b", spoken), text
    for rule in rules_of(derive(reading(template, thing))):
        assert rule.text.endswith(".")
        assert rule.text[:1].isupper()


def test_a_thing_that_python_or_a_container_has_taken_gets_a_name_of_its_own() -> None:
    for thing in ("class", "data", "series"):
        blueprint = derive(reading("booking", thing))
        assert blueprint.summary.startswith(f"{thing.capitalize()} entry")


@pytest.mark.slow
def test_no_two_things_of_the_source_tasks_share_a_structure(shared_data: Path) -> None:
    lines = (shared_data / "data" / "source_tasks.jsonl").read_text(encoding="utf-8").splitlines()
    things: dict[str, Reading] = {}
    for line in lines:
        found = read_task(json.loads(line)["task"])
        if found is not None:
            things.setdefault(found.thing, found)
    assert len(things) >= 450
    seen: dict[str, str] = {}
    for thing, found in things.items():
        blueprint = derive(found)
        assert_rich(blueprint)
        other = seen.setdefault(shape(blueprint), thing)
        assert other == thing, f"{other} and {thing} have the same structure"
    templates = Counter(found.entry.template for found in things.values())
    assert set(templates) == set(template_names())


@pytest.mark.slow
def test_derived_environments_of_drawn_tasks_are_sound_and_have_plans(shared_data: Path) -> None:
    lines = (shared_data / "data" / "source_tasks.jsonl").read_text(encoding="utf-8").splitlines()
    found = {reading.thing: reading for line in lines if (reading := read_task(json.loads(line)["task"])) is not None}
    for thing in Random(5).sample(sorted(found), 60):
        blueprint = derive(found[thing])
        assert_sound(blueprint, {op.name for op in blueprint.operations if op.effect == "update"}, calls=40)
        state = make_state(blueprint, seed=1, index=1, purpose="scenario")
        assert make_plan(blueprint, state, Random(1), ENGLISH).calls, thing


def test_part_files_hold_nothing_that_no_template_reads() -> None:
    known = {"acts", "fits", "needs", "introduction", "vocabularies", "fields", "entities", "invariants"}
    known |= {"guards", "extras", "operations"}
    for part in part_names():
        text = re.sub(r"<[%#].*?[%#]>\n?|<<.*?>>", "", packaged("templates", "parts", f"{part}.yaml"))
        assert set(re.findall(r"^(\w+):", text, re.MULTILINE)) <= known, part


def test_no_wish_leaves_to_the_state_what_a_rule_has_decided_or_repeats_a_name_more_than_once() -> None:
    trackers = with_part("device", None)
    wishes = []
    for index in range(36):
        state = make_state(trackers, seed=index, index=index, purpose="scenario")
        goals = make_plan(trackers, state, Random(index), ENGLISH, index=index).goals
        wishes += [goal.wish for goal in goals if goal.proposal.kind == "conditional"]
    assert len(wishes) > 8
    # What is out of order gets no schedule and is not switched on, whatever anybody says.
    forbidden = re.compile(r"^(add a schedule|start|switch .* on).*(but only if|provided that).*is out of order")
    assert not [wish for wish in wishes if forbidden.search(wish)]
    names = [str(name) for name in trackers.vocabularies["thing_names"]]
    assert all(wish.count(name) <= 2 for wish in wishes for name in names if "there is any" not in wish), wishes
