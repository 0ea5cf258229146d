from __future__ import annotations

import inspect
from typing import Any, Literal, get_type_hints

import pytest
from adapters.desk import awkward_environment

from envscaler.adapters.methods import attribute_name, tool_method
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue


def recorded(self: Any, tool: str, arguments: dict[str, JsonValue]) -> str:
    self.calls.append((tool, arguments))
    return f"did {tool}"


class Instance:
    def __init__(self) -> None:
        self.calls: list[Any] = []


def method_of(tool: ToolSpec) -> tuple[Instance, Any]:
    instance = Instance()
    return instance, tool_method(tool, recorded).__get__(instance)


def tool(properties: dict[str, Any], required: list[str], **changes: Any) -> ToolSpec:
    parameters = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(
        **{"name": "mark", "description": "Mark it.", "parameters": parameters, "effect": "query", **changes}
    )


def test_method_has_the_tools_name_parameters_types_and_words() -> None:
    many = awkward_environment().tools[2]
    method = tool_method(many, recorded)
    signature = inspect.signature(method)
    hints = get_type_hints(method)

    assert method.__name__ == "many"
    assert list(signature.parameters) == ["self", *many.parameters["properties"]]
    assert signature.parameters["limit"].default == 3
    assert signature.parameters["text"].default is inspect.Parameter.empty
    assert (hints["names"], hints["prices"]) == (list[str], dict[str, float])
    assert (hints["status"], hints["note"]) == (Literal["open", "closed"], str | None)
    assert "return" not in hints


def test_docstring_has_one_line_for_each_parameter_and_no_other_sections() -> None:
    docstring = inspect.getdoc(tool_method(awkward_environment().tools[2], recorded))
    assert docstring is not None
    head, _, lines = docstring.partition("\nArgs:\n")
    assert head.startswith("Do many things.\n\nArgs many.\nReturns all of it")
    assert len(lines.splitlines()) == 11
    assert "Returns:" not in docstring
    assert "    limit: The limit. Default: 3." in lines.splitlines()


def test_schema_that_hints_cannot_say_stands_in_the_description() -> None:
    rows = {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "string"}}}}
    docstring = tool_method(tool({"rows": rows}, ["rows"]), recorded).__doc__
    assert docstring is not None
    assert 'JSON Schema: {"type": "array", "items": {"type": "object"' in docstring


def test_only_what_was_given_is_passed_on() -> None:
    instance, mark = method_of(tool({"b": {"type": "string", "default": "x"}, "a": {"type": "string"}}, ["a"]))
    assert mark("1") == "did mark"
    mark(a="1", b="2")
    mark(nonsense=1)
    assert [arguments for _, arguments in instance.calls] == [{"a": "1"}, {"a": "1", "b": "2"}, {"nonsense": 1}]


def test_names_that_python_does_not_allow_are_changed_and_changed_back() -> None:
    names = ["from", "from_", "self", "due-date", "1st"]
    instance, mark = method_of(tool({name: {"type": "string"} for name in names}, names))
    assert list(inspect.signature(mark).parameters) == ["from__", "from_", "self_", "due_date", "p_1st"]
    mark(**{"from__": "a", "from_": "b", "self_": "c", "due_date": "d", "1st": "e"})
    assert instance.calls == [("mark", dict(zip(names, "abcde", strict=True)))]


def test_arguments_given_twice_or_too_many_are_a_type_error() -> None:
    _, mark = method_of(tool({"a": {"type": "string"}}, ["a"]))
    with pytest.raises(TypeError, match="twice"):
        mark("1", a="2")
    with pytest.raises(TypeError, match="takes 1"):
        mark("1", "2")


@pytest.mark.parametrize(
    ("name", "attribute"),
    [("lend", "lend"), ("reset", "tool_reset"), ("_hidden", "tool_hidden"), ("a.b", "a_b"), ("class", "tool_class")],
)
def test_attribute_is_one_that_trainers_see_and_do_not_use_themselves(name: str, attribute: str) -> None:
    assert attribute_name(name, {"reset"}) == attribute
