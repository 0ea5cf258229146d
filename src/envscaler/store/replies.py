"""`ReplyJournal`: what models answered in the episodes of one run that are not over, so that a kill loses no answer.

It lies in the run's folder and lives no longer than the run: an episode's lines go when it is over. What a line holds,
and whether it still fits, is `rollout`'s business.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from envscaler.errors import StoreError
from envscaler.record import SCHEMA_VERSION
from envscaler.state import JsonValue
from envscaler.store.appending import LineFile
from envscaler.store.reading import check_version, json_object, unreadable

_SEGMENT = re.compile(r"(\d{6})\.jsonl\Z")
_SEGMENT_BYTES = 64 * 1024 * 1024


class ReplyJournal:
    """Files that only grow; each is deleted when all episodes that have lines in it are over.

    `append` survives a kill once it has returned; a power cut may lose the latest lines; then the model is asked again.
    """

    def __init__(self, folder: Path, *, segment_bytes: int = _SEGMENT_BYTES) -> None:
        """
        Args:
            segment_bytes: size from which on another file is begun.
        """
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._kept: dict[str, list[JsonValue]] = {}
        """Lines of an earlier process, of episodes that have not begun again."""
        self._segments_of: dict[str, set[int]] = {}
        """Numbers of the files in which each episode that is not over has lines."""
        self._users: Counter[int] = Counter()
        """How many such episodes there are for each file."""
        self._number = 0
        self._lines: LineFile | None = None
        self._written = 0

    def load(self, wanted: Callable[[str], bool]) -> None:
        """Read what an earlier process has left; lines of episodes that are not `wanted`, and broken ones, are dropped.

        Raises:
            StoreError: if it cannot be read.
        """
        for number, path in sorted(self._segments()):
            self._number = number
            for line in _entries(path):
                episode = line["episode"]
                if not wanted(episode):
                    continue
                if "reply" in line:
                    self._kept.setdefault(episode, []).append(line["reply"])
                else:
                    self._kept.pop(episode, None)
                self._use(episode, number)
            if not self._users[number]:
                path.unlink(missing_ok=True)

    def __len__(self) -> int:
        """How many episodes have lines of an earlier process and have not begun again."""
        return len(self._kept)

    def take(self, episode: str) -> list[JsonValue]:
        """The lines that an earlier process has left of an episode, in their order; given once."""
        return self._kept.pop(episode, [])

    def append(self, episode: str, reply: JsonValue) -> None:
        """Add a line to an episode.

        Raises:
            StoreError: if it cannot be written.
        """
        self.append_text(episode, json.dumps(reply, ensure_ascii=False))

    def append_text(self, episode: str, reply: str) -> None:
        """As `append`, for a reply that is JSON text already."""
        self._write(episode, f', "reply": {reply}')

    def drop(self, episode: str, *, again: bool = False) -> None:
        """Forget what was answered in an episode.

        Args:
            again: it is going to be played from its beginning; else it is over, and stands in the run.
        """
        self._kept.pop(episode, None)
        if again:
            if episode in self._segments_of:
                self._write(episode, "")
            return
        for number in self._segments_of.pop(episode, ()):
            self._users[number] -= 1
            self._delete_unused(number)

    def close(self) -> None:
        """Close the file, and remove everything if nothing is left that somebody could need; idempotent."""
        lines, self._lines = self._lines, None
        if lines is not None:
            lines.close()
            self._delete_unused(self._number)
        if not self._segments_of:
            with contextlib.suppress(OSError):
                self._folder.rmdir()

    def _write(self, episode: str, rest: str) -> None:
        if self._lines is None or self._written >= self._segment_bytes:
            full, self._lines = self._lines, None
            if full is not None:
                full.close()
                self._delete_unused(self._number)
            self._number += 1
            self._lines, self._written = LineFile(self._path(self._number), durable=False), 0
        head = f'{{"schema_version": {SCHEMA_VERSION}, "episode": {json.dumps(episode, ensure_ascii=False)}'
        self._written += self._lines.append_text(f"{head}{rest}}}\n")
        self._use(episode, self._number)

    def _use(self, episode: str, number: int) -> None:
        numbers = self._segments_of.setdefault(episode, set())
        if number not in numbers:
            numbers.add(number)
            self._users[number] += 1

    def _delete_unused(self, number: int) -> None:
        if not self._users[number] and not (self._lines is not None and number == self._number):
            self._path(number).unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.jsonl"

    def _segments(self) -> Iterator[tuple[int, Path]]:
        with contextlib.suppress(FileNotFoundError):
            for path in self._folder.iterdir():
                if match := _SEGMENT.match(path.name):
                    yield int(match.group(1)), path


def _entries(path: Path) -> Iterable[dict[str, JsonValue]]:
    try:
        with path.open("rb") as file:
            for number, text in enumerate(file, 1):
                where = f"{path}, line {number}"
                with contextlib.suppress(StoreError):  # torn, or of another version: then the model is asked again
                    line = json_object(text, where)
                    check_version(line, where)
                    if isinstance(line.get("episode"), str):
                        yield line
    except OSError as error:
        raise unreadable(path, error) from error
