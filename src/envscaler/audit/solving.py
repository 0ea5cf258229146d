"""`solve_missing`: a model plays the scenarios that no solution is known for, so that checks can be tried after one.

Its episodes are a run of the library. What becomes of them in an audit is the business of `solutions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.audit.solutions import Solutions
from envscaler.engine import NullProgress, Progress
from envscaler.env import Shelf
from envscaler.errors import UsageError
from envscaler.evidence import Solving
from envscaler.models.settings import OFFLINE
from envscaler.rollout import RolloutReport, RolloutSettings, run_rollout
from envscaler.rollout.keeping import STAGE
from envscaler.rollout.report import told
from envscaler.sandbox import Isolation
from envscaler.scenario import Scenario
from envscaler.store import LibraryStore

if TYPE_CHECKING:
    from envscaler.models import Models

PURPOSE = "solve"
"""First word of the run's name."""


async def solve_missing(
    library: Path,
    models: Models,
    *,
    env_id: str | None = None,
    samples: int = 1,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> Solving:
    """Let the agent's model play each scenario without a solution until an episode solves it.

    Killed at any moment, the same call plays what is missing; asked again, it plays nothing.

    Args:
        env_id: the one environment to look at; None: all.
        samples: episodes of one scenario at most.

    Raises:
        UsageError: if the model is the offline one, which plays recorded solutions only.
        StoreError: if the library cannot be read or written; no model was asked then.
        BudgetExhausted: a limit was reached; what is finished is kept and the same call goes on.
        EndpointUnavailable: the endpoint stayed down; likewise.
    """
    name = models.chat("agent").name
    if name == OFFLINE:
        raise UsageError(
            f"--solve {OFFLINE}: it plays recorded solutions only, and what is to be solved has none; "
            "name a model at an endpoint"
        )
    progress = progress if progress is not None else NullProgress()
    store = LibraryStore.open(library)
    with store.writing():
        pass  # the audit that comes after writes there: better refused before anything is paid for
    names = (env_id,) if env_id is not None else store.env_ids()
    reports: list[RolloutReport] = []
    for sample in range(samples):
        shelf = _Unsolved(store, names)
        if not shelf.wanting:
            break
        settings = RolloutSettings(
            purpose=PURPOSE, samples=sample + 1, env_ids=tuple(shelf.wanting), isolation=isolation
        )
        tries = _Tries(progress, f"{PURPOSE} {sample + 1}/{samples}" if samples > 1 else PURPOSE)
        reports.append(await run_rollout(shelf, settings, models, progress=tries))
    without = sum(scenario.solution is None for name in names for scenario in store.scenarios(name))
    return Solving(
        model=name,
        scenarios=without,
        solved=without - sum(_Unsolved(store, names).wanting.values()),
        run=str(reports[-1].run) if reports else None,
        played=sum(report.played for report in reports),
        unfinished=reports[-1].unfinished if reports else 0,
        skipped=told(reports[-1].record.skipped) if reports else (),
        spent=models.meter.report().spent,
    )


class _Unsolved(Shelf):
    """A library of which only the scenarios are seen that no solution is known for."""

    def __init__(self, store: LibraryStore, names: Sequence[str]) -> None:
        super().__init__(store)
        self._known = Solutions.of(store)
        counts = {name: sum(map(self._is_unsolved, store.scenarios(name))) for name in names}
        self.wanting = {name: count for name, count in counts.items() if count}
        """Number of such scenarios by environment."""

    def scenarios(self, env_id: str) -> tuple[Scenario, ...]:
        return tuple(filter(self._is_unsolved, super().scenarios(env_id)))

    def _is_unsolved(self, scenario: Scenario) -> bool:
        return self._known.filled(scenario).solution is None


@dataclass(frozen=True)
class _Tries:
    """Progress of one round of episodes under a name of its own: the next round counts anew."""

    inner: Progress
    name: str

    def stage(self, name: str, total: int | None = None) -> None:
        self.inner.stage(self._named(name), total)

    def advance(self, stage: str, n: int = 1) -> None:
        self.inner.advance(self._named(stage), n)

    def note(self, text: str) -> None:
        self.inner.note(text)

    def _named(self, stage: str) -> str:
        return self.name if stage == STAGE else stage
