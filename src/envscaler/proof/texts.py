"""What a task's text gives away, and what its checks demand that nobody can know.

It reads words and constants; what a program computes is known by having been seen in the solved state.

Source: Envs-FORGE (arXiv 2608.14312): every value that a check demands stands in the task, in the state, or in what a
query returns.
"""

from __future__ import annotations

import ast
import calendar
import re
from collections.abc import Iterable, Iterator

from envscaler.proof.fields import moment
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, leaves

_TOKEN = re.compile(r"[\w][\w.-]*")
_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
_RELATIVE = re.compile(
    r"\b(?:today|tomorrow|yesterday|tonight|now|(?:next|this|last|coming) \w+|in \w+ (?:days?|weeks?|months?|years?)"
    r"|days? (?:from|after|later)|days?|weeks?)\b|今天|明天|后天|昨天|天后|下周|本周"
)
_SHORTEST_ID = 3
_SMALL = 12
"""Whole numbers up to this are counts that a person takes for granted."""


def leaks(scenario: Scenario, skeleton: EnvSkeleton) -> tuple[tuple[str, str], ...]:
    """What the task gives away: `tool` or `id`, and the word."""
    words = {word.strip(".-") for word in _TOKEN.findall(scenario.task)}
    # A name of one word, such as `cancel`, is a word of the language as well.
    found = [("tool", tool.name) for tool in skeleton.tools if _is_coined(tool.name) and tool.name in words]
    for records in scenario.initial_state.values():
        if isinstance(records, dict):
            found += [
                ("id", key)
                for key, record in records.items()
                if isinstance(record, dict) and len(key) >= _SHORTEST_ID and _is_id(key) and key in words
            ]
    return tuple(dict.fromkeys(found))


def _is_coined(name: str) -> bool:
    return "_" in name or (name[1:].lower() != name[1:])


def _is_id(key: str) -> bool:
    return any(character.isdigit() for character in key) or "_" in key


class Known:
    """All that an agent of one scenario can find out: the task, the tools, the state, what calls returned."""

    def __init__(self, scenario: Scenario, skeleton: EnvSkeleton, seen: Iterable[JsonValue]) -> None:
        """
        Args:
            seen: what calls returned.
        """
        texts = [scenario.task, skeleton.doc]
        for tool in skeleton.tools:
            texts.append(tool.description)
            texts += map(str, _constants_of(tool.parameters))
        self._values: set[JsonValue] = set()
        for value in (scenario.initial_state, *seen):
            for path, leaf in leaves(value):
                self._values.update(_folded(token) for token in path)
                if isinstance(leaf, str):
                    self._values.add(_folded(leaf))
                    texts.append(leaf)
                elif isinstance(leaf, (int, float)) and not isinstance(leaf, bool):
                    self._values.add(float(leaf))
        self._text = _folded("\n".join(texts))
        self._task = _folded(scenario.task)
        self._values.update(float(number.replace(",", "")) for number in _NUMBER.findall(self._text))

    def knows(self, value: JsonValue) -> bool:
        """Whether a value can be found out, word by word for a text."""
        if value is None or isinstance(value, (bool, dict, list)):
            return True
        if isinstance(value, (int, float)):
            return float(value) in self._values or (float(value).is_integer() and abs(value) <= _SMALL)
        text = _folded(str(value))
        if not text or text in self._values or text in self._text:
            return True
        if _is_dated(text, self._task):
            return True
        words = re.findall(r"\w+", text)
        return bool(words) and all(word in self._task for word in words)


def demanded(check: Check) -> list[tuple[JsonValue, ...]]:
    """The constants that a check compares values with, those that serve equally well together.

    Names of fields and keys are not among them.
    """
    try:
        tree = ast.parse(check.source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    out: list[tuple[JsonValue, ...]] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        for operator, side in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In) and isinstance(side, ast.Tuple | ast.List | ast.Set):
                out.append(tuple(_literals(side)))
            elif isinstance(operator, ast.Eq):
                out.append((*_literals(side), *_literals(node.left)))
            elif isinstance(operator, ast.Lt | ast.LtE):
                out.append(tuple(_near(node.left)))
    return [group for group in dict.fromkeys(out) if group and not any(isinstance(value, bool) for value in group)]


def _is_dated(text: str, task: str) -> bool:
    """Whether a task says in words which day a text is, or only how far it is from today."""
    found = moment(text)
    if found is None:
        return False
    if _RELATIVE.search(task):
        return True
    month = calendar.month_name[found.month].casefold()
    spoken = (
        rf"{found.day}(?:st|nd|rd|th)?(?: of)? {month[:3]}\w*",
        rf"{month[:3]}\w* {found.day}(?!\d)",
        rf"{found.month}月{found.day}日",
        rf"(?<!\d)0?{found.day}[./]0?{found.month}(?!\d)",
        rf"(?<!\d)0?{found.month}/0?{found.day}(?!\d)",
    )
    return any(re.search(form, task) for form in spoken)


def _near(node: ast.AST) -> list[JsonValue]:
    """The number in `abs(value - number)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "abs" and node.args:
        inner = node.args[0]
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub):
            return _literals(inner.right) or _literals(inner.left)
    return []


def _literals(node: ast.AST) -> list[JsonValue]:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int, float)):
        return [node.value]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [value for part in node.elts for value in _literals(part)]
    return []


def _constants_of(schema: JsonValue) -> Iterator[JsonValue]:
    if isinstance(schema, dict):
        for key, part in schema.items():
            if key in ("enum", "examples") and isinstance(part, list):
                yield from part
            elif key in ("description", "const", "default", "title") and isinstance(part, (str, int, float)):
                yield part
            else:
                yield from _constants_of(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _constants_of(part)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())
