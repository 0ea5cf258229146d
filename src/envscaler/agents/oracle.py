"""`OracleAgent`: plays the recorded solution of a scenario, alone or in other ways that come to the same end.

Which calls are put beside the solution is the business of `detours`; what is said of them, of `reports`.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from random import Random
from typing import Literal

from envscaler.agents.agent import AgentKind, Briefing
from envscaler.agents.detours import Move, plain, varied
from envscaler.agents.reports import Deed, mending, report, succeeded
from envscaler.agents.saying import all_called, called, said
from envscaler.llm.chat import Completion
from envscaler.messages import NOT_MADE, Message, ToolCall, ToolMessage
from envscaler.scenario import Scenario, SolutionCall
from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue, digest

OracleStyle = Literal["plain", "varied"]
"""`varied`: sample 0 is the recorded solution, the others are drawn ways to the same end."""


GOLD_FINAL = "Done."


class OracleAgent:
    """Plays the recorded solution call by call, values of earlier results put in, then says what was done."""

    kind: AgentKind = "oracle"
    model: str | None = None
    dialect: str | None = None

    def __init__(self, style: OracleStyle = "plain") -> None:
        self._style = style

    def unplayable(self, scenario: Scenario) -> str | None:
        return "no recorded solution" if scenario.solution is None else None

    def start(self, briefing: Briefing) -> _OraclePlayer | _GoldPlayer:
        return (
            _OraclePlayer(briefing, self._style)
            if briefing.gold is None
            else _GoldPlayer(briefing.gold, briefing.gold_said)
        )


class _GoldPlayer:
    """Makes all calls that are recorded for a user message at once, then says what is recorded, or that it is done."""

    def __init__(self, gold: Sequence[Sequence[SolutionCall]], words: Sequence[str]) -> None:
        self._gold = gold
        self._words = words

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        told = [index for index, message in enumerate(conversation) if message.role == "user"]
        turn = len(told) - 1
        seen = [message for message in conversation[told[-1] :] if isinstance(message, ToolMessage)]
        done = sum(message.fault != NOT_MADE for message in seen)
        calls = self._gold[turn] if turn < len(self._gold) else ()
        if done >= len(calls):
            return said("oracle", (self._words[turn] if turn < len(self._words) else "") or GOLD_FINAL)
        # At once, because a benchmark may allow fewer steps in a turn than calls are recorded for it.
        rest = enumerate(calls[done:], done)
        return all_called(
            "oracle",
            tuple(
                ToolCall(name=call.name, arguments=call.arguments, id=f"call_{turn}_{index}") for index, call in rest
            ),
        )


class _OraclePlayer:
    def __init__(self, briefing: Briefing, style: OracleStyle) -> None:
        scenario = briefing.scenario
        if scenario is None or scenario.solution is None:
            raise ValueError("the oracle plays scenarios with a recorded solution only; ask unplayable() first")
        self._scenario = scenario
        self._briefing = briefing
        self._varies = style == "varied" and briefing.sample > 0
        self._moves: tuple[Move, ...] | None = None

    async def act(self, conversation: Sequence[Message], tools: Sequence[ToolSpec]) -> Completion:
        if self._moves is None:
            self._moves = self._course(tools)
        seen = [message for message in conversation if isinstance(message, ToolMessage)]
        done = len(seen)
        if done >= len(self._moves):
            return said("oracle", self._report(seen, tools))
        move = self._moves[done]
        text = ""
        if move.mends:
            last = seen[-1]
            text = mending(last.content, is_error=last.is_error, language=self._briefing.language)
        call = ToolCall(name=move.plan.call.name, arguments=self._arguments(move, seen), id=f"call_{done}_0")
        return called("oracle", call, text)

    def _course(self, tools: Sequence[ToolSpec]) -> tuple[Move, ...]:
        if not self._varies:
            return plain(self._scenario)
        briefing = self._briefing
        rng = Random(digest(["oracle", self._scenario.digest, briefing.seed, briefing.sample]))
        return varied(self._scenario, tools, briefing.entities, rng)

    def _arguments(self, move: Move, seen: Sequence[ToolMessage]) -> dict[str, JsonValue]:
        results: dict[int, JsonValue] = {}
        for made, message in zip(self._moves or (), seen, strict=False):
            if made.plan.number is not None:
                results[made.plan.number] = _result(message.content)
        return move.arguments(results)

    def _report(self, seen: Sequence[ToolMessage], tools: Sequence[ToolSpec]) -> str:
        known = {tool.name: tool for tool in tools}
        deeds = []
        sought = {
            move.plan.number: move.plan.call.arguments
            for move in self._moves or ()
            if move.plan.number is not None and (tool := known.get(move.plan.call.name)) and tool.effect == "query"
        }
        for move, message in zip(self._moves or (), seen, strict=False):
            tool = known.get(message.name)
            if tool is not None and tool.effect == "update" and move.wrong is None:
                worked = not message.is_error and succeeded(message.content)
                call = move.plan.call
                sources = (sought[binding.call] for binding in call.bindings.values() if binding.call in sought)
                deeds.append(Deed(tool, (*sources, call.arguments), worked))
        return report(deeds, self._scenario.task, self._briefing.language)


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
