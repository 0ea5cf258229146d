"""A library of two small environments, and its recorded solutions as text and as calls."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from env.lending import STATE, scenario, skeleton

from envscaler.agents.dialects import dialect_of
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.scenario import Binding, Check, Scenario, SolutionCall
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.store import LibraryStore

MEMBERS = ("Ann", "Bob", "Cleo", "Dai")
DESKS = ("lending-desk", "other-desk")

AWKWARD_SOURCE = '''\
from typing import Any, Dict, List, Literal, Optional


class LendingDesk:
    """Everything that a parameter can be."""

    def __init__(self, init_config: Optional[Dict[str, Any]] = None) -> None:
        self.calls: List[Any] = list((init_config or {}).get("calls", []))

    def reset(self, reason: str) -> Dict[str, Any]:
        self.calls.append(reason)
        return {"success": True}

    def get_reward(self) -> Dict[str, Any]:
        return {"success": True, "data": len(self.calls)}

    def many(
        self,
        text: str,
        count: int,
        share: float,
        sure: bool,
        names: List[str],
        prices: Dict[str, float],
        status: Literal["open", "closed"],
        either: int | str,
        rows: List[Dict[str, Any]],
        note: Optional[str] = None,
        limit: int = 3,
    ) -> Dict[str, Any]:
        self.calls.append([text, count, share, sure, names, prices, status, either, rows, note, limit])
        return {"success": True, "data": self.calls[-1]}
'''


def write_library(folder: Path) -> Path:
    """Two environments of the same kind with a scenario for each member, and one whose tools are awkward."""
    store = LibraryStore.create(folder)
    for desk in DESKS:
        environment = skeleton(id=desk)
        store.write_environment(environment, None, [lending_to(environment, n) for n in range(len(MEMBERS))])
    awkward = awkward_environment()
    nothing = Check(description="Was nothing done?", source="def check_func(state):\n    return state['calls'] == []\n")
    plain = scenario(awkward, initial_state={"calls": []}, checks=(nothing,), solution=())
    store.write_environment(awkward, None, [plain])
    store.write_index({})
    return store.path


def awkward_environment() -> EnvSkeleton:
    """An environment with tools that are named as trainers name methods of their own, and with many types."""
    made = skeleton(AWKWARD_SOURCE, {"reset": "update", "get_reward": "query", "many": "update"}, id="awkward-desk")
    many = made.tools[2]
    described: dict[str, Any] = json.loads(json.dumps(many.parameters))
    described["properties"]["text"]["description"] = "What to write.\nReturns: nothing. Args: none (choices: any)"
    described["properties"]["names"]["description"] = "names: of people"
    told = ToolSpec(
        name=many.name,
        description="Do many things.\n\nArgs: many.\nReturns: all of it",
        parameters=described,
        effect="update",
    )
    return made.model_copy(update={"tools": (*made.tools[:2], told)})


def lending_to(environment: EnvSkeleton, number: int) -> Scenario:
    """Lend Emma to one of the members."""
    member = MEMBERS[number]
    first = scenario(environment, number)
    goal = first.checks[0].source.replace("'Ann'", repr(member))
    return first.model_copy(
        update={
            "task": f"Lend Emma to {member}.",
            "checks": (first.checks[0].model_copy(update={"source": goal}), *first.checks[1:]),
            "solution": (
                SolutionCall(name="find_books", arguments={"title": "Emma"}),
                SolutionCall(
                    name="lend_book",
                    arguments={"book_id": "B1", "member": member},
                    bindings={"/book_id": Binding(call=0, pointer="/data/0/book_id")},
                ),
            ),
        }
    )


def solution_calls(scenario: Scenario, carry_out: Callable[[ToolCall], str]) -> Iterator[str]:
    """Carry out the recorded solution, values of earlier results put in; gives each observation."""
    results: list[Any] = []
    for call in scenario.solution or ():
        observation = carry_out(ToolCall(name=call.name, arguments=call.resolved(results)))
        results.append(json.loads(observation))
        yield observation


def as_text(call: ToolCall) -> str:
    """The call as a model of the Hermes family writes it."""
    return dialect_of("hermes").text_of(AssistantMessage(tool_calls=(call,)), {})


def untagged(observation: str) -> str:
    """The result in an observation of the Hermes dialect."""
    return observation.removeprefix("<tool_response>\n").removesuffix("\n</tool_response>")


def lend(member: str, book: str = "B1") -> ToolCall:
    """A call that changes something."""
    return ToolCall(name="lend_book", arguments={"book_id": book, "member": member})


__all__ = [
    "DESKS",
    "MEMBERS",
    "STATE",
    "as_text",
    "awkward_environment",
    "lend",
    "lending_to",
    "solution_calls",
    "untagged",
    "write_library",
]
