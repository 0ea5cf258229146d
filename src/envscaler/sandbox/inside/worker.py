"""The loop of one worker: it holds instances of one program, or judges states, and answers one request at a time.

It runs in a process that is hardened already and never outlives its socket. Deadlines that a program cannot swallow
are the parent's business.
"""

from __future__ import annotations

import signal
import socket
import types
from collections.abc import Callable
from functools import partial
from typing import NoReturn

import msgspec

from envscaler.canonical import JsonValue, canonical_text, from_json, to_json
from envscaler.editing import EditError, edit
from envscaler.errors import NotJson
from envscaler.sandbox.inside import loader
from envscaler.sandbox.inside.image import marshalled
from envscaler.sandbox.inside.instance import Instance, Timeout, clean, failed, message_of
from envscaler.sandbox.inside.virtual import Virtual
from envscaler.sandbox.inside.wire import (
    Build,
    Call,
    Judge,
    Judged,
    JudgeEdited,
    Leave,
    Message,
    Read,
    Reply,
    Request,
    Settings,
    framed,
    receive,
)

INTERRUPT_EVERY_S = 0.1
"""A program can swallow an interruption; it comes again after this much more CPU time."""

_LONGEST_REASON = 400
"""Characters of an exception that one of many checks raised."""

_decode_message = msgspec.msgpack.Decoder(Message).decode


class Worker:
    """One worker: instances of one program by their slots, one request at a time."""

    def __init__(self, sock: socket.socket, code: types.CodeType | None, settings: Settings, virtual: Virtual) -> None:
        self._sock = sock
        self._code = code
        self._settings = settings
        self._virtual = virtual
        self._instances: dict[int, Instance] = {}
        self._running = False
        self._interrupted = False
        """Whether the present request has used up its time, whatever became of the interruption."""

    def serve(self) -> None:
        """Answer requests until the parent is gone."""
        signal.signal(signal.SIGPROF, self.interrupt)
        while (body := receive(self._sock)) is not None:
            message = _decode_message(body)
            if isinstance(message, Leave):
                self._instances.pop(message.slot, None)
            else:
                self._sock.sendall(framed(self.answer(message)))

    def answer(self, request: Request) -> Reply:
        """Carry out one request."""
        if isinstance(request, Call):
            instance = self._instances[request.slot]
            cpu_s = self._settings.cpu_s * (2 if request.again else 1)
            return self._guarded(request.serial, lambda: instance.call(request), instance, cpu_s)
        if isinstance(request, Build):
            assert self._code is not None
            # A worker may be built a second time; nothing of the first instance is to be taken for the second's.
            built = self._instances[request.slot] = Instance(self._code, self._settings, self._virtual)
            return self._guarded(request.serial, lambda: built.build(request), built)
        if isinstance(request, Read):
            read = self._instances[request.slot]
            return self._guarded(request.serial, lambda: read.read(request), read)
        if isinstance(request, JudgeEdited):
            return self._guarded(request.serial, lambda: _said_of_edited(request, self._virtual))
        return self._judged(request)

    def _judged(self, request: Judge) -> Reply:
        judged = []
        states = _States(request)
        for source in request.sources:
            self._virtual.begin(request.seed, 0, request.clock_us)
            reply = self._guarded(request.serial, partial(_said, request, source, states))
            if reply.kind != "ok":
                states.renew()
            value = reply.result == b"true" if reply.kind == "ok" else None
            reason = f"{reply.type}: {reply.message}" if reply.message else reply.type
            judged.append(Judged(value, reason if value is None else "", reply.changed))
        return Reply(serial=request.serial, result=msgspec.json.encode(judged))

    # -- deadlines and failures -----------------------------------------------------------------------------

    def _guarded(
        self, serial: int, body: Callable[[], Reply], instance: Instance | None = None, cpu_s: float | None = None
    ) -> Reply:
        try:
            try:
                self._interrupted = False
                self._running = True
                signal.setitimer(signal.ITIMER_PROF, cpu_s or self._settings.cpu_s, INTERRUPT_EVERY_S)
                reply = body()
                if self._interrupted:
                    raise Timeout  # the program swallowed it: how far it came depends on the machine
                return reply
            finally:
                self._running = False
                signal.setitimer(signal.ITIMER_PROF, 0)
        except BaseException as error:  # noqa: BLE001 - whatever a program raises is the answer to its call
            self._running = False
            signal.setitimer(signal.ITIMER_PROF, 0)
            return self._failure(serial, error, instance)

    def interrupt(self, *_: object) -> None:
        """What SIGPROF does: end the running call."""
        if self._running:
            self._interrupted = True
            raise Timeout

    def _failure(self, serial: int, error: BaseException, instance: Instance | None) -> Reply:
        # Where time or memory ran out, the call has done what it would not do again at the same place; only in a new
        # worker is what it left outside the instance what playing the log again gives.
        usable = not self._interrupted and not isinstance(error, MemoryError)
        if isinstance(error, Timeout):
            message = f"it used more than {self._settings.cpu_s:g} s of CPU time"
        else:
            message = self._message_of(error)
        return failed(serial, error, message, instance, self._settings, self._virtual, usable=usable)

    def _message_of(self, error: BaseException) -> str:
        try:
            self._running = True
            signal.setitimer(signal.ITIMER_PROF, self._settings.cpu_s, INTERRUPT_EVERY_S)
            return message_of(error)
        finally:
            self._running = False
            signal.setitimer(signal.ITIMER_PROF, 0)


class _States:
    """The states to judge: the same objects for check after check, as long as they are what they were to the letter.

    Another order of keys, or one part in two places, is enough to lead the next check astray; marshal tells both.
    """

    def __init__(self, request: Judge) -> None:
        self._request = request
        self._mark: bytes | None = None
        """What marshal made of both; None where others have to be read."""
        self._initial: JsonValue = None
        self._final: JsonValue = None

    def both(self) -> tuple[JsonValue, JsonValue]:
        """The initial and the final state."""
        if self._mark is None:
            self._initial, self._final = from_json(self._request.initial), from_json(self._request.final)
            self._mark = marshalled((self._initial, self._final))
        return self._initial, self._final

    def untouched(self) -> bool:
        """Whether nothing has been done to them."""
        return self._mark is not None and marshalled((self._initial, self._final)) == self._mark

    def renew(self) -> None:
        """Have the next check see others."""
        self._mark = None


def _said(request: Judge, source: str, states: _States) -> Reply:
    initial, final = states.both()
    if request.form == "function":
        value = loader.check_value(source, initial, final)
    else:
        value = loader.expression_value(source, final)
    mutated = False
    if not states.untouched():
        states.renew()
        mutated = not (_still(final, request.final) and _still(initial, request.initial))
    if type(value) is not bool:
        text = clean(f"it returned {type(value).__name__}, not a bool", 200)
        return Reply(serial=request.serial, kind="not_json", type="TypeError", message=text, changed=mutated)
    return Reply(serial=request.serial, result=b"true" if value else b"false", changed=mutated)


def _said_of_edited(request: JudgeEdited, virtual: Virtual) -> Reply:
    initial = from_json(request.initial)
    said: list[list[Judged]] = []
    for edits in from_json(request.edits):
        try:
            final = edit(from_json(request.final), edits)
        except EditError as error:
            said.append([Judged(None, f"EditError: {error}")] * len(request.sources))
            continue
        text = to_json(final)
        row = [_judgement(request, source, initial, final, virtual) for source in request.sources]
        if not _still(final, text):
            # Which of them wrote to it, and what those after it then saw, is to be found out one by one.
            row = [msgspec.structs.replace(judged, mutated=True) for judged in row]
        said.append(row)
    if not _still(initial, request.initial):
        said = [[msgspec.structs.replace(judged, mutated=True) for judged in row] for row in said]
    return Reply(serial=request.serial, result=msgspec.json.encode(said))


def _judgement(request: JudgeEdited, source: str, initial: JsonValue, final: JsonValue, virtual: Virtual) -> Judged:
    virtual.clock_us = request.clock_us  # what else is virtual cannot be reached by those that leave nothing behind
    try:
        value = loader.check_value(source, initial, final)
    except Exception as error:  # noqa: BLE001 - whatever a check raises is what it says
        reason = f"{type(error).__name__}: {message_of(error)}"
        return Judged(None, clean(reason, _LONGEST_REASON))
    if type(value) is not bool:
        return Judged(None, _not_bool(value))
    return Judged(value)


def _not_bool(value: object) -> str:
    return f"TypeError: it returned {clean(type(value).__name__, 200)}, not a bool"


def _still(value: JsonValue, text: bytes) -> bool:
    """Whether `value` says what was decoded from `text`."""
    try:
        # The same encoder has written it, as a rule; else the canonical forms are compared.
        return to_json(value) == text or canonical_text(value) == canonical_text(from_json(text))
    except NotJson:
        return False


def run(sock: socket.socket, code: types.CodeType | None, settings: Settings, virtual: Virtual) -> NoReturn:
    """Serve until the parent is gone, then end the process without any clean-up that a program could hook into."""
    import os

    try:
        Worker(sock, code, settings, virtual).serve()
    finally:
        os._exit(0)
