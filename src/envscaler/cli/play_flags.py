"""Who plays and how its replies are taken, as options of every command in which an agent plays."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any

import typer


class AgentName(StrEnum):
    """Who plays."""

    MODEL = "model"
    ORACLE = "oracle"
    RANDOM = "random"
    NOOP = "noop"


class DialectOption(StrEnum):
    """How the model's calls are written."""

    AUTO = "auto"
    NATIVE = "native"
    HERMES = "hermes"
    QWEN35 = "qwen3.5"
    LLAMA = "llama"
    MISTRAL = "mistral"
    REACT = "react"
    SCHEMA = "schema"


class OnSlipName(StrEnum):
    """What is made of the model's replies whose form is wrong."""

    REPAIR = "repair"
    ERROR = "error"
    STOP = "stop"


class ReasoningName(StrEnum):
    """Which reasoning the model is shown again."""

    NONE = "none"
    TURN = "turn"
    ALL = "all"


class SlipsName(StrEnum):
    """What is made of slips of the simulated user."""

    KEEP = "keep"
    RETRY = "retry"
    MASK = "mask"


@dataclass(frozen=True)
class PlayFlags:
    """The agent, and the form of its replies."""

    agent: Annotated[
        AgentName,
        typer.Option(
            "--agent",
            "-a",
            help="A model, the recorded solutions (oracle), valid calls at random, or doing nothing (noop).",
        ),
    ] = AgentName.MODEL
    seed: Annotated[int, typer.Option("--seed", help="Seed of agents that draw.")] = 0
    dialect: Annotated[
        DialectOption,
        typer.Option("--dialect", help="How the model's calls are written; auto asks the endpoint what it can."),
    ] = DialectOption.AUTO
    on_slip: Annotated[
        OnSlipName,
        typer.Option(
            "--on-slip",
            help="Replies whose form is wrong: put right what is certain, answer with an error, or stop.",
        ),
    ] = OnSlipName.REPAIR
    parallel_calls: Annotated[
        bool,
        typer.Option("--parallel-calls/--single-calls", help="Carry out all calls of a reply, or the first only."),
    ] = True
    reasoning: Annotated[
        ReasoningName | None,
        typer.Option(
            "--reasoning",
            help="Reasoning that the model is shown again: none, since the last user message, or all.",
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The same as fields of `RolloutSettings`."""
        return {
            "agent": self.agent.value,
            "seed": self.seed,
            "dialect": self.dialect.value,
            "on_slip": self.on_slip.value,
            "parallel_calls": self.parallel_calls,
            "reasoning": self.reasoning.value if self.reasoning is not None else None,
        }
