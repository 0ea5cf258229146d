"""`bare`: packages of others without what their `__init__` loads, for modules in them that need nothing of it."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class _Hollow(types.ModuleType):
    """A module that has a class of any name asked for, so that names can be imported and annotated with."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


def bare(packages: Iterable[str], hollow: Iterable[str] = ()) -> None:
    """Have the modules in these packages be importable without the packages themselves being loaded.

    Args:
        packages: dotted names, each after the package that it is in.
        hollow: modules to be taken for loaded though nothing is in them.

    Raises:
        ModuleNotFoundError: if a package is not installed.
    """
    for name in packages:
        parent, _, last = name.rpartition(".")
        made = types.ModuleType(name)
        made.__path__ = [str(Path(place) / last) for place in sys.modules[parent].__path__] if parent else _found(name)
        sys.modules[name] = made
    for name in hollow:
        sys.modules[name] = _Hollow(name)


def _found(name: str) -> list[str]:
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{name} is not installed")
    return list(spec.submodule_search_locations)
