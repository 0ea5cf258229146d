"""envscaler: from plain task texts to executable environments, scenarios, trajectories and training rows.

Importing it is cheap: each public name is loaded when it is first used.

Example:
    >>> import envscaler as es
    >>> lib = es.open("library")                               # doctest: +SKIP
    >>> env = lib.make(lib.env_ids[0], scenario=0)             # doctest: +SKIP
    >>> observation, info = env.reset()                        # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from envscaler.env import AsyncLibrary, AsyncToolEnv, Library, ToolEnv, check_env, open_async
    from envscaler.env import open_library as open
    from envscaler.errors import EnvScalerError, UsageError
    from envscaler.messages import ToolCall, ToolMessage
    from envscaler.scenario import Check, Scenario, SolutionCall
    from envscaler.skeleton import EnvSkeleton, ToolSpec
    from envscaler.trajectory import Trajectory, Verdict

_HOMES = {
    "AsyncLibrary": "envscaler.env",
    "AsyncToolEnv": "envscaler.env",
    "Check": "envscaler.scenario",
    "EnvScalerError": "envscaler.errors",
    "EnvSkeleton": "envscaler.skeleton",
    "Library": "envscaler.env",
    "Scenario": "envscaler.scenario",
    "SolutionCall": "envscaler.scenario",
    "ToolCall": "envscaler.messages",
    "ToolEnv": "envscaler.env",
    "ToolMessage": "envscaler.messages",
    "ToolSpec": "envscaler.skeleton",
    "Trajectory": "envscaler.trajectory",
    "UsageError": "envscaler.errors",
    "Verdict": "envscaler.trajectory",
    "check_env": "envscaler.env",
    "open": "envscaler.env",
    "open_async": "envscaler.env",
}
_OTHER_NAMES = {"open": "open_library"}

__all__ = [
    "AsyncLibrary",
    "AsyncToolEnv",
    "Check",
    "EnvScalerError",
    "EnvSkeleton",
    "Library",
    "Scenario",
    "SolutionCall",
    "ToolCall",
    "ToolEnv",
    "ToolMessage",
    "ToolSpec",
    "Trajectory",
    "UsageError",
    "Verdict",
    "check_env",
    "open",
    "open_async",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("envscaler")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), _OTHER_NAMES.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
