"""Stand-ins for modules that a benchmark imports only to ask models, which is done elsewhere, or to draw tables.

They have whatever is asked for. While the benchmark is loaded, calling it does nothing; afterwards it raises, so that
nothing that counts can rest on them.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _Absent(types.ModuleType):
    """A module that is not there."""

    loading = True

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        whole = f"{self.__name__}.{name}"

        def nothing(*_: Any, **__: Any) -> None:
            if not self.loading:
                raise RuntimeError(f"{whole} is not there")

        return nothing


@contextmanager
def without(*names: str) -> Iterator[None]:
    """Have modules of these names loaded as stand-ins of them; those that they lie in have to be named too."""
    modules = [_Absent(name) for name in names]
    for module in modules:
        module.__path__ = []
        sys.modules[module.__name__] = module
    yield
    for module in modules:
        module.loading = False
