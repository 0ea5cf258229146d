"""Parameter notes of docstrings in Google, NumPy and reST style: description and type by parameter name.

Text that follows no style gives no notes; nothing is guessed from prose.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass

_SECTION = re.compile(r"(args|arguments|parameters|params|keyword args|keyword arguments)\s*:?\s*\Z", re.IGNORECASE)
_UNDERLINE = re.compile(r"\s*-{3,}\s*\Z")
_GOOGLE = re.compile(r"(?:[-*•]\s+)?[*`]{0,2}(\w+)[*`]{0,2}\s*(?:\((.*?)\))?\s*:(?:\s+(.*)|\s*)\Z")
_NUMPY = re.compile(r"\*{0,2}(\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::\s*(.*))?\Z")
_REST_PARAM = re.compile(r":(?:param|parameter|arg|argument|keyword|key)\s+(?:(.+?)\s+)?\*{0,2}(\w+)\s*:\s*(.*)\Z")
_REST_TYPE = re.compile(r":type\s+\*{0,2}(\w+)\s*:\s*(.*)\Z")
_OPTIONAL = re.compile(r",?\s*(optional|defaults?\b.*)\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ParameterNote:
    """What a docstring says of one parameter."""

    description: str = ""
    type: str = ""
    """Its type as written, without "optional"; "" when not said."""


def parameter_notes(docstring: str | None) -> dict[str, ParameterNote]:
    """The parameter notes of a docstring, by name."""
    if not docstring:
        return {}
    lines = inspect.cleandoc(docstring).splitlines()
    return {**_rest(lines), **_sections(lines)}


def _sections(lines: list[str]) -> dict[str, ParameterNote]:
    notes: dict[str, ParameterNote] = {}
    index = 0
    while index < len(lines):
        heading = lines[index]
        index += 1
        if not _SECTION.match(heading.strip()):
            continue
        underlined = index < len(lines) and bool(_UNDERLINE.match(lines[index]))
        index += underlined
        block: list[str] = []
        while index < len(lines) and _inside(lines, index, _indent(heading), underlined):
            block.append(lines[index])
            index += 1
        notes.update(_entries([line for line in block if line.strip()], numpy=underlined))
    return notes


def _inside(lines: list[str], index: int, level: int, underlined: bool) -> bool:
    if not lines[index].strip():
        return True
    if underlined:
        return not (index + 1 < len(lines) and _UNDERLINE.match(lines[index + 1]))
    return _indent(lines[index]) > level


def _entries(lines: list[str], *, numpy: bool) -> dict[str, ParameterNote]:
    notes: dict[str, ParameterNote] = {}
    names: list[str] = []
    kind = ""
    words: list[str] = []
    for line in lines:
        match = None
        # What is indented deeper than the first entry continues a description, whatever it looks like.
        if _indent(line) <= _indent(lines[0]):
            match = (_NUMPY if numpy else _GOOGLE).match(line.strip())
        if match is None:
            words.append(line.strip())
        else:
            names = [name.strip(" *") for name in match.group(1).split(",")]
            kind = _without_optional(match.group(2) or "")
            words = [] if numpy else [(match.group(3) or "").strip()]
        for name in names:
            notes[name] = ParameterNote(" ".join(filter(None, words)), kind)
    return notes


def _rest(lines: list[str]) -> dict[str, ParameterNote]:
    notes: dict[str, ParameterNote] = {}
    types: dict[str, str] = {}
    current: str | None = None
    for line in lines:
        text = line.strip()
        if match := _REST_PARAM.match(text):
            current = match.group(2)
            notes[current] = ParameterNote(match.group(3).strip(), _without_optional(match.group(1) or ""))
        elif match := _REST_TYPE.match(text):
            types[match.group(1)], current = _without_optional(match.group(2)), None
        elif text.startswith(":") or not text:
            current = None
        elif current is not None:
            note = notes[current]
            notes[current] = ParameterNote(f"{note.description} {text}".strip(), note.type)
    return {name: ParameterNote(note.description, note.type or types.get(name, "")) for name, note in notes.items()}


def _without_optional(text: str) -> str:
    return _OPTIONAL.sub("", text.strip()).strip(" ,`")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
