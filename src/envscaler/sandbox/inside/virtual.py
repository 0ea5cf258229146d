"""Virtual time and randomness for the whole worker process: equal seeds, clocks and calls give equal values.

The functions of the standard library themselves are replaced, so that a `datetime` stays a genuine `datetime` and a
`uuid.UUID` a genuine `UUID`. Hash order is fixed where the zygote is started.
"""

from __future__ import annotations

import ctypes
import datetime
import gc
import os
import random
import time
import uuid
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

READING_US = 1_000
"""Microseconds by which each reading advances the clock, so that time stamps stay distinct."""
LATEST_US = 253_402_214_400_000_000
"""A day before the end of the year 9999, where `datetime` ends."""

_EPOCH = datetime.datetime(1970, 1, 1)
_real_gmtime = time.gmtime
_real_strftime = time.strftime
_real_asctime = time.asctime


class Virtual:
    """The clock and the random streams of one worker."""

    def __init__(self) -> None:
        self.clock_us = 0
        self.installed = False
        """Whether it is the source of this process, and not only of those who ask it."""
        self._key = b""
        self._block = 0

    def begin(self, seed: int, index: int, clock_us: int) -> None:
        """Set clock and streams for call `index`; -1 is the construction of the instance."""
        self.clock_us = clock_us
        self._key = blake2b(f"{seed}/{index}".encode(), digest_size=32).digest()
        self._block = 0
        if self.installed:
            random.seed(int.from_bytes(self._key, "big"))
            uuid._last_timestamp = None  # type: ignore[attr-defined]

    def advance(self, microseconds: int) -> None:
        self.clock_us = min(self.clock_us + microseconds, LATEST_US)

    def read_us(self) -> int:
        """The time in microseconds since 1970 (UTC); each reading is later than the one before."""
        self.advance(READING_US)
        return self.clock_us

    def read_datetime(self) -> datetime.datetime:
        return _EPOCH + datetime.timedelta(microseconds=self.read_us())

    def bytes(self, size: int) -> bytes:
        """The next `size` bytes of the random stream."""
        out = bytearray()
        while len(out) < size:
            out += blake2b(self._block.to_bytes(8, "big"), key=self._key, digest_size=64).digest()
            self._block += 1
        return bytes(out[:size])


def install(virtual: Virtual) -> None:
    """Make `virtual` the source of time and randomness of this process, for good."""
    _install_time(virtual)
    _install_datetime(virtual)
    _install_random(virtual)
    virtual.installed = True


def time_functions(virtual: Virtual) -> dict[str, Callable[..., Any]]:
    """What of the module `time` tells or spends time, by name, with `virtual` as its clock."""

    def seconds(*_: object) -> float:
        return virtual.read_us() / 1_000_000

    def nanoseconds(*_: object) -> int:
        return virtual.read_us() * 1_000

    def sleep(duration: float) -> None:
        if not duration >= 0:
            raise ValueError("sleep length must be non-negative")
        virtual.advance(int(min(duration, 1e12) * 1_000_000))

    def broken_down(moment: float | None = None) -> time.struct_time:
        return _real_gmtime(seconds() if moment is None else moment)

    def strftime(form: str, moment: Any = None) -> str:
        return _real_strftime(form, broken_down() if moment is None else moment)

    def ctime(moment: float | None = None) -> str:
        return _real_asctime(broken_down(moment))

    def asctime(moment: Any = None) -> str:
        return _real_asctime(broken_down() if moment is None else moment)

    replacements: dict[str, Callable[..., Any]] = {
        **dict.fromkeys(("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime"), seconds),
        "sleep": sleep,
        "gmtime": broken_down,
        "localtime": broken_down,
        "strftime": strftime,
        "ctime": ctime,
        "asctime": asctime,
    }
    for name in ("time", "monotonic", "perf_counter", "process_time", "thread_time", "clock_gettime"):
        replacements[f"{name}_ns"] = nanoseconds
    return replacements


def moment_functions(virtual: Virtual) -> tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]:
    """`now` and `utcnow` of `datetime`, `today` of `date`, with `virtual` as their clock; they take the class first."""

    def now(cls: type[datetime.datetime], tz: datetime.tzinfo | None = None) -> datetime.datetime:
        moment = virtual.read_datetime()
        if tz is not None:
            moment = moment.replace(tzinfo=datetime.UTC).astimezone(tz)
        if cls is datetime.datetime:
            return moment
        return cls.combine(moment.date(), moment.timetz())

    def utcnow(cls: type[datetime.datetime]) -> datetime.datetime:
        return now(cls)

    def today(cls: type[datetime.date]) -> datetime.date:
        moment = virtual.read_datetime()
        return cls(moment.year, moment.month, moment.day)

    return now, utcnow, today


def _install_time(virtual: Virtual) -> None:
    for name, function in time_functions(virtual).items():
        setattr(time, name, function)


def _install_datetime(virtual: Virtual) -> None:
    now, utcnow, today = moment_functions(virtual)
    _replace_method(datetime.datetime, "now", now)
    _replace_method(datetime.datetime, "utcnow", utcnow)
    _replace_method(datetime.datetime, "today", utcnow)
    _replace_method(datetime.date, "today", today)


def _replace_method(cls: type, name: str, function: Callable[..., Any]) -> None:
    # The classes are written in C and refuse setattr; a subclass in their place would not be the type of what
    # arithmetic, strptime and other modules return.
    namespace = gc.get_referents(cls.__dict__)[0]
    namespace[name] = classmethod(function)
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))


def _install_random(virtual: Virtual) -> None:
    real_seed = random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        real_seed(self, int.from_bytes(virtual.bytes(32), "big") if a is None else a, version)

    random.Random.seed = seed  # type: ignore[method-assign]
    random._urandom = virtual.bytes  # type: ignore[attr-defined]
    os.urandom = virtual.bytes
    if hasattr(os, "getrandom"):
        os.getrandom = lambda size, flags=0: virtual.bytes(size)
    # uuid1 would ask the operating system for time and network address.
    uuid._node = 0x02_00_00_00_00_01  # type: ignore[attr-defined]
    uuid._generate_time_safe = None  # type: ignore[attr-defined]
