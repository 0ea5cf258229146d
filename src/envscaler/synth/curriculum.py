"""`Band` and `Curriculum`: which scenarios a model solves sometimes, by how often.

How often it does is found out by `calibration`.

Source: DAPO (arXiv 2503.14476) and Envs-FORGE (PAPER.md's neighbours): what is always or never solved teaches nothing.
"""

from __future__ import annotations

import re

from envscaler.errors import UsageError
from envscaler.record import Record
from envscaler.scenario import Calibration, Scenario
from envscaler.store import LibraryStore, splits_of
from envscaler.store.splits import TRAIN

_BAND = re.compile(r"([0-9.]+):([0-9.]+)\Z")


class Band(Record):
    """Pass rates from `low` to `high`."""

    low: float = 0.0
    high: float = 1.0
    extremes: bool = False
    """Whether what was never solved and what was always solved is in it, where its ends are 0 and 1."""

    @classmethod
    def parse(cls, text: str, *, extremes: bool = False) -> Band:
        """The band that `LOW:HIGH` names.

        Raises:
            UsageError: if it cannot be read so, or there is nothing between the two.
        """
        match = _BAND.match(text)
        try:
            low, high = (float(end) for end in match.groups()) if match is not None else (1.0, 0.0)
        except ValueError:
            low, high = 1.0, 0.0
        if not 0.0 <= low <= high <= 1.0:
            raise UsageError(f"--band {text}: write LOW:HIGH, two pass rates from 0 to 1 such as 0.2:0.8")
        return cls(low=low, high=high, extremes=extremes)

    def holds(self, calibration: Calibration | None) -> bool:
        """Whether a scenario is in the band; one that was never calibrated is not."""
        if calibration is None:
            return False
        if not self.extremes and calibration.solved in (0, calibration.samples):
            return False
        return self.low <= calibration.pass_rate <= self.high


class Lesson(Record):
    """One scenario of a curriculum."""

    env_id: str
    scenario_id: str
    scenario_digest: str
    pass_rate: float
    samples: int


class Curriculum(Record):
    """Scenarios of a library in the order in which they are to be learned: those that are solved most often first."""

    model: str
    """Whose pass rates these are."""
    band: Band
    scenarios: tuple[Lesson, ...]


def draw_curriculum(store: LibraryStore, band: Band, *, model: str, held_out: bool = False) -> Curriculum:
    """The scenarios of a library that are in the band for a model.

    Args:
        held_out: also those of environments that nothing may be trained on.
    """
    splits = splits_of(store)
    lessons = [
        Lesson(
            env_id=env_id,
            scenario_id=scenario.id,
            scenario_digest=scenario.digest,
            pass_rate=scenario.calibration.pass_rate,
            samples=scenario.calibration.samples,
        )
        for env_id in store.env_ids()
        if held_out or splits.get(env_id, TRAIN) == TRAIN
        for scenario in store.scenarios(env_id)
        if in_band(scenario, band, model) and scenario.calibration is not None
    ]
    lessons.sort(key=lambda lesson: (-lesson.pass_rate, lesson.env_id, lesson.scenario_id))
    return Curriculum(model=model, band=band, scenarios=tuple(lessons))


def in_band(scenario: Scenario, band: Band, model: str | None = None) -> bool:
    """Whether a scenario is in a band for a model; None: for the one that it was calibrated with last."""
    calibration = scenario.calibration
    return (model is None or (calibration is not None and calibration.model == model)) and band.holds(calibration)
