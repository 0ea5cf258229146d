"""Agents that play recorded solutions with one thing wrong, and one that cheats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

from envscaler.agents import Briefing, OracleAgent
from envscaler.agents.agent import AgentKind, Player
from envscaler.scenario import Scenario, SolutionCall
from envscaler.state import digest

FAULTS = ("drop", "swap", "repeat", "argument", "made up", "silent", "move", "none")
Turns = list[list[SolutionCall]]


class _Scripted:
    """What is no kind of player that others know."""

    kind: AgentKind = "random"
    model: str | None = None
    dialect: str | None = None

    def unplayable(self, scenario: Scenario) -> str | None:
        return None


class ImperfectAgent(_Scripted):
    """Plays what is recorded, but for one mistake that is drawn by task and sample."""

    def start(self, briefing: Briefing) -> Player:
        assert briefing.gold is not None
        rng = Random(digest([briefing.task, briefing.sample]))
        turns = [list(turn) for turn in briefing.gold]
        fault = FAULTS[(briefing.sample + rng.randrange(2)) % len(FAULTS)]
        if any(turns):
            _spoil(turns, fault, rng)
        return _playing(briefing, turns, () if fault == "silent" else briefing.gold_said)


class CheatingAgent(_Scripted):
    """Does what it should not be able to do yet, and makes a senseless call when it should do it.

    The checker takes that: it wants some call in each turn, and the right state at its end.
    """

    def start(self, briefing: Briefing) -> Player:
        assert briefing.gold is not None
        turns = [list(turn) for turn in briefing.gold]
        for index in range(len(turns) - 1):
            if not turns[index] and turns[index + 1]:
                turns[index], turns[index + 1] = turns[index + 1], [SolutionCall(name="pwd", arguments={"garbage": 1})]
        return _playing(briefing, turns)


def _playing(briefing: Briefing, turns: Sequence[Sequence[SolutionCall]], said: tuple[str, ...] = ()) -> Player:
    gold = tuple(tuple(turn) for turn in turns)
    return OracleAgent().start(replace(briefing, gold=gold, gold_said=said))


def _spoil(turns: Turns, fault: str, rng: Random) -> None:
    filled = [turn for turn in turns if turn]
    turn = rng.choice(filled)
    index = rng.randrange(len(turn))
    if fault == "drop":
        del turn[index]
    elif fault == "swap":
        rng.shuffle(turn)
    elif fault == "repeat":
        turn.insert(index, turn[index])
    elif fault == "argument":
        turn[index] = _otherwise(turn[index], rng)
    elif fault == "made up":
        turn.insert(index, SolutionCall(name=rng.choice(("no_such_tool", "frobnicate")), arguments={"a": "it's"}))
    elif fault == "silent":
        turn.clear()
    elif fault == "move" and len(filled) > 1:
        other = rng.choice([one for one in filled if one is not turn])
        other.append(turn.pop(index))


def _otherwise(call: SolutionCall, rng: Random) -> SolutionCall:
    arguments: dict[str, Any] = dict(call.arguments)
    if not arguments:
        return call.model_copy(update={"arguments": {"not_a_parameter": {"quotes": "\"'", "deep": [None, True]}}})
    name = rng.choice(sorted(arguments))
    value = arguments[name]
    if isinstance(value, bool) or value is None:
        arguments[name] = not value
    elif isinstance(value, int | float):
        arguments[name] = value + 1
    elif isinstance(value, str):
        arguments[name] = rng.choice((value + "x", f"{value} \"quoted\" 'twice'", value + "\n電燈", {"text": value}))
    else:
        arguments[name] = str(value)
    return call.model_copy(update={"arguments": arguments})
