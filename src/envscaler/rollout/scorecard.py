"""`scorecard`: the scores of one run with its floors and what a reader has to know. Showing it is the command line's
business."""

from __future__ import annotations

from envscaler.record import Record
from envscaler.rollout.floors import Floor, floors_of, levels_of
from envscaler.rollout.report import RunRecord
from envscaler.rollout.results import results_of_run
from envscaler.rollout.scores import UNFINISHED, ScoreTable, score_table
from envscaler.rollout.settings import Folder
from envscaler.rollout.standing import Standing
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import Mode


class Scorecard(Record):
    """What a run is worth."""

    run: Folder
    agent: str | None = None
    """None: the run was killed before it said who plays."""
    models: dict[str, str] = {}
    """Model name of each role family that takes part."""
    mode: Mode = "non-conversation"
    note: str | None = None
    """What a reader of the scores has to know."""
    lack: str | None = None
    """One sentence on what the run lacks, when it was not played to its end."""
    table: ScoreTable
    floors: tuple[Floor, ...] = ()


def scorecard(run: RunStore, library: LibraryStore | None) -> Scorecard:
    """Score a run from its trajectories.

    Args:
        library: where the difficulty of scenarios, floors and proofs are looked up; None: nowhere.

    Raises:
        StoreError: if something of it cannot be read.
    """
    record = run.read_run(RunRecord)
    results = results_of_run(run)
    mode: Mode = record.settings.mode if record is not None else "non-conversation"
    return Scorecard(
        run=run.path,
        agent=record.settings.agent if record is not None else None,
        models=record.models if record is not None else {},
        mode=mode,
        note=record.note if record is not None else None,
        lack=Standing.of(run).lack(sum(result.stop not in UNFINISHED for result in results)),
        table=score_table(results, levels_of(library) if library is not None else None),
        floors=floors_of(results, library, mode=mode, own=run.path),
    )
