"""`Selection`: which episodes of some runs are exported; streamed, looking at all of them first only where needed.

What an episode alone tells is the business of `filters`. Of several episodes that are the same the first one is kept,
in the order of the runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from envscaler.errors import StoreError
from envscaler.export.filters import SftFilters
from envscaler.export.sameness import calls_mark, record_mark
from envscaler.export.sources import RunSource
from envscaler.state import digest
from envscaler.trajectory import Trajectory

Fault = Callable[[RunSource, Trajectory], str | None]
"""Why an episode cannot be exported; None when it can."""


class _Candidate(NamedTuple):
    """What is remembered of an episode until all were seen."""

    place: tuple[int, int]
    """Index of the run, and of the episode in it."""
    env_id: str
    scenario: tuple[str, str, str]
    reward: float | None
    steps: int
    mark: str


def _worth(one: _Candidate) -> tuple[float, int, tuple[int, int]]:
    """Sorts the best first: an episode whose reward is not known comes after all others."""
    return (1.0 if one.reward is None else -one.reward, one.steps, one.place)


@dataclass
class Selection:
    """Decides on each episode of some runs."""

    sources: Sequence[RunSource]
    filters: SftFilters
    fault: Fault
    """What else keeps an episode from being exported: that the format has no place for it, say. Asked only where the
    episode would else take the place of another; whoever makes rows finds it out anyway."""
    _reasons: dict[tuple[int, int], str] = field(default_factory=dict)
    """Why episodes are dropped, once all were looked at."""
    _ids: list[list[str]] = field(default_factory=list)
    """Ids of the episodes as they were when all were looked at."""

    def episodes(self) -> Iterator[tuple[RunSource, Trajectory, str | None]]:
        """Each episode with the reason why it is dropped; None when it is kept.

        Raises:
            StoreError: if a run cannot be read, or was changed while it was.
        """
        if not self.filters.compares:
            yield from ((source, trajectory, reason) for _, source, trajectory, reason in self._judged())
            return
        self._survey()
        for number, source in enumerate(self.sources):
            for index, trajectory in enumerate(self._again(number, source)):
                yield source, trajectory, self._reasons.get((number, index))

    def _judged(self) -> Iterator[tuple[tuple[int, int], RunSource, Trajectory, str | None]]:
        records: dict[str, int] = {}
        calls: set[str] = set()
        for number, source in enumerate(self.sources):
            for index, trajectory in enumerate(source.run.trajectories()):
                reason = self._own_fault(source, trajectory)
                if reason is None and len(self.sources) > 1:
                    # Within one run equal episodes are samples that came out alike; `distinct` is about those.
                    first = records.setdefault(record_mark(trajectory), number)
                    reason = "in an earlier run too" if first != number else None
                if reason is None and self.filters.distinct:
                    mark = calls_mark(trajectory)
                    reason = "the same calls as an earlier one" if mark in calls else None
                    calls.add(mark)
                yield (number, index), source, trajectory, reason

    def _own_fault(self, source: RunSource, trajectory: Trajectory) -> str | None:
        reason = source.division.fault(trajectory.env_id) or self.filters.fault(trajectory)
        return self.fault(source, trajectory) if reason is None and self.filters.compares else reason

    def _again(self, number: int, source: RunSource) -> Iterator[Trajectory]:
        # What came since all were looked at is left to the next export.
        known = self._ids[number]
        for index, trajectory in enumerate(islice(source.run.trajectories(), len(known))):
            if trajectory.id != known[index]:
                raise StoreError(f"{source.run.path} was changed while it was exported; export it again")
            yield trajectory

    def _survey(self) -> None:
        self._ids = [[] for _ in self.sources]
        kept: list[_Candidate] = []
        for place, _, trajectory, reason in self._judged():
            self._ids[place[0]].append(trajectory.id)
            if reason is None:
                kept.append(self._candidate(place, trajectory))
            else:
                self._reasons[place] = reason
        if self.filters.best is not None:
            kept = self._without(kept, self.filters.best, "scenario")
        if self.filters.per_env is not None:
            self._without(kept, self.filters.per_env, "environment")

    def _candidate(self, place: tuple[int, int], trajectory: Trajectory) -> _Candidate:
        identity = [trajectory.env_id, trajectory.scenario_id, trajectory.id, trajectory.model, trajectory.agent]
        return _Candidate(
            place=place,
            env_id=trajectory.env_id,
            scenario=(trajectory.env_id, trajectory.scenario_id, trajectory.mode),
            reward=trajectory.reward(self.filters.reward_mode),
            steps=len(trajectory.steps),
            # By its name and not by its place, so that another episode in the run changes little.
            mark=digest([self.filters.seed, *identity]),
        )

    def _without(self, candidates: list[_Candidate], limit: int, group: str) -> list[_Candidate]:
        """Those that stay when each group keeps `limit`; the others are noted."""
        groups: dict[object, list[_Candidate]] = defaultdict(list)
        for candidate in candidates:
            groups[candidate.scenario if group == "scenario" else candidate.env_id].append(candidate)
        kept: list[_Candidate] = []
        for members in groups.values():
            if group == "scenario":
                members.sort(key=_worth)
                reason = f"not among the best {limit} of its scenario"
            else:
                members.sort(key=lambda one: (one.mark, one.place))
                reason = f"beyond {limit} of its environment"
            kept += members[:limit]
            self._reasons |= {candidate.place: reason for candidate in members[limit:]}
        return kept
