from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.errors import StoreError
from envscaler.released import Entry, entries
from envscaler.released.stream import _CHUNK_CHARS

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def read(path: Path, complaints: list[str] | None = None) -> list[Entry]:
    told: list[str] = []
    found = list(entries(path, told.append))
    if complaints is None:
        assert told == []
    else:
        complaints += told
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@given(st.lists(VALUES, max_size=5), st.sampled_from([None, 1]))
@settings(max_examples=60, deadline=None)
def test_a_list_gives_its_entries(folder: Path, values: list[Any], indent: int | None) -> None:
    path = folder / "list.json"
    path.write_text(json.dumps(values, indent=indent), encoding="utf-8")
    assert [entry.value for entry in read(path)] == values
    assert all(entry.listed for entry in read(path))


@given(st.dictionaries(st.text(max_size=8), st.dictionaries(st.text(max_size=5), VALUES, max_size=3), max_size=4))
@settings(max_examples=60, deadline=None)
def test_an_object_keyed_by_id_gives_its_entries_with_their_keys(folder: Path, values: dict[str, Any]) -> None:
    path = folder / "object.json"
    path.write_text(json.dumps(values), encoding="utf-8")
    assert {entry.key: entry.value for entry in read(path)} == values


@pytest.mark.parametrize("name", ["entries.jsonl", "entries.json"])
def test_one_object_a_line_gives_its_entries_whatever_the_files_name(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text('{"env_id": "a"}\n\n{"env_id": "b"}\n', encoding="utf-8")
    assert [entry.value["env_id"] for entry in read(path)] == ["a", "b"]


def test_a_single_indented_object_is_one_entry(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"init_config": {"a": 1}, "env_id": "x"}, indent=4), encoding="utf-8")
    (entry,) = read(path)
    assert entry.value["env_id"] == "x"
    assert entry.key is None


def test_entries_longer_than_what_is_read_at_once_come_whole(tmp_path: Path) -> None:
    values = [{"text": "äx" * _CHUNK_CHARS, "number": number} for number in range(3)] + [
        {"text": "\u2028", "number": 3}
    ]
    path = tmp_path / "long.json"
    path.write_text(json.dumps(values, ensure_ascii=False), encoding="utf-8")
    assert [entry.value for entry in read(path)] == values


def test_a_broken_line_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"a": 1}\n{"a": \n{"a": 3}\n', encoding="utf-8")
    told: list[str] = []
    assert [entry.value["a"] for entry in read(path, told)] == [1, 3]
    assert len(told) == 1
    assert "line 2" in told[0]


def test_a_file_cut_off_gives_what_is_whole_and_then_says_where(tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text('[{"a": 1}, {"a": 2}, {"a"', encoding="utf-8")
    stream = entries(path, lambda _: None)
    assert [next(stream).value, next(stream).value] == [{"a": 1}, {"a": 2}]
    with pytest.raises(StoreError, match=r"cut\.json is not JSON from entry 3 on"):
        next(stream)


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"\xff\xfe[]", "not UTF-8"), (b"[1] 2", "text after the end"), (b"[1 2]", "expecting ','"), (b"{]", "not JSON")],
)
def test_what_is_no_json_is_refused_in_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "broken.json"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=words):
        list(entries(path, lambda _: None))


def test_an_empty_file_is_said_to_be_empty_and_an_empty_list_has_no_entries(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("")
    with pytest.raises(StoreError, match=r"empty\.json is empty"):
        read(tmp_path / "empty.json")
    (tmp_path / "none.json").write_text("[]")
    assert read(tmp_path / "none.json") == []


def test_a_folder_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder"):
        list(entries(tmp_path, lambda _: None))
    with pytest.raises(StoreError, match="no such file"):
        list(entries(tmp_path / "none.json", lambda _: None))
