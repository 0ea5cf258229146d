"""Episodes as records, in the shapes that trainers stumble over: what the tests of exports write and read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from env.lending import skeleton

from envscaler.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from envscaler.store import RunStore
from envscaler.trajectory import CheckResult, Step, StopReason, Trajectory, Verdict

ENVIRONMENT = skeleton()
NESTED: dict[str, Any] = {"book_id": "B1", "member": {"name": "Œ 图", "phone": None, "tags": [{"k": 1}, []]}}


def verdict(*passed: bool) -> Verdict:
    return Verdict(
        checks=tuple(CheckResult(description="?", kind="goal", passed=ok, held_at_reset=False) for ok in passed)
    )


def turn(
    *calls: tuple[str, dict[str, Any]],
    says: str = "",
    thinks: str | None = None,
    told: str | None = None,
    sees: str = '{"success":true}',
    number: int = 0,
    **changes: Any,
) -> Step:
    """One step: what the user says before it, the agent's message, and an observation for each call."""
    made = tuple(
        ToolCall(name=name, arguments=arguments, id=f"call_{number}_{index}")
        for index, (name, arguments) in enumerate(calls)
    )
    return Step(
        turn=0,
        user=UserMessage(content=told) if told is not None else None,
        assistant=AssistantMessage(content=says, reasoning=thinks, tool_calls=made),
        observations=tuple(
            ToolMessage(content=f"{sees}{index or ''}", tool_call_id=call.id or "", name=call.name)
            for index, call in enumerate(made)
        ),
        **changes,
    )


PLAIN = (
    turn(("find_books", {"title": "Emma"}), told="Lend Emma.", number=0),
    turn(("lend_book", NESTED), says="Found it.", thinks="B1 it is", number=1),
    turn(says="Done.", thinks="All done."),
)
"""A task told at once: a call alone, a call with words and reasoning, an answer with reasoning."""

TALK = (
    turn(("find_books", {"title": "Emma"}), told="Hello.", thinks="Look first.", number=0),
    turn(says="For whom?", thinks="I lack a name."),
    turn(("lend_book", {"book_id": "B1", "member": "Ann"}), told="For Ann.", thinks="Now lend.", number=2),
    turn(says="Done.", thinks="That was it."),
)
"""A conversation of two messages of the user, with reasoning in every turn of the agent."""

PARALLEL = (
    turn(("find_books", {"title": "Emma"}), ("find_books", {"title": "Œ"}), told="Find both.", number=0),
    turn(says="Found."),
)
"""Two calls in one turn."""


def trajectory(**changes: Any) -> Trajectory:
    fields: dict[str, Any] = {
        "id": "t",
        "env_id": ENVIRONMENT.id,
        "scenario_id": "s",
        "env_digest": ENVIRONMENT.digest,
        "scenario_digest": "d",
        "agent": "model",
        "model": "m",
        "system_prompt": "You are an agent.\n",
        "tools": ENVIRONMENT.tools,
        "steps": PLAIN,
        "stop": StopReason.FINISHED,
        "verdict": verdict(True, True),
    }
    return Trajectory(**{**fields, **changes})


def stored(folder: Path, *trajectories: Trajectory) -> Path:
    """A run of these episodes."""
    with RunStore(folder) as run:
        for part in trajectories:
            run.append(part)
    return folder
