"""tau-bench's own loop and reward over recorded replies, run by the interpreter of its environment.

    PYTHON tests/bench/contract_tau/official_tau.py CHECKOUT RECORDED VERDICTS

RECORDED has a line `{"id", "sample", "play", "steps"}` for each episode, where a step is `{"text", "calls"}`. Of the
calls of a step the first one counts, as in its `ToolCallingAgent`. The user answers as often as the agent was told to
go on, then it stops. What is written to VERDICTS is the reward, and what the agent saw.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

LIMIT = 30
"""Steps at most in its `ToolCallingAgent`."""


class _User:
    def __init__(self, answers: int) -> None:
        self._answers = answers

    def reset(self, instruction: str | None = None) -> str:
        return "Hello."

    def step(self, content: str) -> str:
        self._answers -= 1
        return "###STOP###" if self._answers == -1 else "And now?"

    def get_total_cost(self) -> float:
        return 0.0


def main(checkout: Path, recorded: Path, verdicts: Path) -> None:
    """Play and judge every episode by itself."""
    litellm = types.ModuleType("litellm")
    litellm.completion = None  # type: ignore[attr-defined]
    sys.modules["litellm"] = litellm
    sys.path.insert(0, str(checkout))
    from tau_bench.agents.tool_calling_agent import message_to_action
    from tau_bench.envs import base, get_env

    with verdicts.open("w", encoding="utf-8") as out:
        for line in recorded.read_text(encoding="utf-8").splitlines():
            episode = json.loads(line)
            domain, _, index = episode["id"].partition("_")
            says = sum(not step["calls"] for step in episode["steps"])
            user = _User(says - 1)
            base.load_user = lambda *_, user=user, **__: user
            environment = get_env(domain, "llm", "none", "test", "none", task_index=int(index))
            environment.reset(task_index=int(index))
            reward, seen = 0.0, []
            for step in episode["steps"][:LIMIT]:
                response = environment.step(message_to_action(_message(step)))
                if step["calls"]:
                    seen.append(response.observation)
                if response.done:
                    reward = response.reward
                    break
            verdict = {"id": episode["id"], "sample": episode["sample"], "reward": reward, "seen": seen}
            out.write(json.dumps(verdict) + "\n")


def _message(step: dict[str, Any]) -> dict[str, Any]:
    """The reply as an endpoint gives it."""
    calls = [{"function": {"name": c["name"], "arguments": json.dumps(c["arguments"])}} for c in step["calls"]]
    return {"content": step["text"], "tool_calls": calls or None}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
