"""Results and trajectories of episodes as tests of scores and comparisons want them."""

from __future__ import annotations

from collections.abc import Iterable

from envscaler.rollout.results import Result, result_of
from envscaler.trajectory import CheckResult, StopReason, Trajectory, Verdict


def episode(
    env_id: str = "desk",
    scenario_id: str = "s",
    *passed: bool,
    sample: int = 0,
    stop: StopReason = StopReason.FINISHED,
    held: bool | None = False,
    digest: str = "d",
    **changes: object,
) -> Trajectory:
    """An episode whose checks are goals that passed as told."""
    judged = stop not in (StopReason.INFRASTRUCTURE, StopReason.BUDGET)
    checks = tuple(CheckResult(description="?", kind="goal", passed=one, held_at_reset=held) for one in passed)
    fields: dict[str, object] = {
        "id": f"{env_id}.{scenario_id}.{sample}",
        "env_id": env_id,
        "scenario_id": scenario_id,
        "env_digest": "",
        "scenario_digest": digest,
        "agent": "model",
        "model": "m",
        "sample": sample,
        "stop": stop,
        "verdict": Verdict(checks=checks) if judged else None,
    }
    return Trajectory.model_validate({**fields, **changes})


def outcomes(solved: dict[str, dict[str, str]]) -> list[Result]:
    """Results by environment and scenario: `+` solved, `-` not, `!` cut short, one character a sample."""
    return list(_outcomes(solved))


def _outcomes(solved: dict[str, dict[str, str]]) -> Iterable[Result]:
    for env_id, scenarios in solved.items():
        for scenario_id, marks in scenarios.items():
            for sample, mark in enumerate(marks):
                stop = StopReason.INFRASTRUCTURE if mark == "!" else StopReason.FINISHED
                yield result_of(episode(env_id, scenario_id, mark == "+", sample=sample, stop=stop))
