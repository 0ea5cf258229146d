"""Signatures see structure and nothing else; distances lie between 0 and 1."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.offline.blueprint import Blueprint, EffectPlan, FieldPlan, Make, Requirement
from envscaler.offline.derive import derive
from envscaler.offline.domains import domains
from envscaler.offline.reading import NounEntry, Reading
from envscaler.offline.structure import distance, signature

laws = settings(deadline=None, max_examples=25)


def renamed(blueprint: Blueprint, rename: Callable[[str], str]) -> Blueprint:
    """The blueprint with every identifier of its own renamed, in expressions too."""
    text = blueprint.model_dump_json()
    words = {entity.name for entity in blueprint.entities} | {entity.variable for entity in blueprint.entities}
    words |= {field.name for entity in blueprint.entities for field in entity.fields}
    words |= {param.name for operation in blueprint.operations for param in operation.params}
    words |= {operation.name for operation in blueprint.operations}
    words |= {entity.container for entity in blueprint.entities}
    words -= {"name", "id", "title", "text", "time", "date", "value", "number", "each", "create", "type", "description"}
    ordered = sorted((word for word in words if len(word) > 4), key=len, reverse=True)
    pattern = re.compile(rf"(?<![A-Za-z])({'|'.join(map(re.escape, ordered))})(?=_id\b|\b)")
    return Blueprint.model_validate_json(pattern.sub(lambda match: rename(match[1]), text))


def thing_of(word: str, template: str = "booking") -> Blueprint:
    entry = NounEntry(template=template, person="patron", place="quarter")
    return derive(Reading(noun=word, thing=word, entry=entry, acts=("create",), why=""))


def with_operation(blueprint: Blueprint, name: str, **changes: object) -> Blueprint:
    return blueprint.model_copy(
        update={
            "operations": tuple(
                operation.model_copy(update=changes) if operation.name == name else operation
                for operation in blueprint.operations
            )
        }
    )


@laws
@given(template=st.sampled_from(["booking", "ledger", "rota", "exam"]), prefix=st.sampled_from(["zz", "quux", "wob"]))
def test_names_do_not_count(template: str, prefix: str) -> None:
    blueprint = thing_of("regatta", template)
    # A prefix keeps identifiers apart and says nothing; the first letter decides on the case of entities' names.
    other = renamed(blueprint, lambda word: (prefix.capitalize() + word) if word[:1].isupper() else f"{prefix}{word}")
    assert other != blueprint
    assert signature(other) == signature(blueprint)
    assert distance(other, blueprint) == 0.0


@laws
@given(seed=st.randoms(use_true_random=False))
def test_order_does_not_count(seed) -> None:  # type: ignore[no-untyped-def]
    for blueprint in (thing_of("voyage"), *domains()[:2]):
        operations = list(blueprint.operations)
        seed.shuffle(operations)
        entities = [
            entity.model_copy(update={"fields": tuple(seed.sample(entity.fields, len(entity.fields)))})
            for entity in blueprint.entities
        ]
        seed.shuffle(entities)
        shuffled = [
            operation.model_copy(update={"requires": tuple(seed.sample(operation.requires, len(operation.requires)))})
            for operation in operations
        ]
        other = blueprint.model_copy(update={"operations": tuple(shuffled), "entities": tuple(entities)})
        assert signature(other) == signature(blueprint)


def test_texts_constants_and_unused_attributes_do_not_count() -> None:
    blueprint = thing_of("voyage")
    entity = blueprint.entities[0]
    unused = FieldPlan(name="motto", description="A motto", make=Make(pick=("Onward",)))
    more = entity.model_copy(update={"fields": (*entity.fields, unused), "description": "Something else"})
    other = blueprint.model_copy(
        update={"entities": (more, *blueprint.entities[1:]), "summary": "Another", "introduction": "Other words."}
    )
    assert signature(other) == signature(blueprint)
    operation = next(op for op in blueprint.operations if any("'planned'" in r.when for r in op.requires))
    changed = tuple(r.model_copy(update={"when": r.when.replace("'planned'", "'afloat'")}) for r in operation.requires)
    assert signature(with_operation(blueprint, operation.name, requires=changed)) == signature(blueprint)


def test_mirrored_comparisons_and_joined_requirements_are_the_same() -> None:
    blueprint = thing_of("voyage")
    operation = next(op for op in blueprint.operations if op.requires and op.query is None and len(op.requires) > 1)
    first, second, *rest = operation.requires
    joined = first.model_copy(update={"when": f"({first.when}) and ({second.when})"})
    assert signature(with_operation(blueprint, operation.name, requires=(joined, *rest))) == signature(blueprint)
    mirrored = tuple(r.model_copy(update={"when": _mirrored(r.when)}) for r in operation.requires)
    assert mirrored != operation.requires
    assert signature(with_operation(blueprint, operation.name, requires=mirrored)) == signature(blueprint)


def _mirrored(text: str) -> str:
    tree = ast.parse(text, mode="eval").body
    opposite: dict[type[ast.cmpop], type[ast.cmpop]] = {
        ast.Lt: ast.Gt,
        ast.LtE: ast.GtE,
        ast.Gt: ast.Lt,
        ast.Eq: ast.Eq,
    }
    if isinstance(tree, ast.Compare) and type(tree.ops[0]) in opposite:
        return ast.unparse(
            ast.Compare(left=tree.comparators[0], ops=[opposite[type(tree.ops[0])]()], comparators=[tree.left])
        )
    return text


@pytest.mark.parametrize("name", ["cancel_booking", "book_voyage", "plan_voyage"])
def test_a_requirement_or_an_effect_more_or_less_counts(name: str) -> None:
    blueprint = thing_of("voyage")
    operation = blueprint.operation(name)
    assert operation is not None
    fewer = with_operation(blueprint, name, requires=operation.requires[1:])
    param = next(param.name for param in operation.params if param.ref is not None)
    extra = Requirement(when=f"{param}.id != '' and 1 < 2", error="No", rule="No.")
    more = with_operation(blueprint, name, requires=(*operation.requires, extra))
    gone = blueprint.model_copy(update={"operations": tuple(op for op in blueprint.operations if op.name != name)})
    assert len({signature(one) for one in (blueprint, fewer, more, gone)}) == 4
    assert 0.0 < distance(blueprint, fewer) < distance(blueprint, gone) <= 1.0


def test_a_changed_effect_counts() -> None:
    blueprint = thing_of("voyage")
    conditional = EffectPlan(change="booking", values={"status": "'cancelled'"}, when="booking.note != ''")
    deleted = EffectPlan(delete="booking")
    others = [with_operation(blueprint, "cancel_booking", effects=(effect,)) for effect in (conditional, deleted)]
    assert len({signature(one) for one in (blueprint, *others)}) == 3


def test_different_domains_are_further_apart_than_things_of_one_template() -> None:
    first, second, other = thing_of("voyage"), thing_of("regatta"), thing_of("voyage", "auction")
    assert distance(first, first) == 0.0
    assert 0.0 < distance(first, second) < distance(first, other) <= 1.0
    assert distance(first, second) == distance(second, first)
