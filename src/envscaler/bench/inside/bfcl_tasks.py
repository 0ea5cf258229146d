"""The tasks of BFCL multi-turn: what is said, which functions there are, and what is recorded, by turn.

They are read from the installed package, or from another folder of the same form; nothing of them stands here.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bfcl_eval.constants import eval_config
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_utils

from envscaler.bench.inside.calls import parsed

SPLITS = ("base", "miss_func", "miss_param", "long_context")
_HELD_BACK = ("miss_func", "miss_param")
"""Splits with turns in which a function or a parameter is missing, so that nothing can be done yet."""
_OWN_DESCRIPTION = "Tool description:"


class Task:
    """One task: what is said in each turn, which functions there are then, and the recorded calls."""

    def __init__(
        self, split: str, entry: dict[str, Any], gold: list[list[str]], documents: Mapping[str, list[dict[str, Any]]]
    ) -> None:
        self.split = split
        self.entry = entry
        self.gold = gold
        self.id: str = entry["id"]
        self.classes: list[str] = entry["involved_classes"]
        functions = [document for name in self.classes for document in documents[name]]
        self.held_back = {name: int(turn) for turn, names in entry.get("missed_function", {}).items() for name in names}
        """The turn from which on each function that is missing at first is there."""
        self.functions = {document["name"]: document for document in functions}

    @property
    def turns(self) -> list[list[dict[str, str]]]:
        """The messages of each turn; none where functions are announced."""
        return list(self.entry["question"])

    def turns_of(self, options: Mapping[str, str]) -> int:
        """How many turns are played: as many as the user has messages, or as many as are recorded.

        They differ where the benchmark is wrong. Then nobody can pass who only answers messages.
        """
        return max(len(self.turns), len(self.gold)) if is_recorded(options) else len(self.turns)

    @property
    def long_context(self) -> bool:
        """Whether its environment is blown up."""
        return "long_context" in self.id

    @property
    def number(self) -> str:
        """What it has in common with its variants in the other splits."""
        return self.id.rpartition("_")[2]

    def tools(self, turn: int) -> list[dict[str, Any]]:
        """The tools of a turn, in BFCL's order: what comes later stands at the end."""
        there = [name for name in self.functions if name not in self.held_back]
        there += [name for name, first in self.held_back.items() if first <= turn]
        return [_tool(self.functions[name]) for name in there if name in self.functions]

    def gold_calls(self) -> list[list[dict[str, Any]]] | None:
        """The recorded calls by turn, as an agent would make them; None where one is more than a call."""
        try:
            made = [[parsed(text, self._parameters) for text in turn] for turn in self.gold]
        except ValueError:
            return None
        return [[{"name": name, "arguments": arguments} for name, arguments in turn] for turn in made]

    def early_gold(self) -> int:
        """Recorded calls of functions that are not there yet."""
        calls = [(turn, text) for turn, texts in enumerate(self.gold) for text in texts]
        return sum(self.held_back.get(text.partition("(")[0].strip(), 0) > turn for turn, text in calls)

    def is_held_back(self, turn: int) -> bool:
        """Whether nothing can be done yet in that turn, as what is needed comes with the next one."""
        gold = self.gold
        return self.split in _HELD_BACK and turn + 1 < len(gold) and not gold[turn] and bool(gold[turn + 1])

    def _parameters(self, name: str) -> list[str]:
        for owner in map(_class_of, self.classes):
            if (method := getattr(owner, name, None)) is not None:
                return list(inspect.signature(method).parameters)[1:]
        return list(self.functions.get(name, {}).get("parameters", {}).get("properties", {}))

    @property
    def digest(self) -> str:
        """Pins what an episode and its score depend on."""
        parts = [self.entry, self.gold, list(self.functions.values())]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def load(folder: Path | None) -> Iterator[Task]:
    """All tasks in their order.

    Args:
        folder: where they lie; None: in the package.
    """
    folder = folder if folder is not None else Path(eval_config.PROMPT_PATH)
    documents = _function_documents()
    for split in SPLITS:
        (file,) = sorted(folder.glob(f"BFCL_v*_multi_turn_{split}.json"))
        answers = {answer["id"]: answer["ground_truth"] for answer in _lines(folder / "possible_answer" / file.name)}
        for entry in _lines(file):
            yield Task(split, entry, answers[entry["id"]], documents)


def is_recorded(options: Mapping[str, str]) -> bool:
    """Whether the recorded calls are played, as they are: their worth is the checker's ceiling."""
    return options.get("play") == "recorded"


def described(task: Task) -> Mapping[str, Any]:
    """The task as the other side has to know it."""
    return {
        "id": task.id,
        "split": task.split,
        "group": task.number,
        "digest": task.digest,
        "gold": task.gold_calls(),
        "turns": len(task.turns),
    }


def contents(tasks: Iterable[Task]) -> Mapping[str, Any]:
    """The classes of all tasks with their functions, and what users say."""
    tasks = list(tasks)
    documents = _function_documents()
    environments = []
    for name in dict.fromkeys(name for task in tasks for name in task.classes):
        tools = []
        about = ""
        for document in documents[name]:
            # The documents of all functions of a class begin with what the class is.
            before, mark, own = document["description"].partition(_OWN_DESCRIPTION)
            about = before.strip() if mark else about
            tools.append(_tool({**document, "description": own.strip() if mark else before}))
        environments.append({"name": name, "about": about, "tools": tools})
    said = [{"id": task.id, "said": [message["content"] for turn in task.turns for message in turn]} for task in tasks]
    return {"environments": environments, "tasks": said}


def _tool(document: Mapping[str, Any]) -> dict[str, Any]:
    parameters = _schema(copy.deepcopy(document["parameters"]))
    return {"name": document["name"], "description": document["description"], "parameters": parameters}


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with the names of types that JSON Schema has, by BFCL's own table."""
    kind = schema.get("type", "string")
    schema["type"] = GORILLA_TO_OPENAPI.get(kind, "string")
    for inner in schema.get("properties", {}).values():
        _schema(inner)
    if isinstance(schema.get("items"), dict):
        _schema(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        _schema(schema["additionalProperties"])
    return schema


def _class_of(name: str) -> type:
    module = importlib.import_module(_table("CLASS_FILE_PATH_MAPPING")[name])
    found: type = getattr(module, name)
    return found


def _function_documents() -> dict[str, list[dict[str, Any]]]:
    folder = Path(eval_config.MULTI_TURN_FUNC_DOC_PATH)
    classes = _table("CLASS_FILE_PATH_MAPPING")
    files = _table("MULTI_TURN_FUNC_DOC_FILE_MAPPING")
    return {name: _lines(folder / file) for name, file in files.items() if name in classes}


def _table(name: str) -> dict[str, str]:
    """A table of the package, which stands in other modules in other versions."""
    for module in ("executable_backend_config", "category_mapping"):
        try:
            found = getattr(importlib.import_module(f"bfcl_eval.constants.{module}"), name, None)
        except ModuleNotFoundError:
            continue
        if found is not None:
            return dict(found)
    return dict(getattr(multi_turn_utils, name))


def _lines(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]
