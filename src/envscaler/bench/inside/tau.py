"""tau-bench: its tools carried out by its own environments, and its own reward.

It is in no package registry: what is played is a checkout of the user's, and nothing of it stands here. The words of
the user of agents that are no models are ours, and so is the assistant's greeting.

Source: Yao et al., τ-bench; how an episode begins and ends follows its `Env` and `ToolCallingAgent`.
"""

from __future__ import annotations

import gc
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from envscaler.bench.inside.absent import without
from envscaler.bench.inside.copies import in_copy

DOMAINS = ("retail", "airline")
GREETING = "Hello! How can I help you?"
HELLO = "Hello, I need help with something."
GO_ON = "Please go on."
_STOP = "###STOP###"
"""What the benchmark takes for the end of a conversation."""
_FAILED = "Error"
"""How what a call gives begins when it failed; exceptions and refusals of tools are told alike."""
_ENDS = ("finished", "user_stopped")


def service(settings: Mapping[str, Any]) -> Tau:
    """The benchmark, from the checkout that the settings name."""
    return Tau(Path(settings["data"]))


class User:
    """Stands where the benchmark asks a model: nothing of what it says is looked at, but for the end."""

    def __init__(self) -> None:
        self.stops = False
        """Whether its next words end the conversation."""

    def reset(self, instruction: str | None = None) -> str:
        """The first words."""
        return ""

    def step(self, content: str) -> str:
        """The answer to a message."""
        stops, self.stops = self.stops, False
        return _STOP if stops else ""

    def get_total_cost(self) -> float:
        """What its words cost."""
        return 0.0


class Tau:
    """All test tasks, by id, and an environment of each domain, of which every session has a copy."""

    def __init__(self, checkout: Path) -> None:
        gc.disable()  # sessions are processes that end soon
        sys.path.insert(0, str(checkout))
        with without("litellm"):
            from tau_bench.envs import base, get_env
            from tau_bench.types import RESPOND_ACTION_NAME, Action
        self.action = Action
        self.respond: str = RESPOND_ACTION_NAME
        self.user = User()
        base.load_user = lambda *_, **__: self.user
        self.environments: dict[str, Any] = {
            domain: get_env(domain, "llm", "none", "test", "none", task_index=0) for domain in DOMAINS
        }
        self.code = _digest_of(checkout / "tau_bench" / "envs")
        self.tasks = {
            f"{domain}_{index}": (domain, index)
            for domain, environment in self.environments.items()
            for index in range(len(environment.tasks))
        }

    def session(self) -> Episode:
        """A session in which at most one episode is played, or judged."""
        return Episode(self)


class Episode:
    """One task in play, or questions about tasks."""

    def __init__(self, benchmark: Tau) -> None:
        self._benchmark = benchmark
        self._environment: Any = None
        self._play: str | None = None
        self._pauses = 0

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """
        Raises:
            KeyError: for a task that does not exist.
        """
        what, benchmark = question["do"], self._benchmark
        if what == "describe":
            return {"version": f"code {benchmark.code[:12]}", "steps": None}
        if what == "tasks":
            return {"tasks": [self._described(name, *place) for name, place in benchmark.tasks.items()]}
        if what == "call":
            return self._call(question["name"], question["arguments"])
        if what == "message":
            return self._answered()
        domain, index = benchmark.tasks[question["task"]]
        if what == "open":
            return self._open(domain, index, question["options"])
        if what == "score":
            return self._judged(domain, index, question["events"], question["over"])
        if what == "gold":
            return self._checked(domain, index)
        raise ValueError(f"{what!r} is not answered here")

    def _open(self, domain: str, index: int, options: Mapping[str, str]) -> Mapping[str, Any]:
        self._environment = self._benchmark.environments[domain]
        self._environment.reset(task_index=index)
        self._play = options.get("play")
        self._pauses = len(_parts(self._environment.task)) - 1 if self._play == "recorded" else 0
        told = {"system": self._environment.wiki, "tools": self._tools(), "digest": self._digested()}
        if self._play is not None:
            return {**told, "user": HELLO}
        return {
            **told,
            "user": None,
            "instructions": {"text": self._environment.task.instruction, "greeting": GREETING},
        }

    def _call(self, name: str, arguments: dict[str, Any]) -> Mapping[str, Any]:
        environment = self._environment
        if name == self._benchmark.respond:
            # To the benchmark that is a message to the user, and no tool.
            return {"refused": "unknown", "known": list(environment.tools_map)}
        # The reward is for whoever judges; working it out leaves the recorded state behind.
        ending, environment.terminate_tools = environment.terminate_tools, []
        content = environment.step(self._benchmark.action(name=name, kwargs=arguments)).observation
        environment.terminate_tools = ending
        over = {"over": "finished"} if name in ending else {}
        return {"content": content, "raised": content.startswith(_FAILED), "digest": self._digested(), **over}

    def _answered(self) -> Mapping[str, Any]:
        """What the user of an agent that is no model says."""
        if not self._pauses:
            return {"user": None}
        self._pauses -= 1
        return {"user": GO_ON, "tools": self._tools()}

    def _checked(self, domain: str, index: int) -> Mapping[str, Any]:
        def recorded() -> list[dict[str, Any]]:
            self._open(domain, index, {"play": "recorded"})
            events: list[dict[str, Any]] = []
            for calls, text in _parts(self._environment.task):
                for call in calls:
                    asked = {"do": "call", "name": call.name, "arguments": call.kwargs}
                    events.append({**asked, "answer": self._call(call.name, call.kwargs)})
                events.append({"do": "message", "text": text})
            return events

        events = in_copy(recorded)
        failed = sum(event["do"] == "call" and event["answer"]["raised"] for event in events)
        gold = in_copy(lambda: self._judged(domain, index, events, "finished"))
        return {
            "gold": {**gold, "recorded": {"raised": 0, "failed": failed}},
            "nothing": in_copy(lambda: self._judged(domain, index, [{"do": "message", "text": ""}], "finished")),
            "turns": [1, 1],
            "early": 0,
        }

    def _judged(self, domain: str, index: int, events: Sequence[Mapping[str, Any]], over: str | None) -> dict[str, Any]:
        """What the benchmark's own reward is for what was called and said.

        Args:
            over: how the episode ended; None: at some limit, which the benchmark gives nothing for.
        """
        environment, action = self._benchmark.environments[domain], self._benchmark.action
        environment.reset(task_index=index)
        made = [event for event in events if event["do"] == "message" or event.get("carried_out", True)]
        made = [event for event in made if event["do"] != "spoken"]
        told = None
        for number, event in enumerate(made):
            if event["do"] == "call":
                step = action(name=event["name"], kwargs=event["arguments"])
            else:
                self._benchmark.user.stops = over in _ENDS and number == len(made) - 1
                step = action(name=self._benchmark.respond, kwargs={"content": event["text"]})
            reply = environment.step(step)
            if reply.done:
                told = reply.info.reward_info
                break
        if told is None:
            return {"passed": False, "kind": "ended too early", "reason": None, "parts": {}, "recorded": {}}
        parts = {name: float(value) for name, value in told.info.model_dump().items() if name.startswith("r_")}
        missed = "" if told.reward else "another state than recorded, or not said what has to be"
        return {
            "passed": told.reward == 1.0,
            "kind": "reward",
            "reason": missed or None,
            "parts": {name.removeprefix("r_"): value for name, value in parts.items()},
            "recorded": {},
        }

    def _described(self, name: str, domain: str, index: int) -> Mapping[str, Any]:
        task = self._benchmark.environments[domain].tasks[index]
        parts = _parts(task)
        return {
            "id": name,
            "split": domain,
            "group": name,
            "digest": hashlib.sha256(f"{self._benchmark.code} {domain} {task.model_dump_json()}".encode()).hexdigest(),
            "gold": [[{"name": call.name, "arguments": call.kwargs} for call in calls] for calls, _ in parts],
            "gold_said": [text for _, text in parts],
            "turns": len(parts),
        }

    def _tools(self) -> list[dict[str, Any]]:
        return [tool["function"] for tool in self._environment.tools_info]

    def _digested(self) -> str:
        text = json.dumps(self._environment.data, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _parts(task: Any) -> list[tuple[list[Any], str]]:
    """The recorded calls with what has to be said: before them, as one of them may end the conversation."""
    calls = [action for action in task.actions if action.name != "respond"]
    return [([], "; ".join(task.outputs)), (calls, "")] if task.outputs else [(calls, "")]


def _digest_of(folder: Path) -> str:
    """Of everything that an environment is made of."""
    whole = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix in (".py", ".json", ".md"):
            whole.update(f"{file.relative_to(folder)} {hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()
