"""`OracleAgent`: plays the recorded solution of a scenario, alone or in other ways that come to the same end.

Which calls are put beside the solution is the business of `detours`; what is said of them, of `reports`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Literal

from envscaler.agents.agent import AgentKind, Briefing
from envscaler.agents.saying import called, said
from envscaler.llm.chat import Completion
from envscaler.messages import Message, ToolCall, ToolMessage
from envscaler.scenario import Scenario
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue

OracleStyle = Literal["plain", "varied"]

ORACLE_FINAL = "Everything you asked for is done."


class OracleAgent:
    """Plays the recorded solution call by call, values of earlier results put in, then ends."""

    kind: AgentKind = "oracle"
    model: str | None = None

    def __init__(self, style: OracleStyle = "plain") -> None:
        self._style = style

    def unplayable(self, scenario: Scenario) -> str | None:
        return "no recorded solution" if scenario.solution is None else None

    def start(self, briefing: Briefing) -> _OraclePlayer:
        return _OraclePlayer(briefing)


class _OraclePlayer:
    def __init__(self, briefing: Briefing) -> None:
        scenario = briefing.scenario
        if scenario is None or scenario.solution is None:
            raise ValueError("the oracle plays scenarios with a recorded solution only; ask unplayable() first")
        self._solution = scenario.solution

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        results = [_result(message.content) for message in conversation if isinstance(message, ToolMessage)]
        done = len(results)
        if done >= len(self._solution):
            return said("oracle", ORACLE_FINAL)
        call = self._solution[done]
        arguments = call.resolved(results)
        return called("oracle", ToolCall(name=call.name, arguments=arguments, id=f"call_{done}_0"))


def _result(observation: str) -> JsonValue:
    try:
        return json.loads(observation)
    except ValueError:
        pass
    try:
        # Environments of the authors' release show results as Python writes them.
        return ast.literal_eval(observation)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
