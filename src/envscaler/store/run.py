"""`RunStore`: the folder of one run: `trajectories.jsonl`, which only grows, and `run.json`.

What a run record says, and which episodes still have to be played, is `rollout`'s business.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from envscaler.errors import StoreError
from envscaler.record import Record
from envscaler.store.appending import LineFile
from envscaler.store.atomic import json_text, versioned, write_atomic
from envscaler.store.reading import RecordT, read_jsonl, read_record
from envscaler.trajectory import Trajectory

_TRAJECTORIES = "trajectories.jsonl"
_RUN = "run.json"


class RunStore:
    """Reads and writes the files of one run; the folder is made by the first write.

    A context manager: leaving it waits for the disk.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lines = LineFile(self.path / _TRAJECTORIES)

    @classmethod
    def open(cls, path: Path | str) -> RunStore:
        """The run in that folder.

        Raises:
            StoreError: if there is none.
        """
        run = cls(path)
        if not run.exists:
            raise StoreError(f"{path} is no run: it has neither {_RUN} nor {_TRAJECTORIES}")
        return run

    @property
    def exists(self) -> bool:
        """Whether anything of a run is in the folder."""
        return (self.path / _RUN).is_file() or (self.path / _TRAJECTORIES).is_file()

    def trajectories(self) -> Iterator[Trajectory]:
        """All trajectories in the order they were written, streamed; a line torn by a kill is left out."""
        path = self.path / _TRAJECTORIES
        return read_jsonl(path, Trajectory, torn_tail=True) if path.exists() else iter(())

    def append(self, trajectory: Trajectory) -> None:
        """Add one trajectory; when this returns, a kill does not lose it.

        Raises:
            StoreError: if it cannot be written.
        """
        self._lines.append(versioned(trajectory))

    def write_trajectories(self, trajectories: Iterator[Trajectory] | tuple[Trajectory, ...]) -> None:
        """Replace all trajectories, atomically (to bring them into one order, or to drop failed ones)."""
        from envscaler.store.atomic import json_line, utf8

        self.close()
        content = b"".join(utf8(json_line(versioned(trajectory))) for trajectory in trajectories)
        write_atomic(self.path / _TRAJECTORIES, content)

    def read_run(self, kind: type[RecordT]) -> RecordT | None:
        """What run.json holds, as a record of the caller's type; None when there is none yet."""
        path = self.path / _RUN
        return read_record(path, kind) if path.exists() else None

    def write_run(self, record: Record) -> None:
        """Replace run.json."""
        write_atomic(self.path / _RUN, json_text(versioned(record)))

    def close(self) -> None:
        """Wait for the disk; idempotent."""
        self._lines.close()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
