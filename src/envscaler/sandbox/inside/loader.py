"""The one place that executes generated code: a program's module, a check function, an expression.

It covers what makes results equal and errors readable: a module of its own, the lines of a traceback, one way to
make an instance. It does not contain attacks; the process around it does (`hardening`).
"""

from __future__ import annotations

import builtins
import sys
import types
from collections.abc import Callable, Collection, Mapping
from functools import lru_cache
from typing import Any

from envscaler.canonical import JsonValue

MODULE_NAME = "environment_program"
FILE_NAME = "<program>"


class NoSuchName(Exception):
    """The source lacks the class or function that it should define."""


def compiled(source: str) -> types.CodeType:
    """Compile a program's text.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as `compile` does.
    """
    return compile(source, FILE_NAME, "exec", dont_inherit=True)


def load(code: types.CodeType, class_name: str, names: Mapping[str, object]) -> tuple[types.ModuleType, type]:
    """Execute a program's module and return it with its environment class.

    Args:
        names: what the module has before it is executed.
    """
    module = types.ModuleType(MODULE_NAME)
    module.__dict__.update(names)
    put_in_place(module)
    exec(code, module.__dict__)  # noqa: S102 - the loader
    cls = module.__dict__.get(class_name)
    if not isinstance(cls, type):
        raise NoSuchName(f"the program defines no class {class_name}")
    return module, cls


def put_in_place(module: types.ModuleType) -> None:
    """Make this module the one that a program finds under its own name."""
    # Dataclasses with string annotations, enums and get_type_hints look their module up here.
    sys.modules[MODULE_NAME] = module


def construct(cls: type, fresh_state: Callable[[], dict[str, JsonValue]]) -> object:
    """Make an instance: `cls(state)`, else `cls({})`, else `cls()`; then set each key of the state as attribute.

    `fresh_state` gives a new copy at each call: a program that keeps the argument of `__init__` (many assign it to
    `self.init_config`) must not change its attributes through it.
    """
    instance = _instance(cls, fresh_state)
    for name, value in fresh_state().items():
        setattr(instance, name, value)
    return instance


def _instance(cls: type, fresh_state: Callable[[], dict[str, JsonValue]]) -> object:
    try:
        return cls(fresh_state())
    except Exception as error:  # noqa: BLE001 - programs differ in what they take; the first error is told
        first = error
    attempts: tuple[tuple[object, ...], ...] = (({},), ())
    for arguments in attempts:
        try:
            return cls(*arguments)
        except Exception:  # noqa: BLE001 - see above
            continue
    raise first


def sets_plainly(cls: type, names: Collection[str]) -> bool:
    """Whether to set attributes of these names runs nothing of the class."""
    *members, _ = [vars(base) for base in cls.__mro__]
    return not any("__setattr__" in known or not known.keys().isdisjoint(names) for known in members)


def tools_of(cls: type) -> dict[str, Any]:
    """The public functions that the class and its bases define, by name."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__[:-1]):
        for name, member in vars(base).items():
            if isinstance(member, (types.FunctionType, staticmethod, classmethod)) and not name.startswith("_"):
                found[name] = member
            else:
                found.pop(name, None)
    return found


def check_value(source: str, initial_state: JsonValue, final_state: JsonValue) -> object:
    """What the `check_func` that `source` defines says of `final_state`; it sees the global `initial_state`."""
    namespace: dict[str, Any] = {"__name__": "check", "__builtins__": builtins, "initial_state": initial_state}
    exec(_compiled(source, "exec"), namespace)  # noqa: S102 - the loader
    check = namespace.get("check_func")
    if not callable(check):
        raise NoSuchName("the source defines no check_func")
    return check(final_state)


def expression_value(source: str, state: JsonValue) -> object:
    """The value of a Python expression over the name `state`."""
    return eval(_compiled(source.strip(), "eval"), {"__name__": "check", "__builtins__": builtins, "state": state})  # noqa: S307 - the loader


@lru_cache(maxsize=1024)
def _compiled(source: str, mode: str) -> types.CodeType:
    code: types.CodeType = compile(source, FILE_NAME, mode, dont_inherit=True)
    return code


def line_of(error: BaseException) -> int:
    """The last line of the program that an exception passed through; 0 when there is none."""
    if isinstance(error, SyntaxError):
        return error.lineno or 0
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == FILE_NAME:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line
