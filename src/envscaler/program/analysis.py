"""`analyze`: what is wrong with a program, found without running it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from envscaler.skeleton import ToolSpec

FaultKind = Literal[
    "syntax",
    "undefined_name",
    "import",
    "forbidden",
    "missing_attribute",
    "signature",
    "no_return",
    "missing_method",
    "undeclared_tool",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a program."""

    kind: FaultKind
    message: str
    """A sentence that a model or a person can act on."""
    tool: str | None = None
    """The tool whose method it is in; None when it concerns the whole program."""
    line: int | None = None
    """Line of the program, from 1."""


def analyze(source: str, class_name: str, tools: Sequence[ToolSpec]) -> tuple[Fault, ...]:
    """What is wrong with a program that is to offer `tools`; empty when nothing was found.

    Source: paper 3.2, assembly: the syntax tree is checked.
    """
    raise NotImplementedError
