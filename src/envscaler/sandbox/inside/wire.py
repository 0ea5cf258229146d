"""Messages between the parent, the zygote and the workers: length-prefixed msgpack, typed on both sides.

Values of programs travel as JSON text inside them, so that whatever a hostile worker sends, the parent decodes JSON.
"""

from __future__ import annotations

import socket
from typing import Annotated, Literal

import msgspec

HEADER_BYTES = 4

Moment = Annotated[int, msgspec.Meta(ge=-62_135_596_800_000_000, le=253_402_257_600_000_000)]
"""Microseconds since 1970 of a time in the years 1 to 9999; calls can still go on half a day longer than it."""


class Settings(msgspec.Struct, frozen=True):
    """The part of the limits that zygote and workers enforce."""

    cpu_s: float
    memory_mb: int
    max_output_bytes: int
    max_state_bytes: int
    max_message_chars: int


# -- to a worker --------------------------------------------------------------------------------------------


class Build(msgspec.Struct, frozen=True, array_like=True, tag="build"):
    """Load the program and make an instance, in the place of one that has the same slot."""

    serial: int
    class_name: str
    state: bytes
    seed: int
    clock_us: int
    slot: int = 0
    """Which of the worker's instances it is."""


class Call(msgspec.Struct, frozen=True, array_like=True, tag="call"):
    """Call one public method."""

    serial: int
    index: int
    clock_us: int
    name: str
    arguments: bytes
    again: bool = False
    """Whether it is played again; it may then take twice the time, so as not to fail by a hair."""
    slot: int = 0


class Read(msgspec.Struct, frozen=True, array_like=True, tag="read"):
    """Send the state."""

    serial: int
    slot: int = 0


class Leave(msgspec.Struct, frozen=True, array_like=True, tag="leave"):
    """Forget one instance; not answered."""

    slot: int


class Judge(msgspec.Struct, frozen=True, array_like=True, tag="judge"):
    """Run check functions, or evaluate expressions, over a state; `Reply.result` is the JSON text of one `Judged` each.

    Several go together only where none can leave anything behind.
    """

    serial: int
    form: Literal["function", "expression"]
    sources: tuple[str, ...]
    initial: bytes
    final: bytes
    clock_us: int
    seed: int = 0
    """Of the random streams that a check may draw from."""


class JudgeEdited(msgspec.Struct, frozen=True, array_like=True, tag="edited"):
    """Run check functions over many states that differ little from one; `Reply.result` is the JSON text of a list of
    `Judged` for each state.

    Only for functions that can leave nothing behind.
    """

    serial: int
    sources: tuple[str, ...]
    initial: bytes
    final: bytes
    edits: bytes
    """JSON text of a list of edits (`envscaler.editing`) for each state."""
    clock_us: int


Request = Build | Call | Read | Judge | JudgeEdited
Message = Request | Leave


# -- from a worker ------------------------------------------------------------------------------------------


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """The answer to one request."""

    serial: int
    kind: Literal["ok", "raised", "timeout", "not_json", "too_large", "unknown_tool"] = "ok"
    result: bytes = b"null"
    digest: Annotated[str, msgspec.Meta(max_length=32)] = ""
    changed: bool = False
    clock_us: Moment = 0
    type: Annotated[str, msgspec.Meta(max_length=200)] = ""
    message: str = ""
    line: int = 0
    """Line of the program at which it failed; 0 when unknown."""
    usable: bool = True
    """False when the worker could not put the state back by itself and has to be replaced."""


class Judged(msgspec.Struct, frozen=True, array_like=True):
    """What one check function, or one expression, said."""

    value: bool | None
    """None when it gave no `bool`."""
    error: str = ""
    """Why it gave none."""
    mutated: bool = False


# -- to the zygote and back ---------------------------------------------------------------------------------


class Load(msgspec.Struct, frozen=True, array_like=True, tag="load"):
    """Compile a program and keep the result for later forks; answered by `Loaded`."""

    digest: str
    source: str


class Fork(msgspec.Struct, frozen=True, array_like=True, tag="fork"):
    """Fork a worker on the socket sent along; answered by `Forked`."""

    digest: str
    """The program to load; empty for a worker that judges."""


class Reap(msgspec.Struct, frozen=True, array_like=True, tag="reap"):
    """Collect a worker that was killed; not answered."""

    pid: int


Order = Load | Fork | Reap


class Ready(msgspec.Struct, frozen=True, array_like=True):
    """The zygote's first message."""

    hardened: bool
    missing: tuple[str, ...]


class Loaded(msgspec.Struct, frozen=True, array_like=True):
    """Whether a program compiled; `type` is empty when it did."""

    type: str = ""
    message: str = ""
    line: int = 0
    refused: bool = False
    """The system gives no process to compile it in."""


class Forked(msgspec.Struct, frozen=True, array_like=True):
    """The new worker's process id; 0 when the program was not, or is no longer, loaded; -1 when the system gives no
    process."""

    pid: int


encode = msgspec.msgpack.Encoder().encode


def utf8(text: str) -> str:
    """A source text or a name that can travel: half a surrogate pair becomes the escape that stands for it."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def framed(message: msgspec.Struct) -> bytes:
    """A message with its length in front."""
    body = encode(message)
    return len(body).to_bytes(HEADER_BYTES, "big") + body


def receive(sock: socket.socket, beginning: bytes = b"") -> bytes | None:
    """Read one frame's body from a blocking socket and not a byte more; None when the other side is gone.

    Args:
        beginning: what was read of the header already.
    """
    header = _exactly(sock, HEADER_BYTES - len(beginning))
    return None if header is None else _exactly(sock, int.from_bytes(beginning + header, "big"))


def _exactly(sock: socket.socket, size: int) -> bytes | None:
    first = sock.recv(size)
    if len(first) == size:
        return first
    parts = bytearray(first)
    while first and len(parts) < size:
        first = sock.recv(size - len(parts))
        parts += first
    return bytes(parts) if first else None
