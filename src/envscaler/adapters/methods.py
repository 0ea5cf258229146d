"""`tool_method`: a method made from a tool's specification, with signature, type hints and a Google-style docstring.

Trainers that take tools as Python functions (TRL by way of `transformers.utils.get_json_schema`) read the schema off
these; what hints cannot say of a parameter stands in its description. What a call does is not this module's business.
"""

from __future__ import annotations

import inspect
import json
import keyword
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from envscaler.adapters.hints import hint_of, unsaid
from envscaler.record import JsonSchema
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue

CarryOut = Callable[[Any, str, dict[str, JsonValue]], str]
"""Carries out a call for an instance: the instance, the tool's name, its arguments; gives the observation."""

_SECTION = re.compile(r"\b(Args|Returns|Raises):")
_CHOICES = re.compile(r"\(choices:.*\)\s*$", re.IGNORECASE)


def tool_method(tool: ToolSpec, carry_out: CarryOut) -> Callable[..., str]:
    """The method of a tool, named as the tool is, whatever attribute of a class it becomes.

    Arguments that are not given are not passed on: what they default to is the tool's business.
    """
    schemas = {name: _mapping(schema) for name, schema in (tool.parameters.get("properties") or {}).items()}
    required = set(tool.parameters.get("required") or ())
    # Python wants parameters without a default first, and callers by name do not care.
    order = sorted(schemas, key=lambda name: name not in required)
    wire = _python_names(order)

    def method(self: Any, /, *values: JsonValue, **arguments: JsonValue) -> str:
        if len(values) > len(order):
            raise TypeError(f"{tool.name} takes {len(order)} arguments, {len(values)} were given")
        given = dict(zip(order, values, strict=False))
        for name, value in arguments.items():
            meant = wire.get(name, name)
            if meant in given:
                raise TypeError(f"{tool.name} got {meant} twice")
            given[meant] = value
        return carry_out(self, tool.name, given)

    names = {meant: name for name, meant in wire.items()}
    hints = {names[name]: hint_of(schema, tool.parameters) for name, schema in schemas.items()}
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    for name in order:
        default = inspect.Parameter.empty if name in required else schemas[name].get("default")
        parameters.append(
            inspect.Parameter(
                names[name],
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=default,
                annotation=hints[names[name]],
            )
        )
    method.__name__ = method.__qualname__ = tool.name
    method.__doc__ = _docstring(tool, {names[name]: schema for name, schema in schemas.items()})
    # No hint for what is returned: derived schemas would tell it in the prompt, where the tools of collection and of
    # SFT rows say nothing of it.
    method.__annotations__ = hints
    method.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return method


def attribute_name(tool: str, taken: Collection[str]) -> str:
    """The name of the attribute that a tool's method becomes, where `taken` are reserved and an underscore hides."""
    name = re.sub(r"\W", "_", tool)
    if name.startswith("_") or not name.isidentifier() or keyword.iskeyword(name) or name in taken:
        name = f"tool_{name.lstrip('_')}"
    return name


def _python_names(names: list[str]) -> dict[str, str]:
    """For each parameter its name in Python, as keys, in order."""
    wire: dict[str, str] = {}
    for name in names:
        usable = re.sub(r"\W", "_", name)
        if not usable.isidentifier():
            usable = f"p_{usable}"
        while keyword.iskeyword(usable) or usable == "self" or usable in wire or (usable != name and usable in names):
            usable = f"{usable}_"
        wire[usable] = name
    return wire


def _docstring(tool: ToolSpec, schemas: Mapping[str, JsonSchema]) -> str:
    summary = _SECTION.sub(r"\1", tool.description).strip() or tool.name.replace("_", " ")
    if not schemas:
        return summary
    lines = [f"    {name}: {_description(name, schema)}" for name, schema in schemas.items()]
    return "\n".join([summary, "", "Args:", *lines])


def _description(name: str, schema: JsonSchema) -> str:
    """One line: where sections and parameters begin is found by line."""
    text = str(schema.get("description") or "").strip() or f"The {name.replace('_', ' ').strip()}."
    if schema.get("default") is not None:
        text = f"{_ended(text)} Default: {json.dumps(schema['default'], ensure_ascii=False)}."
    if unsaid(schema):
        rest = {key: part for key, part in schema.items() if key not in ("description", "default")}
        text = f"{_ended(text)} JSON Schema: {json.dumps(rest, ensure_ascii=False)}"
    text = _SECTION.sub(r"\1", " ".join(text.split()))
    return f"{text}." if _CHOICES.search(text) else text


def _ended(text: str) -> str:
    return text if text[-1] in ".!?:;。！？" else f"{text}."


def _mapping(schema: object) -> JsonSchema:
    return dict(schema) if isinstance(schema, Mapping) else {}
