"""The zygote: a clean interpreter, started once, from which every worker is forked in a few milliseconds.

It never executes generated code. It compiles programs in a process of its own and keeps the result; a worker executes
it only after it has been hardened. It ends, and all workers with it, as soon as its parent is gone.
"""

from __future__ import annotations

import array
import gc
import importlib
import marshal
import os
import resource
import select
import signal
import socket
import sys
from collections import OrderedDict
from typing import NoReturn

import msgspec

from envscaler.sandbox.inside import loader, settling, virtual, worker, zones
from envscaler.sandbox.inside.hardening import Hardening
from envscaler.sandbox.inside.instance import clean
from envscaler.sandbox.inside.wire import Fork, Forked, Load, Loaded, Order, Ready, Settings, framed, receive

PRELOADED = """
    abc array ast base64 binascii bisect calendar cmath codecs collections collections.abc colorsys contextlib
    contextvars copy copyreg csv dataclasses datetime decimal difflib email.utils encodings.ascii
    encodings.base64_codec encodings.cp1252 encodings.hex_codec encodings.idna encodings.iso8859_1
    encodings.iso8859_15 encodings.latin_1 encodings.punycode encodings.raw_unicode_escape encodings.rot_13
    encodings.unicode_escape encodings.utf_16 encodings.utf_16_be encodings.utf_16_le encodings.utf_32
    encodings.utf_32_be encodings.utf_32_le encodings.utf_8_sig enum errno fnmatch fractions functools gc graphlib
    hashlib heapq hmac html importlib inspect io ipaddress itertools json keyword linecache locale logging math
    numbers operator os pathlib pickle platform pprint queue random re reprlib secrets shlex signal socket statistics
    string stringprep struct sys tempfile textwrap threading time token tokenize traceback types typing
    typing_extensions unicodedata urllib.parse uuid warnings weakref zlib zoneinfo _strptime
""".split()  # noqa: SIM905 - words read better than a column of quotes
"""Modules that programs may import: a worker can open no file, so what is not here cannot be imported."""

CACHED_PROGRAMS = 512
COMPILE_CPU_S = 10
FD_BYTES = array.array("i").itemsize

_decode_order = msgspec.msgpack.Decoder(Order).decode


class Zygote:
    """Answers the parent's orders, one at a time."""

    def __init__(self, control: socket.socket, settings: Settings) -> None:
        self._control = control
        self._settings = settings
        self._parent = os.getppid()
        self._pid = os.getpid()
        self._hardening = Hardening(settings.memory_mb)
        self._programs: OrderedDict[str, bytes] = OrderedDict()
        self._virtual = virtual.Virtual()
        self._children: set[int] = set()
        self._ending: set[int] = set()
        virtual.install(self._virtual)

    def settle(self) -> None:
        """Have workers copy little of this process's memory."""
        settling.settle(self._settings, self._virtual)

    def serve(self) -> NoReturn:
        """Work until the parent is gone."""
        self._control.sendall(framed(self._probe()))
        self._silence()
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            ready = poll.poll(10 if self._ending else 1000)
            self._collect()
            if not ready:
                # Another process may have inherited the parent's end of the socket and keep it open.
                if os.getppid() != self._parent:
                    self._end()
                continue
            self._obey()

    def _obey(self) -> None:
        body, fd = self._receive()
        order = _decode_order(body)
        if isinstance(order, Fork):
            self._control.sendall(framed(Forked(pid=self._fork(order.digest, fd))))
        elif isinstance(order, Load):
            self._control.sendall(framed(self._load(order)))
        elif order.pid in self._children:
            self._kill(order.pid)
            self._ending.add(order.pid)
            self._collect()

    def _receive(self) -> tuple[bytes, int]:
        """One frame and the descriptor that came with its first byte, -1 without one."""
        first, ancillary, _, _ = self._control.recvmsg(1, socket.CMSG_SPACE(FD_BYTES))
        if not first:
            self._end()
        fd = -1
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fd = array.array("i", payload[:FD_BYTES])[0]
        body = receive(self._control, first)
        if body is None:
            self._end()
        return body, fd

    # -- workers --------------------------------------------------------------------------------------------

    def _fork(self, digest: str, fd: int) -> int:
        code = self._programs.get(digest)
        if digest and code is None:
            os.close(fd)
            return 0
        if digest:
            self._programs.move_to_end(digest)
        try:
            pid = os.fork()
        except OSError:
            os.close(fd)
            return -1
        if pid == 0:
            try:
                self._become_worker(code, fd)
            finally:
                os._exit(70)
        os.close(fd)
        self._children.add(pid)
        return pid

    def _become_worker(self, code: bytes | None, fd: int) -> NoReturn:
        os.setsid()
        sock = self._keep_only(fd)
        self._programs.clear()
        self._hardening.apply(self._pid)
        gc.enable()
        worker.run(sock, marshal.loads(code) if code is not None else None, self._settings, self._virtual)

    def _keep_only(self, fd: int) -> socket.socket:
        """Close every descriptor but the standard ones (which lead nowhere) and `fd`, which becomes number 3."""
        if fd != 3:
            os.dup2(fd, 3)
        self._control.detach()
        os.closerange(4, 1024)
        return socket.socket(fileno=3)

    def _probe(self) -> Ready:
        """Harden a child to see how far it goes."""
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                hardened, missing = self._hardening.apply(self._pid)
                os.write(writing, msgspec.msgpack.encode(Ready(hardened, missing)))
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        if not text:
            return Ready(False, ("a hardened process cannot run here",))
        return msgspec.msgpack.decode(text, type=Ready)

    # -- programs -------------------------------------------------------------------------------------------

    def _load(self, order: Load) -> Loaded:
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(reading)
            os.close(writing)
            return Loaded(refused=True)
        if pid == 0:
            try:
                os.close(reading)
                resource.setrlimit(resource.RLIMIT_CPU, (COMPILE_CPU_S, COMPILE_CPU_S))
                self._hardening.apply(self._pid)
                _compile_into(writing, order.source)
            finally:
                os._exit(70)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        os.waitpid(pid, 0)
        if not text:
            return Loaded("CompileError", "the compiler did not survive the program's text")
        if text[:1] == b"!":
            failure = msgspec.msgpack.decode(text[1:], type=Loaded)
            # Some messages of the compiler quote a name of the program, however long it is.
            return msgspec.structs.replace(failure, message=clean(failure.message, self._settings.max_message_chars))
        self._programs[order.digest] = text
        self._programs.move_to_end(order.digest)
        if len(self._programs) > CACHED_PROGRAMS:
            self._programs.popitem(last=False)
        return Loaded()

    # -- endings --------------------------------------------------------------------------------------------

    def _collect(self) -> None:
        for pid in tuple(self._ending):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                self._ending.discard(pid)
                self._children.discard(pid)

    def _kill(self, pid: int) -> None:
        # The worker leads a group of its own: whatever it managed to start ends with it.
        for kill in (os.killpg, os.kill):
            try:
                kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                continue

    def _end(self) -> NoReturn:
        for pid in self._children:
            self._kill(pid)
        for pid in self._children:
            os.waitpid(pid, 0)
        os._exit(0)

    def _silence(self) -> None:
        """Errors at start are the parent's to read; afterwards nothing that a worker prints may reach anybody."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nothing, standard)
        os.close(nothing)


def _compile_into(writing: int, source: str) -> None:
    try:
        text = marshal.dumps(loader.compiled(source))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError) as error:
        message = error.msg if isinstance(error, SyntaxError) else str(error)
        failure = Loaded(type(error).__name__, message, loader.line_of(error))
        text = b"!" + msgspec.msgpack.encode(failure)
    with os.fdopen(writing, "wb") as pipe:
        pipe.write(text)


def main(control_fd: int, settings: str) -> NoReturn:
    """Start the zygote on an inherited socket."""
    for name in PRELOADED:
        try:
            importlib.import_module(name)
        except ImportError:
            # Not every build of Python has every module.
            continue
    zones.preload()
    sys.path.clear()
    sys.path_importer_cache.clear()
    sys.meta_path[:] = [finder for finder in sys.meta_path if getattr(finder, "__name__", "") != "PathFinder"]
    sys.argv[:] = ["program"]
    os.environ.clear()
    os.chdir("/")
    gc.disable()
    zygote = Zygote(socket.socket(fileno=control_fd), msgspec.json.decode(settings, type=Settings))
    zygote.settle()
    zygote.serve()
