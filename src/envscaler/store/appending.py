"""`LineFile`: a JSONL file that grows by whole lines and survives a kill.

Each line is handed to the operating system before `append` returns, so that a killed process loses at most the
line in flight; the disk is waited for when the file is closed, so that a power cut can lose the lines since then.
What the lines mean is `run`'s and `journal`'s business.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import BinaryIO

from envscaler.state import JsonValue
from envscaler.store.atomic import json_line, unwritable, utf8


class LineFile:
    """Opens lazily, and drops a torn last line when it does."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        """
        Args:
            durable: wait for the disk at the end; not needed for what can be made again.
        """
        self.path = path
        self._durable = durable
        self._file: BinaryIO | None = None

    def append(self, value: JsonValue) -> int:
        """Add one line; its length in bytes.

        Raises:
            StoreError: if the file cannot be written.
        """
        return self.append_text(json_line(value))

    def append_text(self, text: str) -> int:
        """As `append`, for a line that is JSON already, newline included."""
        line = utf8(text)
        try:
            if self._file is None:
                self._file = _opened(self.path)
            # Unbuffered: one write per line, so that lines of two handles never mix.
            self._file.write(line)
        except OSError as error:
            raise unwritable(self.path, error) from error
        return len(line)

    def close(self) -> None:
        """Wait for the disk, where that was asked for, and close; idempotent."""
        if self._file is not None:
            try:
                if self._durable:
                    os.fsync(self._file.fileno())
            except OSError as error:
                raise unwritable(self.path, error) from error
            finally:
                self._file.close()
                self._file = None


def _opened(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        _mend_tail(path)
    return path.open("ab", buffering=0)


def _mend_tail(path: Path) -> None:
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        start, tail = size, b""
        while start > 0 and b"\n" not in tail:
            step = min(start, 1 << 16)
            start -= step
            file.seek(start)
            tail = file.read(step) + tail
        torn = tail[tail.rfind(b"\n") + 1 :]
        if not torn:
            return
        try:
            json.loads(torn)
        except ValueError:
            file.truncate(size - len(torn))
        else:
            file.seek(0, os.SEEK_END)
            file.write(b"\n")
