"""`bare`: packages of others without what their `__init__` loads, for modules in them that need nothing of it."""

from __future__ import annotations

import sys
import types
from importlib.util import find_spec
from pathlib import Path


def bare(*packages: str) -> None:
    """Have the modules in these packages be importable without the packages themselves being loaded.

    Args:
        packages: dotted names, each after the package that it is in.

    Raises:
        ModuleNotFoundError: if a package is not installed.
    """
    for name in packages:
        parent, _, last = name.rpartition(".")
        made = types.ModuleType(name)
        made.__path__ = [str(Path(place) / last) for place in sys.modules[parent].__path__] if parent else _found(name)
        sys.modules[name] = made


def _found(name: str) -> list[str]:
    spec = find_spec(name)
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError(f"{name} is not installed")
    return list(spec.submodule_search_locations)
