"""No command writes where a library or a run keeps files of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.errors import StoreError
from envscaler.record import Record
from envscaler.store import LibraryStore, RunStore, require_free


class Told(Record):
    said: str = ""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    store = LibraryStore.create(tmp_path / "L")
    store.run("one").write_run(Told())
    return store.path


@pytest.mark.parametrize(
    "place",
    [
        "library.json",
        "environments",
        "environments/desk/program.py",
        ".cache/replies.sqlite",
        "rollouts/one/run.json",
        "rollouts/one/trajectories.jsonl",
        "rollouts/one/../../environments/x",
    ],
)
def test_files_of_a_library_or_a_run_are_not_written_over(library: Path, place: str) -> None:
    with pytest.raises(StoreError, match="keeps files of its own"):
        require_free(library / place)


@pytest.mark.parametrize("place", ["page.html", "rollouts/one/page.html", "../page.html"])
def test_beside_them_there_is_room(library: Path, place: str) -> None:
    require_free(library / place)
    assert not (library / place).exists()  # it only looks


@pytest.mark.parametrize("place", ["", "environments/desk", ".cache/run", "rollouts", "rollouts/one/two"])
def test_a_run_has_a_place_of_its_own(library: Path, place: str) -> None:
    with pytest.raises(StoreError, match="name "):
        RunStore(library / place).require_usable()


@pytest.mark.parametrize("place", ["environments/desk", ".cache/x", "rollouts", "rollouts/one/two"])
def test_a_library_has_a_place_of_its_own(library: Path, place: str) -> None:
    with pytest.raises(StoreError, match="name "):
        LibraryStore.create(library / place)
    assert LibraryStore.create(library).env_ids() == ()


@pytest.mark.parametrize("place", ["rollouts/one", "rollouts/two", "two", "../two"])
def test_a_run_goes_on_where_it_is_and_begins_where_nothing_is(library: Path, place: str) -> None:
    there = (library / place).exists()
    RunStore(library / place).require_usable()
    assert (library / place).exists() == there  # it only looks


def test_a_link_does_not_hide_where_it_leads(library: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(library / "environments")
    with pytest.raises(StoreError, match="keeps files of its own"):
        RunStore(tmp_path / "link" / "desk").require_usable()


def test_a_run_does_not_begin_among_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for name in ("notes.txt", "b", "c", "d"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / name).write_text("mine")
    with pytest.raises(StoreError, match=r"holds what is no run \(b, c, d, …\)"):
        RunStore(tmp_path / "folder").require_usable()
    with pytest.raises(StoreError, match="is a file"):
        RunStore(tmp_path / "file").require_usable()
    left = tmp_path / "left"
    left.mkdir()
    for name in (".lock", ".run.json.123-ab.tmp"):
        (left / name).write_text("")
    RunStore(left).require_usable()


def test_a_new_library_that_came_to_nothing_goes_again(tmp_path: Path) -> None:
    place = tmp_path / "deep" / "deeper" / "L"
    with pytest.raises(ZeroDivisionError), LibraryStore.making(place) as store, store.writing():
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []
    empty = tmp_path / "empty"
    empty.mkdir()
    with LibraryStore.making(empty):
        pass
    assert list(empty.iterdir()) == []


def test_a_library_that_was_there_stays_whatever_comes(library: Path) -> None:
    with pytest.raises(ZeroDivisionError), LibraryStore.making(library):
        _ = 1 / 0
    assert LibraryStore.open(library).rollouts() == ("one",)


def test_a_folder_that_holds_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match="not empty"), LibraryStore.making(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
