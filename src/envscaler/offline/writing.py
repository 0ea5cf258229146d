"""Pieces of program text shared by the class and the methods of a blueprint's program."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Mapping

from envscaler.offline.blueprint import Blueprint, EntityPlan, FieldPlan, FieldType, ParamPlan
from envscaler.offline.expression import to_python
from envscaler.offline.wording import Wording, is_chinese

PYTHON_TYPES = {
    "str": "str",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "date": "str",
    "time": "str",
    "datetime": "str",
    "list[str]": "list[str]",
}
FORMS = {"date": "YYYY-MM-DD", "time": "HH:MM", "datetime": "YYYY-MM-DDTHH:MM:SS"}
"""The form of texts that are moments."""


def with_form(text: str, kind: FieldType, wording: Wording) -> str:
    """A description, with the form of the text where it is a moment."""
    return text + wording.say("form", form=FORMS[kind]) if kind in FORMS else text


def field_type(field: FieldPlan) -> str:
    """The annotation of a field."""
    plain = PYTHON_TYPES[field.type]
    return f"{plain} | None" if field.optional else plain


def typed_dict(entity: EntityPlan) -> str:
    """Name of the TypedDict of an entity."""
    return f"{entity.name}Record"


def article(noun: str) -> str:
    """The noun with its indefinite article."""
    silent_h = noun.lower().startswith(("hour", "honest", "heir"))
    like_you = re.match(r"(?i)(uni|use|user|usage|util|euro|one\b|u[^a-z])", noun) is not None
    return f"{'an' if (noun[:1].lower() in 'aeiou' and not like_you) or silent_h else 'a'} {noun}"


def sentence(text: str) -> str:
    """The text with a capital at its start and a full stop at its end, that of its language."""
    text = text.strip()
    text = text[:1].upper() + text[1:]
    if text.endswith((".", "!", "?", "。", "！", "？")):
        return text
    return f"{text}。" if is_chinese(text) else f"{text}."


def wrapped(text: str, width: int = 110) -> list[str]:
    """The lines of a paragraph; Chinese, whose characters are twice as wide, is broken after punctuation only."""
    if not is_chinese(text):
        return textwrap.wrap(text, width)
    lines = [""]
    for clause in re.findall(r"[^，。；：！？]+[，。；：！？]*", " ".join(text.split())):
        if lines[-1] and len(lines[-1]) + len(clause) > width // 2:
            lines.append("")
        lines[-1] += clause
    return lines


def python_type(param: ParamPlan) -> str:
    """The annotation of a parameter."""
    plain = PYTHON_TYPES[param.type]
    if param.enum is not None:
        plain = f"Literal[{', '.join(quoted(value) for value in param.enum)}]"
    return f"{plain} | None" if param.optional and param.default is None else plain


def message(template: str, blueprint: Blueprint, entity_of: Mapping[str, str]) -> str:
    """Source of the (formatted) string literal that a template stands for."""
    parts: list[ast.expr] = []
    for index, piece in enumerate(re.split(r"\{([^{}]+)\}", template)):
        if index % 2:
            expression = ast.parse(to_python(piece, blueprint, entity_of), mode="eval").body
            parts.append(ast.FormattedValue(value=expression, conversion=-1))
        elif piece:
            parts.append(ast.Constant(piece))
    if all(isinstance(part, ast.Constant) for part in parts):
        return quoted("".join(str(part.value) for part in parts if isinstance(part, ast.Constant)))
    return ast.unparse(ast.fix_missing_locations(ast.JoinedStr(values=parts)))


def quoted(value: object) -> str:
    """The literal of a plain value, texts in double quotes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (list, tuple)):
        opening, closing = ("[", "]") if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
        return f"{opening}{', '.join(quoted(part) for part in value)}{closing}"
    return repr(value)


def failure(text: str) -> str:
    """The statement that returns a failure whose message has the given source."""
    return f'return {{"success": False, "error": {text}}}'


def indented(lines: list[str], levels: int) -> list[str]:
    """The lines, each `levels` times four spaces further in."""
    return [f"{'    ' * levels}{line}" if line else line for line in lines]
