"""ACEBench's agent part: its environments, its executor and its checkers, as evalscope has them.

Nothing of the benchmark stands here: the policy that the agent is told, the greeting, what ends a conversation and the
checkers are the installed package's.

Source: Chen et al., ACEBench; package `evalscope`, `evalscope.benchmarks.acebench`, whose adapter the scores follow.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from envscaler.bench.inside.absent import without
from envscaler.bench.inside.ace_calls import Call, written
from envscaler.bench.inside.ace_tasks import LANGUAGES, Task, contents, load
from envscaler.bench.inside.bare import bare
from envscaler.bench.inside.states import digest_of

bare("evalscope", "evalscope.benchmarks", "evalscope.third_party")
# Of the loop over models only what carries out calls is used.
_LOOP = ("evalscope.api", "evalscope.api.agent", "evalscope.api.messages", "evalscope.api.model")
with without(*_LOOP, "evalscope.utils", "evalscope.utils.logger"):
    from evalscope.benchmarks.acebench import checker, prompts, rollout, scenarios

_RAISED = "Error during execution:"
_POLICIES = (("Travel", "travel_policy"), ("BaseApi", "base_policy"))
"""Which class of a task brings which policy, in the package's order."""
_FORM = ("Function Calls:", "函数调用：")
"""Heads the last section of a policy: in which form calls are written, which is the dialect's business here."""


def service(settings: Mapping[str, Any]) -> Ace:
    """The benchmark, with the tasks of the checkout named in the settings.

    Raises:
        FileNotFoundError: if none is named, or it is none.
    """
    if not settings.get("data"):
        raise FileNotFoundError("the tasks are not part of any package: name a checkout of ACEBench with --data")
    return Ace(Path(settings["data"]))


class Ace:
    """All tasks, by id."""

    def __init__(self, data: Path) -> None:
        self.version = version("evalscope")
        self.tasks = {task.id: task for task in load(data)}

    def session(self) -> Episode:
        """A session in which at most one episode is played."""
        return Episode(self)


class Episode:
    """One task in play, or questions about tasks."""

    def __init__(self, benchmark: Ace) -> None:
        self._benchmark = benchmark
        self._task: Task | None = None
        self._instances: dict[str, Any] = {}
        self._refuse = True

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """
        Raises:
            KeyError: for a task that does not exist.
        """
        what, tasks = question["do"], self._benchmark.tasks
        if what == "describe":
            return {"version": self._benchmark.version, "steps": None, "contents": True}
        if what == "tasks":
            return {"tasks": [_described(task) for task in tasks.values()]}
        if what == "contents":
            return contents(tasks.values(), _methods())
        if what == "open":
            return self._open(tasks[question["task"]], question["options"])
        if what == "score":
            return _score(tasks[question["task"]], question["events"], question["options"])
        if what == "gold":
            task = tasks[question["task"]]
            way, gold = _best(task)
            return {
                "gold": gold,
                "nothing": _checked(task, _instances(task), []),
                "turns": [1, 1],
                "early": sum(name not in task.functions for message in way or [] for name, _ in message),
            }
        assert self._task is not None, "nothing is open"
        if what == "call":
            return self._call(self._task, question["name"], question["arguments"])
        if what == "message":
            over = rollout.FINISH_MARKER in question["text"]
            return {"user": None, "over": "finished" if over else None}
        raise ValueError(f"{what!r} is not answered here")

    def _open(self, task: Task, options: Mapping[str, str]) -> Mapping[str, Any]:
        self._task, self._instances = task, _instances(task)
        self._refuse = not _is_recorded(options)
        told: dict[str, Any] = {
            "system": _policy(task),
            "user": task.question,
            "tools": task.tools,
            "digest": digest_of(self._instances),
        }
        if task.split == "multi_turn" and "play" not in options:
            # Whoever is no model plays against nobody: all that the user wants is the first message then.
            told["user"] = None
            told["instructions"] = {
                "text": task.question,
                "greeting": str(prompts.agent_prompt_set(task.language)["user_opening"]),
                "language": task.language,
            }
        return told

    def _call(self, task: Task, name: str, arguments: dict[str, Any]) -> Mapping[str, Any]:
        if name not in task.functions and self._refuse:
            return {"refused": "unknown", "known": list(task.functions), "violation": "unknown_tool"}
        content = _carried_out(self._instances, name, arguments)
        return {"content": content, "raised": content.startswith(_RAISED), "digest": digest_of(self._instances)}


def _described(task: Task) -> Mapping[str, Any]:
    """The task as the other side has to know it."""
    way, _ = _best(task)
    gold = None
    if way is not None:
        gold = [[{"name": name, "arguments": given} for message in way for name, given in message]]
    return {
        "id": task.id,
        "split": task.split,
        "group": task.group,
        "digest": task.digest,
        "gold": gold,
        "turns": 1,
        "only": {"language": task.language},
    }


def _best(task: Task) -> tuple[list[list[Call]] | None, dict[str, Any]]:
    """The recorded way that the checker takes, else the first, with what it says; None where none can be read."""
    found = None
    for way in task.recorded:
        instances = _instances(task)
        seen = [_carried_out(instances, name, given) for message in way for name, given in message]
        verdict = {**_checked(task, instances, [written(message) for message in way]), "recorded": _failures(seen)}
        if verdict["passed"]:
            return way, verdict
        found = found if found is not None else (way, verdict)
    if found is not None:
        return found
    reason = "its milestones hold something that is no call"
    verdict = {"passed": False, "kind": "unreadable", "reason": reason, "recorded": _failures([])}
    return None, verdict


def _score(task: Task, events: Sequence[Mapping[str, Any]], options: Mapping[str, str]) -> Mapping[str, Any]:
    """What the checkers say of the calls of an episode, carried out once more."""
    instances = _instances(task)
    calls = [event for event in events if event["do"] == "call"]
    for call in calls:
        if call["carried_out"]:
            _carried_out(instances, call["name"], call["arguments"])
    way, gold = _best(task)
    # What is recorded is played at once; its messages are those that are recorded.
    sizes = [len(message) for message in way] if way is not None and _is_recorded(options) else _sizes(calls)
    told = iter(calls)
    messages = ([(call["name"], call["arguments"]) for call in islice(told, size)] for size in sizes)
    process = [written(message) for message in messages if message]
    return {**_checked(task, instances, process), "recorded": gold["recorded"]}


def _sizes(calls: Sequence[Mapping[str, Any]]) -> list[int]:
    """How many calls each reply of the agent has."""
    return [len(list(own)) for _, own in groupby(calls, key=lambda call: call["reply"])]


def _is_recorded(options: Mapping[str, str]) -> bool:
    return options.get("play") == "recorded"


def _checked(task: Task, instances: Mapping[str, Any], process: Sequence[str]) -> dict[str, Any]:
    """The end state's score, and that of the milestones beside it."""
    verdict = checker.check_agent_end_state(scenarios.snapshot_states(dict(instances)), task.expected)
    passed = bool(verdict["valid"])
    # Whoever has come to the right end has passed all milestones, whichever way.
    reached = 1.0 if passed else float(checker.milestone_accuracy(list(process), task.milestones))
    return {
        "passed": passed,
        "kind": None if passed else verdict["error_type"],
        "reason": None if passed else "; ".join(map(str, _flat(verdict["error"]))),
        "parts": {"process": reached},
    }


def _carried_out(instances: dict[str, Any], name: str, arguments: Mapping[str, Any]) -> str:
    """What comes of a call: the package carries it out in every class that has it."""
    (outcome,) = rollout._dispatch([{name: dict(arguments)}], instances)
    return str(rollout._serialize(outcome))


def _failures(seen: Sequence[str]) -> dict[str, int]:
    """How many of the recorded calls raise, and how many say that they failed."""
    return {
        "raised": sum(text.startswith(_RAISED) for text in seen),
        "failed": sum(text.startswith('{"status": false') for text in seen),
    }


def _instances(task: Task) -> dict[str, Any]:
    made: dict[str, Any] = scenarios.load_scenario_instances(task.entry["initial_config"], task.classes, task.language)
    return made


def _policy(task: Task) -> str:
    """The rules of the domain, which only the agent of a conversation is told."""
    if task.split != "multi_turn":
        return ""
    told = prompts.agent_prompt_set(task.language)
    texts = (str(told[policy]) for name, policy in _POLICIES if name in task.classes)
    return "\n\n".join(_without_form(text) for text in texts)


def _without_form(text: str) -> str:
    for head in _FORM:
        text = text.partition(head)[0]
    return text.strip()


def _methods() -> dict[str, frozenset[str]]:
    """Names of the methods of each class, in each language."""
    found = {}
    for language in LANGUAGES:
        for name in scenarios.CLASS_MODULE_MAPPING:
            (instance,) = scenarios.load_scenario_instances({}, [name], language).values()
            found[f"{language} {name}"] = frozenset(key for key, _ in inspect.getmembers(instance, inspect.ismethod))
    return found


def _flat(errors: Any) -> list[Any]:
    return [inner for error in errors for inner in _flat(error)] if isinstance(errors, list) else [errors]
