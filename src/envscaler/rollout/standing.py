"""`partial`: whether a run is there in full, for whoever reads its episodes. Playing the rest is `run`'s business."""

from __future__ import annotations

from envscaler.rollout.report import RunRecord
from envscaler.store import RunStore


def partial(run: RunStore, there: int) -> str | None:
    """One sentence on what a run lacks; None when nothing, as far as its record says.

    Args:
        there: its episodes that came to their end.
    """
    record = run.read_run(RunRecord)
    planned = record.planned if record is not None else 0
    known = f"{there:,} of {planned:,} episodes are there" if planned else f"{there:,} episodes are there so far"
    if run.being_written:
        return f"{run.path} is still being played: {known}"
    if there < planned:
        return f"{run.path} was not played to its end: {known}; the command that began it plays the rest"
    return None
