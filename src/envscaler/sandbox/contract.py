"""What goes into the sandbox and what comes out of it: programs, limits, outcomes, faults, snapshots.

How a program is run is the business of the modules beside this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from envscaler.state import JsonValue, State, text_digest

DEFAULT_CLOCK = "2025-01-06T09:00:00"
"""ISO 8601 time at which a session's virtual clock starts, unless told otherwise."""

Isolation = Literal["default", "required", "shared", "in-process"]
"""How far apart what runs is kept. `default`: every session in a process of its own, as hardened as this machine
allows. `required`: the same, and refused where it cannot be hardened. `shared`: many sessions of one program in one
process, for programs that were seen to do the same there. `in-process`: in this very process, for programs that the
offline model makes again. In the last two, programs for which that does not hold run as in `default`."""

Home = Literal["own", "shared", "in-process"]
"""Where the sessions of a program run: each in a process of its own, many in one process, or in this one."""

FaultKind = Literal["raised", "timeout", "killed", "not_json", "too_large", "unknown_tool"]
"""Why a call has no result.

`raised`: the method raised. `timeout`: it used up its CPU or wall time. `killed`: it ended its own worker, twice, or
took more memory than all workers together may.
`not_json`: the result, or the state it left, has no JSON form. `too_large`: one of them exceeds the limits.
`unknown_tool`: the class has no public method of that name.
"""


@dataclass(frozen=True)
class Program:
    """F_exec: the text of one environment program and the class in it that is the environment."""

    source: str
    class_name: str

    @cached_property
    def digest(self) -> str:
        """Pins text and class."""
        return text_digest(f"{self.class_name}\n{self.source}")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one session may use, and all together."""

    cpu_s: float = 2.0
    """CPU seconds after which the running call is interrupted inside its worker."""
    cpu_kill_s: float = 4.0
    """CPU seconds after which the worker is killed, for calls that swallow the interruption."""
    wall_s: float = 30.0
    """Seconds by the wall clock after which the worker is killed, however little CPU it used."""
    memory_mb: int = 512
    """Address space that a worker may take beyond what the interpreter itself occupies."""
    max_output_bytes: int = 1_000_000
    """Size of one call's result as JSON."""
    max_state_bytes: int = 16_000_000
    """Size of a state as JSON."""
    max_message_chars: int = 2_000
    """Length to which messages of exceptions are cut."""
    max_sessions: int = 20_000
    """Sessions open at once, parked ones included; `open` and `fork` wait for their turn beyond it."""
    max_live: int | None = None
    """Worker processes alive at once; None: what the cores, the memory and the file descriptors here allow. Sessions
    beyond it are parked, those idle longest, and woken by their next call; while none is idle, calls wait."""
    max_total_mb: int | None = None
    """Memory of all workers together; None: half of what is free when the sandbox is made, divided by `sandboxes`."""
    sandboxes: int = 1
    """Sandboxes, in processes of their own, that share this machine."""


@dataclass(frozen=True, slots=True)
class ToolFault:
    """Why a call gave no result. It is an observation for the agent, never an exception here."""

    kind: FaultKind
    type: str
    """Name of the exception's type, or of the limit that was broken."""
    message: str
    line: int = field(default=0, compare=False)
    """The last line of the program that the exception passed through, from 1; 0: none is known."""

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call did."""

    result: JsonValue
    """What the method returned, as canonical JSON with keys in the program's order; None with a fault."""
    fault: ToolFault | None
    digest: str
    """Digest of the state after the call."""
    changed: bool
    """Whether that state differs from the one before; always False with a fault, which is rolled back."""


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """What one check function, or one expression, said of a state."""

    value: bool | None
    """None when it gave no `bool`."""
    error: str | None
    """Why it gave none: `Type: message`."""
    mutated: bool
    """Whether it changed the state that it was given to look at. It worked on a copy of its own."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that decides how a session goes on."""

    state: State
    clock: str
    """ISO 8601 time of the virtual clock."""
    call_index: int
    """Calls made so far; with the seed it fixes the random streams of the next one."""
    seed: int


@dataclass(frozen=True, slots=True)
class IsolationReport:
    """How well workers are isolated on this machine."""

    level: Literal["hardened", "portable"]
    """`hardened`: contains attacks. `portable`: contains accidents, not attacks."""
    missing: tuple[str, ...] = ()
    """Protections that could not be put in place, one clause each."""


Arguments = Mapping[str, JsonValue]
"""Argument values by parameter name."""
