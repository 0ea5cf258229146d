"""The commands `synth`, `assess` and `scenarios` as functions: they resume, and end with a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.engine import NullProgress, Progress
from envscaler.roles.role import Prompts
from envscaler.synth.report import AssessReport, ScenariosReport, SynthReport
from envscaler.synth.settings import SynthSettings

if TYPE_CHECKING:
    from envscaler.assessment import Threshold
    from envscaler.models import Models


async def run_synth(
    settings: SynthSettings, models: Models, prompts: Prompts, progress: Progress | None = None
) -> SynthReport:
    """Make or extend a library from task texts.

    Killed at any moment, the same call goes on where it was and ends with the same library.

    Raises:
        StoreError: the task file or the library cannot be used.
        BudgetExhausted: a limit was reached; what is finished is kept.
        EndpointUnavailable: the endpoint stayed down; what is finished is kept.
    """
    raise NotImplementedError


async def run_assess(
    library: Path,
    models: Models,
    prompts: Prompts,
    *,
    env_id: str | None = None,
    rounds: int = 100,
    threshold: float = 0.85,
    by: Threshold = "pass",
    seed: int = 0,
    attempts: int = 3,
    force: bool = False,
    environments_at_once: int = 8,
    progress: Progress | None = None,
) -> AssessReport:
    """Assess environments of a library anew where their assessment is missing, stale or was asked differently.

    Args:
        env_id: only this one; None: all.
        force: also where the stored assessment is still valid.
    """
    raise NotImplementedError


async def run_scenarios(
    library: Path,
    models: Models,
    prompts: Prompts,
    *,
    per_env: int,
    env_id: str | None = None,
    seed: int = 0,
    attempts: int = 3,
    min_state_distance: float = 0.02,
    environments_at_once: int = 8,
    progress: Progress | None = None,
) -> ScenariosReport:
    """Give each environment `per_env` scenarios, keeping those that it has.

    Args:
        env_id: only this one; None: all that are not rejected by their assessment.
    """
    raise NotImplementedError


_ = NullProgress
