"""`AuthorsWay`: an environment stepped as the released runtime of the paper does it, re-enacted from its description.

The program is executed in this process; at every step the whole state is copied before and after the call and the two
copies are compared part by part. Nothing is contained, nothing is rolled back.

Source: arXiv 2601.05808, its released runtime.
"""

from __future__ import annotations

import copy
from types import ModuleType
from typing import Any

from envscaler.sandbox import Arguments
from envscaler.sandbox.inside.loader import construct
from envscaler.state import JsonValue
from perf.workloads import Workload


def instance_of(workload: Workload) -> Any:
    """Execute the program and build its instance in this process."""
    module = ModuleType(workload.program.class_name)
    exec(workload.program.source, module.__dict__)  # noqa: S102 - what is re-enacted does so; known programs only
    return construct(getattr(module, workload.program.class_name), lambda: copy.deepcopy(workload.state))


class AuthorsWay:
    """One open environment."""

    def __init__(self, workload: Workload) -> None:
        self._instance = instance_of(workload)
        self.last: dict[str, JsonValue] = {}
        """What the latest step told."""

    async def call(self, name: str, arguments: Arguments) -> None:
        """One step."""
        before = copy.deepcopy(vars(self._instance))
        try:
            observation = str(getattr(self._instance, name)(**arguments))
        except Exception as error:  # noqa: BLE001 - a tool that raises is an observation
            observation = f"Error: {error}"
        after = copy.deepcopy(vars(self._instance))
        self.last = {"observation": observation, "changes": differences(before, after)}

    async def close(self) -> None:
        """Nothing is held."""


def differences(before: JsonValue, after: JsonValue, path: str = "") -> list[tuple[str, JsonValue, JsonValue]]:
    """Every part in which two states differ: where, what it was, what it is."""
    found: list[tuple[str, JsonValue, JsonValue]] = []
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            place = f"{path}.{key}"
            if key not in before or key not in after:
                found.append((place, before.get(key), after.get(key)))
            else:
                found += differences(before[key], after[key], place)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (old, new) in enumerate(zip(before, after, strict=False)):
            found += differences(old, new, f"{path}[{index}]")
        if len(before) != len(after):
            found.append((path, before, after))
    elif before != after:
        found.append((path, before, after))
    return found
