"""`sole_writer`: one process at a time writes to a folder. Readers need no lock: every write is atomic."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from envscaler.errors import StoreError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no flock; two writers are then the user's own care
    fcntl = None  # type: ignore[assignment]


def is_held(lock: Path) -> bool:
    """Whether another process, or another part of this one, writes under the lock file now."""
    if fcntl is None:
        return False
    try:
        handle = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        if not os.read(handle, 1):
            return False  # given back; to ask the kernel would for a moment keep a writer out
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(handle)
    return False


@contextmanager
def sole_writer(lock: Path, what: str) -> Iterator[None]:
    """Hold the lock file while writing to `what`; the kernel frees it when the process ends, however it ends.

    Raises:
        StoreError: if another process holds it.
    """
    if fcntl is None:
        yield
        return
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"{lock} cannot be written: {error.strerror or error}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 32).decode(errors="replace").strip()
            who = f" (process {holder})" if holder else ""
            raise StoreError(
                f"{what} is being written by another envscaler command{who}; wait until it has ended, then run again"
            ) from error
        except OSError:
            yield  # a file system without locks, such as some that are mounted from afar
            return
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(handle, 0)
    finally:
        os.close(handle)
