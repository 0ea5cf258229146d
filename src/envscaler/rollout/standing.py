"""`Standing`: whether a run is there in full, for whoever reads its episodes. Playing the rest is `run`'s business."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from envscaler.rollout.report import RunRecord
from envscaler.store import RunStore


@dataclass(frozen=True)
class Standing:
    """What a run says of itself before its episodes are read."""

    run: Path
    planned: int
    """Episodes asked for; 0 when nobody says."""
    being_written: bool

    @classmethod
    def of(cls, run: RunStore) -> Standing:
        """The standing of a run now.

        Raises:
            StoreError: if its record cannot be read.
        """
        record = run.read_run(RunRecord)
        return cls(run.path, record.planned if record is not None else 0, run.being_written)

    def lack(self, there: int) -> str | None:
        """One sentence on what the run lacks; None when nothing, as far as its record says.

        Args:
            there: its episodes that came to their end.
        """
        known = f"{there:,} of {self.planned:,} episodes are there" if self.planned else f"{there:,} episodes so far"
        if self.being_written:
            return f"{self.run} is still being played: {known}"
        if there < self.planned:
            return f"{self.run} was not played to its end: {known}; the command that began it plays the rest"
        return None
