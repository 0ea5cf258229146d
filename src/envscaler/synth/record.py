"""`SynthRecord`: what is kept of the last run of one `synth` command, in `LIBRARY/.cache/runs/COMMAND/run.json`.

It is no part of the library: counts are the same after every run of the command, but not what was spent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from envscaler.llm import MeterReport
from envscaler.record import SCHEMA_VERSION, Record
from envscaler.store import LibraryStore, json_text, write_atomic
from envscaler.synth.report import SynthReport

_SHOWN = 16
"""Characters of a command's key that name its folder."""


class SynthRecord(Record):
    """One command and how far its last run came."""

    command: dict[str, Any]
    """What decides the result, as in library.json."""
    ended: Literal["complete", "stopped"]
    """`stopped`: by a budget, an outage, an error or by hand; counts then cover what was settled until then."""
    report: SynthReport
    spent: MeterReport
    """What all runs of the command spent, by role, repeats and replies from the cache apart."""


def record_path(store: LibraryStore, command: str) -> Path:
    """The file of a command's record."""
    return store.cache_dir / "runs" / command[:_SHOWN] / "run.json"


def write_record(path: Path, record: SynthRecord) -> None:
    """Replace the record."""
    write_atomic(path, json_text({"schema_version": SCHEMA_VERSION, **record.model_dump(mode="json")}))
