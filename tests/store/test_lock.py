"""One command at a time writes to a library or a run."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from envscaler.errors import StoreError
from envscaler.store import LibraryStore, RunStore, sole_writer

HOLD = "import sys\nfrom pathlib import Path\nfrom envscaler.store import sole_writer\n" + (
    "with sole_writer(Path(sys.argv[1]), 'it'):\n    print('held', flush=True)\n    sys.stdin.read()\n"
)


def test_a_second_writer_is_told_who_writes_and_what_to_do(tmp_path: Path) -> None:
    lock = tmp_path / "deep" / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(StoreError, match=rf"lib is being written.*process {holder.pid}.*wait"),
            sole_writer(lock, "lib"),
        ):
            pass
        os.kill(holder.pid, signal.SIGKILL)
    with sole_writer(lock, "lib"):
        assert lock.read_text() == str(os.getpid())


def test_the_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), sole_writer(tmp_path / "lock", "it"):
        _ = 1 / 0
    with sole_writer(tmp_path / "lock", "it"):
        pass


def test_libraries_and_runs_have_locks_of_their_own(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "library")
    run = RunStore(store.path / "rollouts" / "one")
    with store.writing(), run.writing():
        with pytest.raises(StoreError, match="library"), store.writing():
            pass
        with pytest.raises(StoreError, match="one"), run.writing():
            pass
    assert store.env_ids() == ()


def test_a_run_tells_whether_somebody_writes_to_it(tmp_path: Path) -> None:
    run = RunStore(tmp_path / "one")
    assert not run.being_written
    with run.writing():
        assert run.being_written
    assert not run.being_written
    (run.path / ".lock").write_text("12345")  # as a writer leaves it that was killed
    assert not run.being_written


def test_the_file_of_a_lock_that_was_given_back_says_nothing(tmp_path: Path) -> None:
    with sole_writer(tmp_path / "lock", "it"):
        pass
    assert (tmp_path / "lock").read_bytes() == b""


def test_a_file_system_without_locks_can_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_here(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", none_here)
    with sole_writer(tmp_path / "lock", "it"):
        (tmp_path / "letter").write_text("written")
    with pytest.raises(ZeroDivisionError), sole_writer(tmp_path / "lock", "it"):
        _ = 1 / 0
