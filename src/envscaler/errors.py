"""Every exception that this package raises on purpose, as one tree.

    EnvScalerError
    ├── UsageError               what the user gave cannot be used                       exit 2
    │   ├── StoreError           a file or folder is missing, unreadable or not ours
    │   │   └── SchemaVersionError   written by a newer version of this package
    │   ├── TemplateError        a chat template is missing, broken, or refuses the messages
    │   ├── NotHardened          generated code cannot be contained here, as was required
    │   └── EndpointRejected     the endpoint refuses us for good (key, model, request)
    ├── BudgetExhausted          a limit on cost, tokens or calls was reached            exit 3
    ├── EndpointUnavailable      the endpoint stayed down for longer than `--patience`   exit 1
    ├── ReplyError               a model's reply could not be used, also after asking again
    │   └── RequestFailed        the endpoint answers others, but never this one request
    ├── ProgramError             a generated program cannot be assembled or loaded
    ├── NotJson                  a value cannot be written as JSON
    ├── ProcessLost              a process that shares the work died, and the one after it: infrastructure
    └── SandboxError             the machinery that runs generated code failed: infrastructure
        └── WorkerLost           the worker died and could not be rebuilt by replay

A bad episode is data and raises nothing: a tool that fails gives an observation. `UsageError` carries
one sentence that says what, where and what to do; the command line prints it without a traceback.
"""

from __future__ import annotations

import operator
from collections.abc import Collection
from typing import Literal


class EnvScalerError(Exception):
    """Root of the tree."""

    exit_code = 1


class UsageError(EnvScalerError):
    """What the user gave cannot be used; the message is one sentence that says what to do."""

    exit_code = 2


def require_one_of(what: str, value: object, names: Collection[str]) -> None:
    """
    Raises:
        UsageError: if `value` is none of the names; it tells them.
    """
    if value not in names:
        raise UsageError(f"{what} is {value!r}; give one of {', '.join(names)}")


def require_integer(what: str, value: object, *, low: int | None = None) -> int:
    """The integer that `value` is, NumPy's included; a bool is none.

    Raises:
        UsageError: if it is no integer of 64 bits, or below `low`.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise UsageError(f"{what} is an integer, not {value!r}")
    if low is not None and number < low:
        raise UsageError(f"{what} is {number}; give a number from {low} on")
    if not -(2**63) <= number < 2**63:
        raise UsageError(f"{what} is {number}; give an integer of 64 bits")
    return number


def exception_text(kind: str, message: str) -> str:
    """How an exception is named: `Type: message`, and the type alone where there is no message."""
    return f"{kind}: {message}" if message.strip() else kind


class StoreError(UsageError):
    """A file or folder is missing, unreadable, unwritable or not what it should be."""


class SchemaVersionError(StoreError):
    """A file was written by a newer version of this package."""


class EndpointRejected(UsageError):
    """The endpoint refuses for good: wrong key, unknown model, malformed request."""


class TemplateError(UsageError):
    """A chat template is missing or broken, or cannot write the messages that it was given."""


class NotHardened(UsageError):
    """The machine cannot contain generated code, and the user has said that it must."""


class BudgetExhausted(EnvScalerError):
    """A limit on cost, tokens or calls was reached; the same command resumes with a higher one."""

    exit_code = 3


class EndpointUnavailable(EnvScalerError):
    """The endpoint did not answer for longer than the patience given; the same command resumes."""


ReplyFault = Literal["empty", "withheld", "cut off", "unreadable", "misshapen", "rejected", "refused"]
"""What can be wrong with a reply: there is none; a content filter withheld it; it ended at the token limit; it holds no
JSON or code that parses; its fields are not those asked for; it was tried and does not do; the endpoint refuses the
request."""


class ReplyError(EnvScalerError):
    """A model's reply did not parse or validate, also after the fault had gone back to it."""

    def __init__(self, message: str, kind: ReplyFault = "unreadable") -> None:
        super().__init__(message)
        self.kind: ReplyFault = kind


class ProgramError(EnvScalerError):
    """A generated program cannot be assembled, analysed or loaded."""


class RequestFailed(ReplyError):
    """The endpoint answers other requests but not this one (too long, always an error). For a pipeline it is a
    failure of that unit only; for an episode it is infrastructure."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "refused")


class NotJson(EnvScalerError):
    """A value has no exact JSON form (a function, NaN, an integer beyond 64 bits, a cycle …)."""


class ProcessLost(EnvScalerError):
    """A process that shares the work died, and the one that was to do the same after it: memory, most often."""


class SandboxError(EnvScalerError):
    """The machinery that runs generated code failed. It is infrastructure, never the agent's fault."""


class WorkerLost(SandboxError):
    """A worker process died and could not be rebuilt by replaying its log."""
