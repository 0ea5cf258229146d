"""Shapes see structure and nothing else."""

from __future__ import annotations

import pytest
from offline.shapes import shape

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.domains import domains

LIBRARY = next(blueprint for blueprint in domains() if blueprint.slug == "library-lending")


def without(name: str, part: str) -> Blueprint:
    """The library without the first requirement, effect or parameter of an operation."""
    operations = tuple(
        operation.model_copy(update={part: getattr(operation, part)[1:]}) if operation.name == name else operation
        for operation in LIBRARY.operations
    )
    return LIBRARY.model_copy(update={"operations": operations})


def test_names_texts_and_order_do_not_count() -> None:
    text = LIBRARY.model_dump_json().replace("book", "tome").replace("Book", "Tome")
    renamed = Blueprint.model_validate_json(text)
    assert renamed != LIBRARY
    other = renamed.model_copy(update={"operations": renamed.operations[::-1], "summary": "Another"})
    assert shape(other) == shape(LIBRARY)


@pytest.mark.parametrize("part", ["requires", "effects", "params"])
def test_what_an_operation_requires_changes_and_takes_counts(part: str) -> None:
    operation = next(op for op in LIBRARY.operations if op.requires and op.effects and op.params)
    assert shape(without(operation.name, part)) != shape(LIBRARY)
