"""`RunStore`: the folder of one run: `trajectories.jsonl`, which only grows, and `run.json`.

What a run record says, and which episodes still have to be played, is `rollout`'s business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

from envscaler.errors import StoreError
from envscaler.record import Record
from envscaler.store.appending import LineFile
from envscaler.store.atomic import json_text, versioned, write_atomic
from envscaler.store.lock import sole_writer
from envscaler.store.reading import Complaint, RecordT, json_object, read_jsonl, read_record, validated
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

    def writing(self) -> AbstractContextManager[None]:
        """Held while a rollout writes to the run: a second one would play the same episodes again.

        Raises:
            StoreError: on entering, if another process writes to it.
        """
        return sole_writer(self.path / ".lock", str(self.path))

    @property
    def exists(self) -> bool:
        """Whether anything of a run is in the folder."""
        return (self.path / _RUN).is_file() or (self.path / _TRAJECTORIES).is_file()

    def trajectories(self, complain: Complaint | None = None) -> Iterator[Trajectory]:
        """All trajectories in the order they were written, streamed; a line torn by a kill is left out.

        Args:
            complain: told of each other broken line, which is then left out; None: the first one is an error.
        """
        path = self.path / _TRAJECTORIES
        return read_jsonl(path, Trajectory, torn_tail=True, complain=complain) if path.exists() else iter(())

    def append(self, trajectory: Trajectory) -> None:
        """Add one trajectory; when this returns, a kill does not lose it.

        Raises:
            StoreError: if it cannot be written.
        """
        self._lines.append(versioned(trajectory))

    def arrange(self, place: Callable[[Trajectory], tuple[str | int, ...] | None]) -> None:
        """Bring the trajectories into one order, atomically and without holding them in memory.

        Args:
            place: where a trajectory belongs; of several with the same place the last one written stays, and one
                without a place is dropped.
        """
        self.close()
        path = self.path / _TRAJECTORIES
        if not path.exists():
            return
        spans: dict[tuple[str | int, ...], tuple[int, int]] = {}
        for start, length, trajectory in self._spans(path):
            where = place(trajectory)
            if where is not None:
                spans[where] = (start, length)
        write_atomic(path, _copied(path, [spans[where] for where in sorted(spans)]))

    def _spans(self, path: Path) -> Iterator[tuple[int, int, Trajectory]]:
        start = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n") and line.strip():
                    where = f"{path}, line {number}"
                    yield start, len(line), validated(json_object(line, where), Trajectory, where)
                start += len(line)

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


def _copied(path: Path, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for start, length in spans:
            file.seek(start)
            yield file.read(length)
