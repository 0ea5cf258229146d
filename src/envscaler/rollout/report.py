"""What a run of rollouts was and what came of it, as records. How they are shown is the command line's business."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

from envscaler.models import Faults
from envscaler.record import Record
from envscaler.rollout.scores import Scores, ScoreTable
from envscaler.rollout.settings import Folder, RolloutSettings
from envscaler.sandbox import Isolation
from envscaler.skeleton import ModelUse
from envscaler.trajectory import Sampling

OFFLINE_NOTE = "the offline agent plays the recorded plan; not a model's score"


class Skipped(Record):
    """A scenario that the run did not play."""

    env_id: str
    scenario_id: str | None
    """None: the whole environment."""
    reason: str


def told(skipped: Iterable[Skipped]) -> tuple[str, ...]:
    """A sentence for each reason: how many scenarios, or environments, it kept from being played."""
    counts = Counter(("environment" if part.scenario_id is None else "scenario", part.reason) for part in skipped)
    return tuple(
        f"{number:,} {kind}{'s' if number > 1 else ''}: {reason}" for (kind, reason), number in sorted(counts.items())
    )


class Played(Record):
    """Which benchmark was played, and how."""

    benchmark: str
    packages: tuple[str, ...]
    """Where its code comes from, with versions."""
    digest: str
    """Of its tasks."""
    options: dict[str, str] = {}
    """What else decides what an episode is worth."""


class RunRecord(Record):
    """run.json."""

    id: str
    library: Folder | None
    """Folder of the library whose scenarios were played; None: a benchmark of others was."""
    played: Played | None = None
    """None: scenarios of a library, as training and not as a benchmark."""
    settings: RolloutSettings
    models: dict[str, str] = {}
    """Model name of each role family that takes part (agent, user)."""
    prompts: dict[str, str] = {}
    """Digest of each prompt file used."""
    sampling: Sampling = Sampling()
    """How the agent's model is asked to sample."""
    isolation: Literal["hardened", "portable"] | None = None
    """How well the sandbox was isolated where the episodes were played; None when none was played yet."""
    missing_isolation: tuple[str, ...] = ()
    isolation_modes: tuple[Isolation, ...] = ()
    """What was asked for where the episodes were played; `settings.isolation` is the last of them."""
    kept_apart: dict[str, str] = {}
    """Environments that ran in processes of their own though less was asked for, with the reason."""
    note: str | None = None
    """What a reader of the scores has to know."""
    status: Literal["running", "complete", "stopped"] = "running"
    """`running` also when it was killed; `stopped`: by a budget or an endpoint that stayed down."""
    planned: int = 0
    """Episodes asked for, the skipped ones left out."""
    scores: ScoreTable = ScoreTable()
    skipped: tuple[Skipped, ...] = ()
    spent: ModelUse = ModelUse()
    """What the last invocation spent; replies from the cache cost nothing. What all replies cost stands in
    `scores.total.use`."""
    faults: Faults = Faults()
    """What went wrong with the models in the last invocation."""

    def difference(self, other: RunRecord) -> tuple[str, Any, Any] | None:
        """What keeps the episodes of two runs from belonging to one: its name, here and there; None: nothing."""
        ours, theirs = self.pins(), other.pins()
        names = dict.fromkeys((*ours, *theirs))
        return next(
            ((name, ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)), None
        )

    def pins(self) -> dict[str, Any]:
        """What has to be equal for two episodes to belong to one run."""
        played = self.played
        return {
            **({} if played is None else {"benchmark": played.model_dump()}),
            **self.settings.pins(),
            "models": self.models,
            "prompts": self.prompts,
            "sampling": self.sampling.model_dump(exclude_defaults=True),
        }


class RolloutReport(Record):
    """What one call of `run_rollout` did."""

    run: Folder
    """Folder of the run."""
    record: RunRecord
    played: int
    """Episodes played now."""
    resumed: int
    """Episodes that were there already."""

    @property
    def scores(self) -> Scores:
        """Scores of all episodes of the run."""
        return self.record.scores.total

    @property
    def unfinished(self) -> int:
        """Episodes that the machinery cut short; the same command plays them again."""
        return sum(self.scores.stops.get(stop, 0) for stop in ("infrastructure", "budget"))
