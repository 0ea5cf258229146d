"""BFCL multi-turn: its tasks, its tools carried out by its own code, its own checker.

Nothing of the benchmark stands here: tasks, function documents, the message that announces functions, the step limit
and the checker are read from the installed package, or tasks from another folder of the same form.

Source: Patil et al., the Berkeley Function Calling Leaderboard (package `bfcl-eval`); the loop of turns follows its
`BaseHandler.inference_multi_turn_FC`.
"""

from __future__ import annotations

import copy
import hashlib
import importlib
import inspect
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bfcl_eval.constants import default_prompts, eval_config
from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker, multi_turn_utils

from envscaler.bench.inside.calls import parsed, rendered
from envscaler.bench.inside.states import digest_of

SPLITS = ("base", "miss_func", "miss_param", "long_context")
_HELD_BACK = ("miss_func", "miss_param")
"""Splits with turns in which a function or a parameter is missing, so that nothing can be done yet."""
_RAISED = "Error during execution:"
_PLAYER = "player"
"""Part of the name under which BFCL keeps the instances of an episode."""


def service(settings: Mapping[str, Any]) -> Bfcl:
    """The benchmark, with the tasks of the folder named in the settings, else those of the package."""
    return Bfcl(Path(settings["data"]) if settings.get("data") else None)


class Bfcl:
    """All tasks, by id."""

    def __init__(self, data: Path | None) -> None:
        self.version = version("bfcl-eval")
        self.steps = int(default_prompts.MAXIMUM_STEP_LIMIT) + 1  # it counts a step, then asks whether it is above
        self.announcement = str(default_prompts.DEFAULT_USER_PROMPT_FOR_ADDITIONAL_FUNCTION_FC)
        folder = data if data is not None else Path(eval_config.PROMPT_PATH)
        self._documents = _function_documents()
        self.tasks = {task.id: task for split in SPLITS for task in self._load(folder, split)}

    def session(self) -> Episode:
        """A session in which at most one episode is played."""
        return Episode(self)

    def _load(self, folder: Path, split: str) -> Iterator[Task]:
        (file,) = sorted(folder.glob(f"BFCL_v*_multi_turn_{split}.json"))
        entries = _lines(file)
        answers = {answer["id"]: answer["ground_truth"] for answer in _lines(folder / "possible_answer" / file.name)}
        for entry in entries:
            yield Task(split, entry, answers[entry["id"]], self._documents)


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
        return max(len(self.turns), len(self.gold)) if _is_recorded(options) else len(self.turns)

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


class Episode:
    """One task in play, or questions about tasks."""

    def __init__(self, benchmark: Bfcl) -> None:
        self._benchmark = benchmark
        self._task: Task | None = None
        self._turn = 0
        self._refuse = True
        self._digest = ""
        self._last = 0

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """
        Raises:
            KeyError: for a task that does not exist.
        """
        what = question["do"]
        if what == "describe":
            return {"version": self._benchmark.version, "steps": self._benchmark.steps}
        if what == "tasks":
            return {"tasks": [_described(task) for task in self._benchmark.tasks.values()]}
        if what == "open":
            return self._open(self._benchmark.tasks[question["task"]], question["options"])
        if what == "score":
            return _score(self._benchmark.tasks[question["task"]], question["events"], question["options"])
        if what == "gold":
            task = self._benchmark.tasks[question["task"]]
            return {
                "gold": _checked(task, task.gold, "gold"),
                "nothing": _checked(task, [[] for _ in task.gold], "noop"),
                "turns": [len(task.turns), len(task.gold)],
                "early": task.early_gold(),
            }
        assert self._task is not None, "nothing is open"
        if what == "call":
            return self._call(self._task, question["name"], question["arguments"])
        if what == "message":
            self._turn += 1
            return self._told(self._task)
        raise ValueError(f"{what!r} is not answered here")

    def _open(self, task: Task, options: Mapping[str, str]) -> Mapping[str, Any]:
        self._task, self._turn = task, 0
        self._refuse = options["withheld"] == "refuse" and not _is_recorded(options)
        self._last = task.turns_of(options)
        self._digest = digest_of(_executed(task, [], _PLAYER)[1])
        return {**self._told(task), "digest": self._digest}

    def _told(self, task: Task) -> Mapping[str, Any]:
        """What the agent is told at the beginning of a turn."""
        if self._turn >= self._last:
            return {"user": None}
        if self._turn >= len(task.turns):
            messages = [{"role": "user", "content": ""}]
        else:
            messages = task.turns[self._turn] or [{"role": "user", "content": self._benchmark.announcement}]
        told: dict[str, list[str]] = {"system": [], "user": []}
        for message in messages:
            told[message["role"]].append(message["content"])
        return {
            "system": "\n\n".join(told["system"]),
            "user": "\n\n".join(told["user"]),
            "tools": task.tools(self._turn),
        }

    def _call(self, task: Task, name: str, arguments: dict[str, Any]) -> Mapping[str, Any]:
        violation = None
        if name not in task.functions:
            violation = "unknown_tool"
        elif task.held_back.get(name, 0) > self._turn:
            violation = "withheld_tool"
        if violation == "unknown_tool" or (violation is not None and self._refuse):
            # What comes later is not given away.
            there = [tool["name"] for tool in task.tools(self._turn)]
            return {"refused": "unknown", "known": there, "violation": violation}
        (result,), instances = _executed(task, [_text(task, name, arguments)], _PLAYER)
        before, self._digest = self._digest, digest_of(instances)
        if violation is None and task.is_held_back(self._turn):
            foreseen = {"name": name, "arguments": arguments} in (task.gold_calls() or task.gold)[self._turn + 1]
            if before != self._digest or (foreseen and arguments):
                violation = "acted_early"
        raised = result.startswith(_RAISED)
        return {"content": result, "raised": raised, "digest": self._digest, "violation": violation}


def _score(task: Task, events: Sequence[Mapping[str, Any]], options: Mapping[str, str]) -> Mapping[str, Any]:
    """What BFCL's checker says of the calls of an episode.

    Calls that were not carried out stand in them as calls that fail: they are no reason to leave a task out.
    """
    turns: list[list[str]] = [[]]
    for event in events:
        if event["do"] == "message":
            turns.append([])
        else:
            name = event["name"] if event["carried_out"] else ""
            turns[-1].append(_text(task, name, event["arguments"]))
    # The message after the last turn has no turn to follow.
    played = turns[: task.turns_of(options)]
    return _checked(task, played, "agent")


def _checked(task: Task, turns: Sequence[Sequence[str]], who: str) -> dict[str, Any]:
    """
    Args:
        turns: the calls of each turn, without an empty one for turns that were never begun.
    """
    missing = len(task.gold) - len(turns)
    failures = _failures(_executed(task, [text for turn in task.gold for text in turn], f"{who}_recorded")[0])
    if missing > 0:
        reason = f"the episode ended {missing} turns too early"
        return {"passed": False, "kind": "multi_turn:force_terminated", "reason": reason, "recorded": failures}
    steps = [[[text] for text in turn] for turn in turns]
    try:
        verdict = multi_turn_checker.multi_turn_checker(steps, task.gold, task.entry, task.split, who)
    except Exception as error:  # noqa: BLE001 - an agent's calls made the checker fail, which is no reason to leave it out
        verdict = {"valid": False, "error_type": "checker_raised", "error_message": f"{type(error).__name__}: {error}"}
    return {
        "passed": bool(verdict["valid"]),
        "kind": verdict.get("error_type"),
        "reason": verdict.get("error_message"),
        "recorded": failures,
    }


def _failures(results: Iterable[str]) -> dict[str, int]:
    """How many of the recorded calls raise, and how many say that they failed."""
    results = list(results)
    return {
        "raised": sum(result.startswith(_RAISED) for result in results),
        "failed": sum(result.startswith('{"error"') for result in results),
    }


def _executed(task: Task, texts: list[str], who: str) -> tuple[list[str], dict[str, Any]]:
    results, instances = multi_turn_utils.execute_multi_turn_func_call(
        texts, task.entry["initial_config"], task.classes, who, task.id, long_context=task.long_context
    )
    return results, instances


def _text(task: Task, name: str, arguments: Mapping[str, Any]) -> str:
    return rendered(name, arguments, task.functions.__contains__)


def _is_recorded(options: Mapping[str, str]) -> bool:
    """Whether the recorded calls are played, as they are: their worth is the checker's ceiling."""
    return options.get("play") == "recorded"


def _described(task: Task) -> Mapping[str, Any]:
    return {
        "id": task.id,
        "split": task.split,
        "group": task.number,
        "digest": task.digest,
        "gold": task.gold_calls(),
        "turns": len(task.turns),
    }


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
