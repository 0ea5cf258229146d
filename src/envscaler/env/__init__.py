"""Environments that can be played: Gymnasium's manner over generated programs, verdicts, oracles, libraries.

How agents decide is `agents`' business, how whole episodes are recorded `rollout`'s.
"""

from envscaler.env.async_env import AsyncToolEnv
from envscaler.env.async_library import AsyncLibrary, open_async
from envscaler.env.conformance import check_env, examine_env
from envscaler.env.core import EnvInfo, EnvSnapshot, StepResult
from envscaler.env.homes import Homes
from envscaler.env.library import Library, open_library
from envscaler.env.observation import ObservationStyle, observe
from envscaler.env.oracles import ExaminedCall, examine, reports_failure, try_call
from envscaler.env.shelf import Shelf, observations_of
from envscaler.env.tool_env import ToolEnv
from envscaler.env.verdict import ResetChecks, verdict_of

__all__ = [
    "AsyncLibrary",
    "AsyncToolEnv",
    "EnvInfo",
    "EnvSnapshot",
    "ExaminedCall",
    "Homes",
    "Library",
    "ObservationStyle",
    "ResetChecks",
    "Shelf",
    "StepResult",
    "ToolEnv",
    "check_env",
    "examine",
    "examine_env",
    "observations_of",
    "observe",
    "open_async",
    "open_library",
    "reports_failure",
    "try_call",
    "verdict_of",
]
