"""`RunStore`: the folder of one run: `trajectories.jsonl`, which only grows, and `run.json`.

What a run record says, and which episodes still have to be played, is `rollout`'s business.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import msgspec

from envscaler.errors import StoreError
from envscaler.record import Record
from envscaler.store.appending import LineFile
from envscaler.store.atomic import json_text, versioned, write_atomic
from envscaler.store.grounds import LOCK, REPLIES, ROLLOUTS, RUN, TRAJECTORIES, is_run, require_free
from envscaler.store.lock import is_held, sole_writer
from envscaler.store.reading import Complaint, RecordT, json_object, read_jsonl, read_record, unreadable, validated
from envscaler.store.replies import ReplyJournal
from envscaler.trajectory import Trajectory

_LEFT = re.compile(rf"\.({re.escape(RUN)}|{re.escape(TRAJECTORIES)})\..*\.tmp\Z")


class EpisodeHead(msgspec.Struct, frozen=True):
    """What tells an episode from others, read without the rest of its line."""

    id: str
    env_id: str
    scenario_id: str
    sample: int = 0


_decode_head = msgspec.json.Decoder(EpisodeHead).decode


class RunStore:
    """Reads and writes the files of one run; the folder is made by the first write.

    A context manager: leaving it waits for the disk.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lines = LineFile(self.path / TRAJECTORIES)

    @classmethod
    def open(cls, path: Path | str) -> RunStore:
        """The run in that folder.

        Raises:
            StoreError: if there is none.
        """
        run = cls(path)
        if not run.exists:
            raise StoreError(f"{path} is no run: it has neither {RUN} nor {TRAJECTORIES}")
        return run

    def writing(self) -> AbstractContextManager[None]:
        """Held while a rollout writes to the run: a second one would play the same episodes again.

        Raises:
            StoreError: on entering, if another process writes to it.
        """
        return sole_writer(self.path / LOCK, str(self.path))

    @property
    def being_written(self) -> bool:
        """Whether a rollout writes to it now, as far as this machine can tell."""
        return is_held(self.path / LOCK)

    @property
    def exists(self) -> bool:
        """Whether anything of a run is in the folder."""
        return is_run(self.path)

    def require_usable(self) -> None:
        """Make sure that the folder is that of a run, or can become it.

        Raises:
            StoreError: if it is a file, holds other things, or is where a library or another run keeps its own.
        """
        require_free(self.path, folder=True)
        if self.exists:
            return
        try:
            if self.path.exists() and not self.path.is_dir():
                raise StoreError(f"{self.path} is a file; name a folder for the run")
            entries = sorted(entry.name for entry in self.path.iterdir()) if self.path.exists() else []
        except OSError as error:
            raise unreadable(self.path, error) from error
        foreign = [name for name in entries if name != LOCK and not _LEFT.match(name)]
        if foreign:
            shown = f"{', '.join(foreign[:3])}{', …' if len(foreign) > 3 else ''}"
            raise StoreError(f"{self.path} holds what is no run ({shown}); name a new folder")

    def trajectories(self, complain: Complaint | None = None) -> Iterator[Trajectory]:
        """All trajectories in the order they were written, streamed; a line torn by a kill is left out.

        Args:
            complain: told of each other broken line, which is then left out; None: the first one is an error.
        """
        path = self.path / TRAJECTORIES
        return read_jsonl(path, Trajectory, torn_tail=True, complain=complain) if path.exists() else iter(())

    def append(self, trajectory: Trajectory) -> None:
        """Add one trajectory; when this returns, a kill does not lose it.

        Raises:
            StoreError: if it cannot be written.
        """
        self._lines.append(versioned(trajectory))

    def replies(self) -> ReplyJournal:
        """What models answered in episodes that are not over."""
        return ReplyJournal(self.path / REPLIES)

    def arrange(self, place: Callable[[EpisodeHead], tuple[str | int, ...] | None]) -> None:
        """Bring the trajectories into one order, atomically and without holding them in memory.

        Args:
            place: where a trajectory belongs; of several with the same place the last one written stays, and one
                without a place is dropped.
        """
        self.close()
        path = self.path / TRAJECTORIES
        if not path.exists():
            return
        spans: dict[tuple[str | int, ...], tuple[int, int]] = {}
        for start, length, head in self._spans(path):
            where = place(head)
            if where is not None:
                spans[where] = (start, length)
        write_atomic(path, _copied(path, [spans[where] for where in sorted(spans)]))

    def _spans(self, path: Path) -> Iterator[tuple[int, int, EpisodeHead]]:
        start = 0
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n") and line.strip():
                    yield start, len(line), _head(line, f"{path}, line {number}")
                start += len(line)

    def discard_empty(self) -> None:
        """Remove the folder again if nothing of a run is in it, and that of all runs if it was the only one."""
        if self.exists:
            return
        with contextlib.suppress(OSError):
            (self.path / LOCK).unlink(missing_ok=True)
            self.path.rmdir()
            if self.path.parent.name == ROLLOUTS:
                self.path.parent.rmdir()

    def read_run(self, kind: type[RecordT]) -> RecordT | None:
        """What run.json holds, as a record of the caller's type; None when there is none yet."""
        path = self.path / RUN
        return read_record(path, kind) if path.exists() else None

    def write_run(self, record: Record) -> None:
        """Replace run.json."""
        write_atomic(self.path / RUN, json_text(versioned(record)))

    def close(self) -> None:
        """Wait for the disk; idempotent."""
        self._lines.close()

    def __enter__(self) -> RunStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _head(line: bytes, where: str) -> EpisodeHead:
    try:
        return _decode_head(line)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        # Lines hold what no decoder takes, such as half of a surrogate pair; the reader for all says whether it may.
        whole = validated(json_object(line, where), Trajectory, where)
        return EpisodeHead(whole.id, whole.env_id, whole.scenario_id, whole.sample)


def _copied(path: Path, spans: list[tuple[int, int]]) -> Iterator[bytes]:
    with path.open("rb") as file:
        for start, length in spans:
            file.seek(start)
            yield file.read(length)
