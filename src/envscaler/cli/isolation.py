"""The option `--isolation`, shared by every command that runs generated code."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class IsolationName(StrEnum):
    """How far apart sessions are kept."""

    DEFAULT = "default"
    REQUIRED = "required"
    SHARED = "shared"
    IN_PROCESS = "in-process"


class MakingIsolationName(StrEnum):
    """The same, for code that nobody knows yet."""

    DEFAULT = "default"
    REQUIRED = "required"


_REQUIRED = "`required` refuses to run where generated code cannot be contained"

IsolationOption = Annotated[
    IsolationName,
    typer.Option(
        "--isolation",
        help=f"{_REQUIRED}; `shared` keeps many sessions in one process, of programs that were seen to do the same "
        "there; `in-process` uses no process, for programs that the offline model writes again.",
    ),
]
MakingIsolationOption = Annotated[MakingIsolationName, typer.Option("--isolation", help=f"{_REQUIRED}.")]
