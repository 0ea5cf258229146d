"""`InProcess`: a session's instance in this very process, for programs that were made here and are known to the letter.

Nothing is contained: no deadline, no limit on memory. What is kept is what decides results: the loader, the virtual
clock, digests, and going back after a call that fails. A program finds only the modules that such programs need, so
that nothing of this process has to be replaced.
"""

from __future__ import annotations
import __future__

import builtins
import copy
import datetime
import importlib
import threading
import time
import types
import typing
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, ClassVar

from envscaler.sandbox.inside.instance import Instance, failed, message_of
from envscaler.sandbox.inside.virtual import Virtual, moment_functions, time_functions
from envscaler.sandbox.inside.wire import Build, Call, Judge, JudgeEdited, Reply, Request, Settings

_virtual = Virtual()
_one_at_a_time = threading.Lock()
"""Clock, streams and the place of the program's module are one for all instances here."""


class InProcess:
    """Answers a session's requests at once. What a program raises is told; what this process is told to end by is not.

    Args:
        code: the program, compiled.
    """

    dead: ClassVar[bool] = False

    def __init__(self, code: types.CodeType, settings: Settings) -> None:
        self._instance = Instance(code, settings, _virtual, {"__builtins__": _builtins()})
        self._settings = settings
        self._serial = 0

    def next_serial(self) -> int:
        """The number that the next request has to carry."""
        self._serial += 1
        return self._serial

    async def ask(self, request: Request) -> Reply:
        """Answer; it never waits.

        Raises:
            TypeError: for a request to judge, which is not done here.
        """
        with _one_at_a_time:
            try:
                return self._answer(request)
            except Exception as error:  # noqa: BLE001 - whatever a program raises is the answer to its call
                return failed(request.serial, error, message_of(error), self._instance, self._settings, _virtual)

    def _answer(self, request: Request) -> Reply:
        if isinstance(request, Call):
            return self._instance.call(request)
        if isinstance(request, Build):
            return self._instance.build(request)
        if isinstance(request, Judge | JudgeEdited):
            raise TypeError("states are not judged in this process")
        return self._instance.read(request)

    def take(self) -> None:
        """Nothing is parked here."""

    def rest(self) -> None:
        """Nothing is parked here."""

    def kill(self) -> None:
        """The instance ends with the session that holds it."""

    def leave(self, slot: int) -> None:
        """As `kill`."""


@lru_cache(maxsize=1)
def _builtins() -> dict[str, Any]:
    modules: dict[str, types.ModuleType] = {
        "__future__": __future__,
        "copy": copy,
        "datetime": _datetime(),
        "typing": typing,
        # What the methods of datetime import for themselves, by way of whoever calls them.
        "_strptime": importlib.import_module("_strptime"),
        "time": _like(time, time_functions(_virtual)),
    }

    def import_module(name: str, *_: object) -> types.ModuleType:
        module = modules.get(name)
        if module is None:
            raise ImportError(f"{name} cannot be imported in this process, only {', '.join(sorted(modules))}")
        return module

    return {**vars(builtins), "__import__": import_module}


def _datetime() -> types.ModuleType:
    """The module `datetime` with virtual clocks; its two classes are of a kind with the real ones."""

    class OfAKind(type):
        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, cls.__mro__[1])

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, cls.__mro__[1])

    now, utcnow, today = map(classmethod, moment_functions(_virtual))

    class Date(datetime.date, metaclass=OfAKind):
        pass

    class DateTime(datetime.datetime, metaclass=OfAKind):
        pass

    Date.today = today  # type: ignore[assignment]
    DateTime.now, DateTime.utcnow, DateTime.today = now, utcnow, utcnow  # type: ignore[assignment]
    for cls, name in ((Date, "date"), (DateTime, "datetime")):
        cls.__name__ = cls.__qualname__ = name
        cls.__module__ = "datetime"
    return _like(datetime, {"date": Date, "datetime": DateTime})


def _like(module: types.ModuleType, changes: Mapping[str, object]) -> types.ModuleType:
    """A module with the names of another, some of them changed."""
    made = types.ModuleType(module.__name__)
    made.__dict__.update({**vars(module), **changes})
    return made
