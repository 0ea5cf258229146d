"""The loop of one worker: it builds one instance, calls its methods and puts the state back where a call fails.

It runs in a process that is hardened already and never outlives its socket. Deadlines that a program cannot swallow
are the parent's business.
"""

from __future__ import annotations

import signal
import socket
import types
from collections.abc import Callable
from marshal import dumps, loads
from typing import Any, Literal, NoReturn

import msgspec

from envscaler.canonical import JsonValue, bytes_digest, canonical, encode, from_json, to_json
from envscaler.errors import NotJson
from envscaler.sandbox.inside import loader
from envscaler.sandbox.inside.virtual import Virtual
from envscaler.sandbox.inside.wire import Build, Call, Judge, Read, Reply, Request, Settings, framed, receive

INTERRUPT_EVERY_S = 0.1
"""A program can swallow an interruption; it comes again after this much more CPU time."""

_decode_request = msgspec.msgpack.Decoder(Request).decode

FailureKind = Literal["raised", "timeout", "not_json", "too_large", "unknown_tool"]


class Interrupted(BaseException):
    """The running call has used its CPU time."""


class TooLarge(Exception):
    """A result or a state is larger than the limits allow."""


class UnknownTool(Exception):
    """The class has no public method of that name."""


class Worker:
    """One worker: at most one instance, one call at a time."""

    def __init__(self, sock: socket.socket, code: types.CodeType | None, settings: Settings, virtual: Virtual) -> None:
        self._sock = sock
        self._code = code
        self._settings = settings
        self._virtual = virtual
        self._running = False
        self._interrupted = False
        """Whether the present request has used up its time, whatever became of the interruption."""
        self._seed = 0
        self._class: type = object
        self._instance: object = None
        self._tools: dict[str, Any] = {}
        self._digest = ""
        self._saved: bytes | None = None
        """The attributes after the last call that succeeded; None when marshal cannot hold them."""

    def serve(self) -> None:
        """Answer requests until the parent is gone."""
        signal.signal(signal.SIGPROF, self._interrupt)
        while (body := receive(self._sock)) is not None:
            request = _decode_request(body)
            self._sock.sendall(framed(self._answer(request)))

    def _answer(self, request: Request) -> Reply:
        if isinstance(request, Call):
            self._virtual.begin(self._seed, request.index, request.clock_us)
            cpu_s = self._settings.cpu_s * (2 if request.again else 1)
            return self._guarded(request.serial, lambda: self._call(request), cpu_s)
        if isinstance(request, Build):
            self._seed = request.seed
            self._virtual.begin(request.seed, -1, request.clock_us)
            return self._guarded(request.serial, lambda: self._build(request))
        if isinstance(request, Read):
            return self._guarded(request.serial, lambda: self._read(request))
        self._virtual.begin(0, 0, request.clock_us)
        return self._guarded(request.serial, lambda: self._judge(request))

    # -- what requests do -----------------------------------------------------------------------------------

    def _build(self, request: Build) -> Reply:
        assert self._code is not None
        # A worker may be built a second time; nothing of the first instance is to be taken for the second's.
        self._instance, self._saved, self._digest = None, None, ""
        self._class = loader.load(self._code, request.class_name)
        self._tools = loader.tools_of(self._class)
        self._instance = loader.construct(self._class, lambda: from_json(request.state))
        self._observe()
        return Reply(serial=request.serial, digest=self._digest, clock_us=self._virtual.clock_us)

    def _call(self, request: Call) -> Reply:
        tool = self._tools.get(request.name)
        if tool is None:
            raise UnknownTool(f"the class has no public method {request.name}")
        result = tool.__get__(self._instance, self._class)(**from_json(request.arguments))
        text = self._limited(canonical(result), "result", self._settings.max_output_bytes)
        changed = self._observe()
        return Reply(
            serial=request.serial,
            result=text,
            digest=self._digest,
            changed=changed,
            clock_us=self._virtual.clock_us,
        )

    def _read(self, request: Read) -> Reply:
        text = self._limited(canonical(vars(self._instance)), "state", self._settings.max_state_bytes)
        return Reply(serial=request.serial, result=text, digest=self._digest, clock_us=self._virtual.clock_us)

    def _judge(self, request: Judge) -> Reply:
        final, initial = from_json(request.final), from_json(request.initial)
        if request.form == "function":
            value = loader.check_value(request.source, initial, final)
        else:
            value = loader.expression_value(request.source, final)
        mutated = not (_still(final, request.final) and _still(initial, request.initial))
        if type(value) is not bool:
            return Reply(
                serial=request.serial,
                kind="not_json",
                type="TypeError",
                message=f"it returned {type(value).__name__}, not a bool",
                changed=mutated,
            )
        return Reply(serial=request.serial, result=b"true" if value else b"false", changed=mutated)

    # -- state ----------------------------------------------------------------------------------------------

    def _observe(self) -> bool:
        """Take the state as it is now for the one to go back to; return whether it changed.

        Raises:
            NotJson, TooLarge: if it cannot be the state of a session.
        """
        attributes = vars(self._instance)
        saved = _marshalled(attributes)
        if saved is not None and saved == self._saved:
            return False
        text = encode(canonical(attributes))
        if len(text) > self._settings.max_state_bytes:
            raise TooLarge(f"the state takes {len(text)} bytes as JSON, allowed are {self._settings.max_state_bytes}")
        digest = bytes_digest(text)
        changed = digest != self._digest
        self._digest, self._saved = digest, saved
        return changed

    def _roll_back(self) -> bool:
        """Put the attributes back to what they were after the last call that succeeded; False if it cannot."""
        if self._instance is None:
            return False
        if self._saved is None:
            return False
        try:
            attributes = vars(self._instance)
            if _marshalled(attributes) != self._saved:
                attributes.clear()
                # marshal keeps tuples, sets and objects shared between attributes as they were.
                attributes.update(loads(self._saved))
        except BaseException:  # noqa: BLE001 - hostile attributes; the parent then replaces this worker
            return False
        return True

    def _limited(self, value: JsonValue, what: str, limit: int) -> bytes:
        # Not the canonical text: keys stay in the program's order, which programs and observations show.
        text = to_json(value)
        if len(text) > limit:
            raise TooLarge(f"the {what} takes {len(text)} bytes as JSON, allowed are {limit}")
        return text

    # -- deadlines and failures -----------------------------------------------------------------------------

    def _guarded(self, serial: int, body: Callable[[], Reply], cpu_s: float | None = None) -> Reply:
        try:
            try:
                self._interrupted = False
                self._running = True
                signal.setitimer(signal.ITIMER_PROF, cpu_s or self._settings.cpu_s, INTERRUPT_EVERY_S)
                reply = body()
                if self._interrupted:
                    raise Interrupted  # the program swallowed it: how far it came depends on the machine
                return reply
            finally:
                self._running = False
                signal.setitimer(signal.ITIMER_PROF, 0)
        except BaseException as error:  # noqa: BLE001 - whatever a program raises is the answer to its call
            self._running = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            return self._failure(serial, error)

    def _interrupt(self, *_: object) -> None:
        if self._running:
            self._interrupted = True
            raise Interrupted

    def _failure(self, serial: int, error: BaseException) -> Reply:
        # Where time or memory ran out, the call has done what it would not do again at the same place; only in a new
        # worker is what it left outside the instance what playing the log again gives.
        usable = self._roll_back() and not self._interrupted and not isinstance(error, MemoryError)
        kind: FailureKind = "raised"
        name = ""
        if isinstance(error, Interrupted):
            kind, name, message = "timeout", "Timeout", f"it used more than {self._settings.cpu_s:g} s of CPU time"
        elif isinstance(error, NotJson):
            kind, message = "not_json", str(error)
        elif isinstance(error, TooLarge):
            kind, message = "too_large", str(error)
        elif isinstance(error, UnknownTool):
            kind, message = "unknown_tool", str(error)
        else:
            message = self._message_of(error)
        limit = self._settings.max_message_chars
        return Reply(
            serial=serial,
            kind=kind,
            type=_clean(name or type(error).__name__, 200),
            message=_clean(message, limit),
            line=loader.line_of(error),
            digest=self._digest,
            clock_us=self._virtual.clock_us,
            usable=usable,
        )

    def _message_of(self, error: BaseException) -> str:
        # __str__ belongs to the program: it may loop or raise like any of its methods.
        try:
            self._running = True
            signal.setitimer(signal.ITIMER_PROF, self._settings.cpu_s, INTERRUPT_EVERY_S)
            return str(error)
        except BaseException:  # noqa: BLE001 - see above
            return "(its message cannot be read)"
        finally:
            self._running = False
            signal.setitimer(signal.ITIMER_PROF, 0)


def _marshalled(attributes: dict[str, Any]) -> bytes | None:
    try:
        return dumps(attributes)
    except ValueError:
        return None


def _still(value: JsonValue, text: bytes) -> bool:
    """Whether `value` is what was decoded from `text`."""
    try:
        return encode(canonical(value)) == encode(from_json(text))
    except NotJson:
        return False


def _clean(text: str, limit: int) -> str:
    text = str.__str__(text) if len(text) <= limit else text[: limit - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def run(sock: socket.socket, code: types.CodeType | None, settings: Settings, virtual: Virtual) -> NoReturn:
    """Serve until the parent is gone, then end the process without any clean-up that a program could hook into."""
    import os

    try:
        Worker(sock, code, settings, virtual).serve()
    finally:
        os._exit(0)
