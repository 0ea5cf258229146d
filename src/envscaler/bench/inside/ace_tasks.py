"""The tasks of ACEBench's agent part: what is asked, which tools there are, and what is recorded, in both languages.

They are read from a checkout of the benchmark; nothing of them stands here.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from envscaler.bench.inside.ace_calls import Call, read

SPLITS = ("multi_step", "multi_turn")
LANGUAGES = ("en", "zh")
_BEGINNING = {"en": 60, "zh": 20}
"""Characters by which tasks are told to be variants of one another."""
_TYPES = {"dict": "object", "list": "array", "tuple": "array", "float": "number"}
"""Names of types that JSON Schema has others for."""


class Task:
    """One task."""

    def __init__(self, split: str, language: str, entry: dict[str, Any], answer: dict[str, Any]) -> None:
        self.split = split
        self.language = language
        self.entry = entry
        self.id: str = entry["id"] if language == LANGUAGES[0] else f"{language}_{entry['id']}"
        self.question: str = entry["question"]
        self.classes: list[str] = entry["involved_classes"]
        self.functions = {document["name"]: document for document in entry["function"]}
        self.expected: Any = answer["ground_truth"]
        self.milestones: Any = answer["mile_stone"]

    @property
    def group(self) -> str:
        """What it has in common with the tasks that begin alike and differ in where they start from."""
        return f"{self.language} {self.split} {self.question[: _BEGINNING[self.language]]}"

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools of the agent."""
        return [_tool(document) for document in self.functions.values()]

    @cached_property
    def recorded(self) -> list[list[list[Call]]]:
        """The calls of each message, for each recorded way to the end; empty where one of them cannot be read."""
        every = isinstance(self.milestones, list) and bool(self.milestones)
        ways = self.milestones if every and all(isinstance(way, list) for way in self.milestones) else [self.milestones]
        try:
            return [[read(message) for message in way] for way in ways]
        except ValueError:
            return []

    @property
    def digest(self) -> str:
        """Pins what an episode and its score depend on."""
        parts = [self.language, self.entry, self.expected, self.milestones]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def load(folder: Path) -> Iterator[Task]:
    """All tasks in their order, those in English first.

    Args:
        folder: a checkout of the benchmark, or the folder in it that holds those of the languages.

    Raises:
        FileNotFoundError: if it is neither.
    """
    root = folder / "data_all" if (folder / "data_all").is_dir() else folder
    for language in LANGUAGES:
        for split in SPLITS:
            file = root / f"data_{language}" / f"data_agent_{split}.json"
            answers = {answer["id"]: answer for answer in _lines(file.parent / "possible_answer" / file.name)}
            for entry in _lines(file):
                yield Task(split, language, entry, answers[entry["id"]])


def contents(tasks: Iterable[Task], named: Mapping[str, frozenset[str]]) -> Mapping[str, Any]:
    """The environments with their tools, and what users want.

    Args:
        named: names of the methods of each class.
    """
    tools: dict[str, dict[str, Any]] = {name: {} for name in named}
    tasks = list(tasks)
    for task in tasks:
        for owner, methods in named.items():
            for name, document in task.functions.items():
                if name in methods and owner.partition(" ")[0] == task.language:
                    tools[owner].setdefault(name, _tool(document))
    return {
        "environments": [
            {"name": owner.partition(" ")[2], "tools": list(own.values())} for owner, own in tools.items() if own
        ],
        "tasks": [{"id": task.id, "said": [task.question]} for task in tasks],
    }


def _tool(document: Mapping[str, Any]) -> dict[str, Any]:
    parameters = _schema(copy.deepcopy(document["parameters"]))
    return {"name": document["name"], "description": document["description"], "parameters": parameters}


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    if isinstance(kind, str):
        schema["type"] = _TYPES.get(kind, kind)
    for inner in schema.get("properties", {}).values():
        _schema(inner)
    if isinstance(schema.get("items"), dict):
        _schema(schema["items"])
    return schema


def _lines(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
