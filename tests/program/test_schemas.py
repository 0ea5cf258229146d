"""Tool schemas from signatures and docstrings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.program import containers, schemas_agree, tool_schemas

HEAD = """from __future__ import annotations
import typing as t
from enum import Enum, StrEnum
from typing import *
from typing import Optional as Maybe

class Size(Enum):
    SMALL = "s"
    LARGE = "l"
    _ignored = 1

class Address(TypedDict):
    street: str
    city: NotRequired[str]

class Person(Address, total=False):
    age: int
    name: Required[str]
    friends: "List[Person]"

Point = TypedDict("Point", {"x": float, "y": float})
Ids = List[str]
UserId = NewType("UserId", str)
"""


def parameters(signature: str, docstring: str = "", head: str = HEAD) -> dict[str, Any]:
    quoted = f'        """{docstring}"""\n' if docstring else ""
    source = f"{head}\nclass Desk:\n    def tool({signature}):\n{quoted}        return None\n"
    return tool_schemas(source, "Desk")["tool"]


STRING, INTEGER, NULL = {"type": "string"}, {"type": "integer"}, {"type": "null"}
ADDRESS = {"type": "object", "properties": {"street": STRING, "city": STRING}, "required": ["street"]}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("str", STRING),
        ("float", {"type": "number"}),
        ("bool", {"type": "boolean"}),
        ("dict", {"type": "object"}),
        ("Any", {}),
        ("object", {}),
        ("Unknown", {}),
        ("Optional[int]", {"anyOf": [INTEGER, NULL]}),
        ("Maybe[int]", {"anyOf": [INTEGER, NULL]}),
        ("t.Optional[int]", {"anyOf": [INTEGER, NULL]}),
        ("int | None", {"anyOf": [INTEGER, NULL]}),
        ("Union[int, str, None, int]", {"anyOf": [INTEGER, STRING, NULL]}),
        ("Optional[Union[int, Optional[str]]]", {"anyOf": [INTEGER, STRING, NULL]}),
        ("Union[int, Any]", {}),
        ("'Optional[int]'", {"anyOf": [INTEGER, NULL]}),
        ("Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        ("Literal['a', None, 1]", {"enum": ["a", None, 1]}),
        ("Literal[Size.SMALL]", {"type": "string", "enum": ["s"]}),
        ("Size", {"type": "string", "enum": ["s", "l"]}),
        ("List[List[int]]", {"type": "array", "items": {"type": "array", "items": INTEGER}}),
        ("list", {"type": "array"}),
        ("set[str]", {"type": "array", "uniqueItems": True, "items": STRING}),
        ("Dict[str, List[int]]", {"type": "object", "additionalProperties": {"type": "array", "items": INTEGER}}),
        ("dict[str, Any]", {"type": "object"}),
        ("tuple[int, ...]", {"type": "array", "items": INTEGER}),
        ("tuple[int, str]", {"type": "array", "prefixItems": [INTEGER, STRING], "minItems": 2, "maxItems": 2}),
        ("Address", ADDRESS),
        ("list[Address]", {"type": "array", "items": ADDRESS}),
        ("Ids", {"type": "array", "items": STRING}),
        ("UserId", STRING),
        ("Annotated[int, 'how many']", {"type": "integer", "description": "how many"}),
        ("Callable[[int], str]", {}),
        ("lambda: 1", {}),
        ("[int]", {}),
        ("'not ( an annotation'", {}),
    ],
)
def test_annotations_become_schemas(annotation: str, schema: dict[str, Any]) -> None:
    assert parameters(f"self, value: {annotation}")["properties"]["value"] == schema


def test_typed_dicts_inherit_and_may_contain_themselves() -> None:
    person = parameters("self, who: Person")["properties"]["who"]
    assert person["required"] == ["street", "name"]
    assert person["properties"]["friends"] == {"type": "array", "items": {"type": "object"}}
    point = parameters("self, at: Point")["properties"]["at"]
    assert point["required"] == ["x", "y"]


def test_defaults_make_parameters_optional() -> None:
    schema = parameters("self, a, /, b: int, c: int = 3, *rest, d: str = None, e=[1], f=print, g=1.5, **others")
    assert schema["required"] == ["a", "b"]
    assert schema["additionalProperties"] is True
    assert schema["properties"] == {
        "a": {},
        "b": INTEGER,
        "c": {"type": "integer", "default": 3},
        "d": {"anyOf": [STRING, NULL], "default": None},
        "e": {"type": "array", "default": [1]},
        "f": {},
        "g": {"type": "number", "default": 1.5},
    }
    assert parameters("self")["additionalProperties"] is False


GOOGLE = """Renew a loan.

    Args:
        loan_id (str): Id of the loan,
            as printed: on the card.
        days (int, optional): How many days.
        note: A remark.

    Returns:
        dict: result: something
    """
NUMPY = """Renew a loan.

    Parameters
    ----------
    loan_id : str
        Id of the loan,
        as printed: on the card.
    days : int, optional
        How many days.
    note
        A remark.

    Returns
    -------
    result : dict
    """
REST = """Renew a loan.

    :param str loan_id: Id of the loan,
        as printed: on the card.
    :param days: How many days.
    :type days: int
    :param note: A remark.
    :returns: result
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, REST])
def test_docstrings_describe_and_type_parameters(docstring: str) -> None:
    properties = parameters("self, loan_id, days=14, note=None, result=None", docstring)["properties"]
    assert properties["loan_id"] == {
        "type": "string",
        "description": "Id of the loan, as printed: on the card.",
    }
    assert properties["days"] == {"type": "integer", "description": "How many days.", "default": 14}
    assert properties["note"]["description"] == "A remark."
    assert "description" not in properties["result"]


def test_only_public_bound_methods_are_tools() -> None:
    source = (
        "class Desk:\n    def __init__(self): pass\n    def _private(self): pass\n"
        "    @property\n    def size(self): return 1\n    @staticmethod\n    def help(): pass\n"
        "    @classmethod\n    def make(cls): pass\n    value = 3\n    def tool(self): return 1\n"
    )
    assert list(tool_schemas(source, "Desk")) == ["tool"]


@given(st.text(alphabet="abT[], |'\"().:*/=None1", max_size=30))
def test_odd_annotations_never_crash(text: str) -> None:
    source = f"class Desk:\n    def tool(self, value: {text} = None):\n        return 1\n"
    try:
        compile(source, "odd", "exec")
    except (SyntaxError, ValueError):
        return
    assert tool_schemas(source, "Desk")["tool"]["type"] == "object"


@pytest.mark.parametrize(
    ("declared", "signature", "sentences"),
    [
        ({"a": STRING}, "self, a: str", []),
        ({"a": STRING}, "self, a", []),
        ({"a": {}}, "self, a: str", []),
        ({"a": {**STRING, "enum": ["x"]}}, "self, a: str", []),
        ({"a": {"type": ["string", "null"]}}, "self, a: Optional[str]", []),
        ({"a": STRING}, "self, a: int", ["`a` is string in the tool's declaration, integer in the method"]),
        ({"a": STRING}, "self", ["the tool declares `a`, which the method does not take"]),
        ({"a": STRING}, "self, **more", []),
        ({}, "self, a: str", ["the method needs `a`, which the tool does not declare"]),
        ({}, "self, a: str = 'x'", ["the method takes `a`, which the tool does not declare"]),
        ({"a": {"type": "array", "items": STRING}}, "self, a: List[int]", ["each of `a` is string"]),
        ({"a": STRING}, "self, a: Literal['x']", ["closed list of values in the method"]),
        ({"a": {**STRING, "enum": ["y"]}}, "self, a: Literal['x']", ["allows other values"]),
        ({"a": {"type": "object", "properties": {"town": STRING}}}, "self, a: Address", ["`town` of `a`"]),
    ],
)
def test_differences_are_sentences(declared: dict[str, Any], signature: str, sentences: list[str]) -> None:
    found = schemas_agree({"type": "object", "properties": declared, "required": list(declared)}, parameters(signature))
    assert len(found) == len(sentences)
    for sentence, expected in zip(found, sentences, strict=True):
        assert expected in sentence


def test_required_and_default_have_to_match() -> None:
    both = {"type": "object", "properties": {"a": STRING, "b": STRING}, "required": ["b"]}
    assert len(schemas_agree(both, parameters("self, a: str, b: str = ''"))) == 2


def test_containers_are_those_that_init_declares() -> None:
    source = (
        f"{HEAD}\nclass Desk:\n    limit: int = 3\n    def __init__(self, state=None):\n"
        "        self.people: Dict[str, Person] = {}\n        self.counter = 7\n"
        "        self.log: 'list[Address]' = []\n"
        "        if state:\n            self.clock: Optional[str] = None\n        other.field = 1\n"
    )
    found = containers(source, "Desk")
    assert sorted(found) == ["clock", "counter", "limit", "log", "people"]
    assert (found["people"].record, found["people"].mapping, found["people"].default) == ("Person", True, {})
    assert [field.name for field in found["people"].fields] == ["street", "city", "age", "name", "friends"]
    assert found["people"].fields[2].required is False
    assert (found["counter"].schema, found["counter"].default) == (INTEGER, 7)
    assert (found["log"].record, found["log"].mapping) == ("Address", False)


def test_the_released_schemas_are_derived_again(shared_data: Path) -> None:
    path = shared_data / "data" / "envscaler_release" / "environments.json"
    for env_id, record in json.loads(path.read_text(encoding="utf-8")).items():
        published = record["tools"] if isinstance(record["tools"], list) else json.loads(record["tools"])
        derived = tool_schemas(record["env_class_code"], record["env_class_name"])
        assert set(derived) == {tool["function"]["name"] for tool in published}
        for tool in published:
            function = tool["function"]
            for sentence in schemas_agree(function["parameters"], derived[function["name"]]):
                # Known faults of the publication: defaults overlooked, and two strings published as objects.
                assert "the method has a default for it" in sentence or (env_id == "env_1" and "object" in sentence)
