"""BFCL multi-turn: its tools carried out by its own code, and its own checker.

Nothing of the benchmark stands here: the message that announces functions, the step limit and the checker are the
installed package's.

Source: Patil et al., the Berkeley Function Calling Leaderboard (package `bfcl-eval`); the loop of turns follows its
`BaseHandler.inference_multi_turn_FC`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from bfcl_eval.constants import default_prompts
from bfcl_eval.eval_checker.multi_turn_eval import multi_turn_checker, multi_turn_utils

from envscaler.bench.inside.bfcl_tasks import Task, contents, described, is_recorded, load
from envscaler.bench.inside.calls import rendered
from envscaler.bench.inside.states import digest_of

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
        self.tasks = {task.id: task for task in load(data)}

    def session(self) -> Episode:
        """A session in which at most one episode is played."""
        return Episode(self)


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
            return {"version": self._benchmark.version, "steps": self._benchmark.steps, "contents": True}
        if what == "tasks":
            return {"tasks": [described(task) for task in self._benchmark.tasks.values()]}
        if what == "contents":
            return contents(self._benchmark.tasks.values())
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
        self._refuse = options["withheld"] == "refuse" and not is_recorded(options)
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
