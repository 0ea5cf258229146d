"""tau2-bench's own orchestrator and evaluators over recorded replies, run by the interpreter of its environment.

    PYTHON tests/bench/contract_tau/official_tau2.py RECORDED VERDICTS

RECORDED has a line `{"id", "sample", "play", "steps"}` for each episode, where a step is `{"text", "calls"}`. The user
says hello, does what is recorded of it where `play` is `recorded`, and then stops. What is written to VERDICTS is the
reward, and what the agent saw. Modules for asking models, which neither needs, are replaced by empty ones.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any


class _Anything(types.ModuleType):
    """A module that has whatever is asked for."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None


for module in ("litellm", "litellm.caching", "litellm.caching.caching", "litellm.main", "pandas", "deepdiff", "dotenv"):
    sys.modules[module] = _Anything(module)

from loguru import logger  # noqa: E402
from tau2.agent.base import LocalAgent  # noqa: E402
from tau2.config import DEFAULT_MAX_ERRORS, DEFAULT_MAX_STEPS  # noqa: E402
from tau2.data_model.message import AssistantMessage, ToolCall, UserMessage  # noqa: E402
from tau2.evaluator.evaluator import EvaluationType, evaluate_simulation  # noqa: E402
from tau2.orchestrator.orchestrator import Orchestrator  # noqa: E402
from tau2.registry import registry  # noqa: E402
from tau2.user.base import STOP, BaseUser, UserState  # noqa: E402


class _Agent(LocalAgent[None]):
    """Says and calls what was recorded."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        super().__init__(tools=[], domain_policy="")
        self._steps = iter(steps)

    def get_init_state(self, message_history: Any = None) -> None:
        return None

    def generate_next_message(self, message: Any, state: None) -> tuple[AssistantMessage, None]:
        step = next(self._steps)
        calls = [ToolCall(id=str(n), name=c["name"], arguments=c["arguments"]) for n, c in enumerate(step["calls"])]
        return AssistantMessage(role="assistant", content=step["text"] or None, tool_calls=calls or None), None


class _User(BaseUser):
    """Says hello, does what is recorded of it after each of the agent's parts, and stops."""

    def __init__(self, task: Any, *, recorded: bool) -> None:
        super().__init__()
        self._messages = self._said(task, recorded)

    def get_init_state(self, message_history: Any = None) -> UserState:
        return UserState(system_messages=[], messages=[])

    def generate_next_message(self, message: Any, state: UserState) -> tuple[UserMessage, UserState]:
        return next(self._messages), state

    @classmethod
    def is_stop(cls, message: UserMessage) -> bool:
        return message.content is not None and STOP in message.content

    def stop(self, message: Any = None, state: Any = None) -> None:
        """Nothing is left to do."""

    @staticmethod
    def _said(task: Any, recorded: bool) -> Iterator[UserMessage]:
        yield UserMessage(role="user", content="Hello.")
        actions = (task.evaluation_criteria.actions or []) if recorded else []
        runs = [(who, list(own)) for who, own in groupby(actions, key=lambda action: action.requestor)]
        # What the agent does first needs no word of the user.
        for who, own in runs[1:] if runs and runs[0][0] == "assistant" else runs:
            if who == "assistant":
                yield UserMessage(role="user", content="And now?")
                continue
            for action in own:
                call = ToolCall(id="u", name=action.name, arguments=action.arguments, requestor="user")
                yield UserMessage(role="user", tool_calls=[call])
        yield UserMessage(role="user", content=STOP)


def main(recorded: Path, verdicts: Path) -> None:
    """Play and judge every episode by itself."""
    logger.remove()
    tasks = {
        f"{domain}_{task.id}": (domain, task) for domain in DOMAINS for task in registry.get_tasks_loader(domain)()
    }
    with verdicts.open("w", encoding="utf-8") as out:
        for line in recorded.read_text(encoding="utf-8").splitlines():
            episode = json.loads(line)
            domain, task = tasks[episode["id"]]
            run = Orchestrator(
                domain=domain,
                agent=_Agent(episode["steps"]),
                user=_User(task, recorded=episode["play"] == "recorded"),
                environment=registry.get_env_constructor(domain)(),
                task=task,
                max_steps=DEFAULT_MAX_STEPS,
                max_errors=DEFAULT_MAX_ERRORS,
            ).run()
            told = evaluate_simulation(run, task, EvaluationType.ALL, solo_mode=False, domain=domain)
            seen = [m.content for m in run.messages if m.role == "tool" and m.requestor == "assistant"]
            verdict = {"id": episode["id"], "sample": episode["sample"], "reward": told.reward, "seen": seen}
            out.write(json.dumps(verdict) + "\n")


DOMAINS = ("airline", "retail", "telecom")

if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
