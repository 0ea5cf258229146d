"""`Scenario`: an initial state, a task, and checks over the final state (paper section 4).

How scenarios are made is `synth`'s business; how checks are run is `env`'s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, model_validator

from envscaler.record import Record
from envscaler.skeleton import Origin
from envscaler.state import JsonValue, State, digest, get, replaced

CheckKind = Literal["goal", "guard"]


class Check(Record):
    """One item of the checklist with its check function."""

    description: str
    """A sentence that is true or false of the final state."""
    source: str
    """Defines `check_func(final_state) -> bool`; may read a global `initial_state`."""
    kind: CheckKind | None = None
    """`goal`: to be brought about; `guard`: to stay true; None: not classified (imported)."""


class Binding(Record):
    """Says that a value of the arguments is the result of an earlier call."""

    call: int
    """Index of the earlier call in the solution."""
    pointer: str
    """JSON pointer of the value in that call's result."""


class SolutionCall(Record):
    """One call of a recorded solution, with literal values that worked in the recorded run."""

    name: str
    arguments: dict[str, JsonValue] = {}
    bindings: dict[str, Binding] = {}
    """JSON pointer in `arguments` → where its value comes from. A replay that varies calls resolves these first."""

    def resolved(self, results: Sequence[JsonValue] | Mapping[int, JsonValue]) -> dict[str, JsonValue]:
        """The arguments with each binding replaced by the value that the earlier call really returned.

        A value that is not there (the earlier call failed) leaves the recorded literal: the call is then made as it
        was recorded, and what comes of it is seen.

        Args:
            results: result of each earlier call of the solution, in order or by its index.
        """
        arguments: JsonValue = self.arguments
        for pointer, binding in self.bindings.items():
            try:
                arguments = replaced(arguments, pointer, get(results[binding.call], binding.pointer))
            except (KeyError, IndexError):
                continue
        return dict(arguments)


Level = Literal["easy", "medium", "hard"]


class Difficulty(Record):
    """What makes a scenario hard. What is None is not known: older records do not say it."""

    calls: int
    """Calls of the shortest known solution."""
    updates: int = 0
    """Calls among them that change the state."""
    entities: int = 0
    """Distinct entities touched."""
    rules: int = 0
    """Rules that stand in the way of a careless solution."""
    distractors: int | None = None
    """Untouched records that look like one that the solution touches."""
    look_ups: int | None = None
    """Ids that the solution needs and the task does not name."""
    forbidden: int | None = None
    """Records that look like a touched one and that the same call is refused for, where the task says "if"."""

    @property
    def level(self) -> Level:
        """How hard it is, by points: one each for more than 4 calls, more than 8 calls, 3 or more entities touched,
        5 or more rules, 2 or more distractors, 4 or more look-ups, anything forbidden. Easy up to 1 point, hard from
        5 on."""
        points = sum(
            (
                self.calls > 4,
                self.calls > 8,
                self.entities >= 3,
                self.rules >= 5,
                (self.distractors or 0) >= 2,
                (self.look_ups or 0) >= 4,
                bool(self.forbidden),
            )
        )
        return "easy" if points <= 1 else "medium" if points <= 4 else "hard"


class UserProfile(Record):
    """What the simulated user of a conversation knows and how it is told."""

    opening: str
    """The first message."""
    facts: tuple[str, ...] = ()
    """What is told afterwards, one fact a turn or when asked for."""
    persona: str = ""
    refuses: tuple[str, ...] = ()
    """What the user does not agree to when it is offered."""
    reveal: tuple[int, ...] | None = None
    """For each fact after how many of the agent's turns it is told at the earliest; None: when it is asked for."""

    @model_validator(mode="after")
    def _one_for_each_fact(self) -> UserProfile:
        if self.reveal is not None and len(self.reveal) != len(self.facts):
            raise ValueError(f"reveal has {len(self.reveal)} turns for {len(self.facts)} facts")
        return self


class Calibration(Record):
    """How often a model solved the scenario."""

    model: str
    samples: int = Field(ge=1)
    """Episodes that were judged."""
    solved: int
    reward: float | None = None
    """Mean reward of the mode `fraction`; None: not known."""
    settings: str | None = None
    """Id of the run that was played, which tells models and settings apart; None: not known."""

    @property
    def pass_rate(self) -> float:
        """Share of the episodes that were solved."""
        return self.solved / self.samples


class Scenario(Record):
    """A task that can be played in one environment from one initial state."""

    id: str
    env_id: str
    env_digest: str
    """Digest of the skeleton it was made for; another one makes the scenario stale."""
    initial_state: State
    task: str
    checks: tuple[Check, ...] = ()
    solution: tuple[SolutionCall, ...] | None = None
    """None: unknown; empty: nothing is to be done."""
    alternatives: tuple[tuple[SolutionCall, ...], ...] = ()
    """Other call sequences that are right as well."""
    clock: str = "2025-01-06T09:00:00"
    """ISO 8601 time at which an episode starts, in the environment's virtual time."""
    seed: int = Field(default=0, ge=-(2**63), lt=2**63)
    difficulty: Difficulty | None = None
    tools: tuple[str, ...] | None = None
    """Names of the tools shown to the agent; None: all."""
    user_profile: UserProfile | None = None
    split: str | None = None
    calibration: Calibration | None = None
    origin: Origin = Origin()
    released: dict[str, Any] | None = None
    """Fields of the authors' published format that have no place here, kept for lossless export."""

    @cached_property
    def digest(self) -> str:
        """Pins what an episode and its reward depend on."""
        parts = self.model_dump(
            mode="json", include={"env_digest", "initial_state", "task", "checks", "clock", "seed", "tools"}
        )
        return digest(parts)
