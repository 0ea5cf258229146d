"""`Solutions`: calls that solved scenarios in recorded episodes, for scenarios that bring no solution of their own.

They are used to try checks and are not written into the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from envscaler.messages import as_carried_out
from envscaler.scenario import Scenario, SolutionCall
from envscaler.store import LibraryStore
from envscaler.trajectory import Trajectory

_Played = tuple[str, str, str]
"""Digest of an environment, id and digest of a scenario: an episode of what was changed since solves nothing."""


class Solutions:
    """Solutions by what was played."""

    def __init__(self, known: Mapping[_Played, tuple[SolutionCall, ...]]) -> None:
        self._known = known

    @classmethod
    def of(cls, store: LibraryStore) -> Self:
        """The shortest solving episode of each scenario among all runs of a library."""
        known: dict[_Played, tuple[SolutionCall, ...]] = {}
        for run_id in store.rollouts():
            for trajectory in store.run(run_id).trajectories(_pass_over):
                if trajectory.world != "scenario" or trajectory.verdict is None or not trajectory.verdict.solved:
                    continue
                calls = _calls(trajectory)
                key = trajectory.env_digest, trajectory.scenario_id, trajectory.scenario_digest
                if calls and (key not in known or len(calls) < len(known[key])):
                    known[key] = calls
        return cls(known)

    def filled(self, scenario: Scenario) -> Scenario:
        """The scenario, with a solution that an episode has shown where it has none."""
        if scenario.solution is not None:
            return scenario
        shown = self._known.get((scenario.env_digest, scenario.id, scenario.digest))
        return scenario if shown is None else scenario.model_copy(update={"solution": shown})


def _calls(trajectory: Trajectory) -> tuple[SolutionCall, ...]:
    """The calls of an episode that did not fail, as they were carried out."""
    made = []
    for step in trajectory.steps:
        for call, seen in zip(step.assistant.tool_calls, step.observations, strict=False):
            if not seen.is_error:
                carried = as_carried_out(call, seen)
                made.append(SolutionCall(name=carried.name, arguments=carried.arguments))
    return tuple(made)


def _pass_over(_: str) -> None:
    return None
