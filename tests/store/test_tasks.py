"""Task files as people have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import StoreError
from envscaler.store import SourceTask, read_descriptions, read_tasks


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(path: Path) -> list[str]:
    return [task.text for task in read_tasks(path).tasks]


def test_json_lines_with_task_text_or_a_string(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        '{"task": "Book a room", "source": "hotel"}\n\n{"text": "Renew a loan"}\n"Plain string"\r\n',
    )
    file = read_tasks(path)
    assert file.tasks == (
        SourceTask("Book a room", 1, "hotel"),
        SourceTask("Renew a loan", 3),
        SourceTask("Plain string", 4),
    )
    assert file.problems == ()


@pytest.mark.parametrize(
    "content",
    [
        '["One", "Two"]',
        '[{"task": "One"}, {"text": "Two"}]',
        '{"name": "set", "tasks": ["One", "Two"]}',
        '\ufeff[\n  "One",\n  "Two"\n]\n',
    ],
)
def test_json_in_its_usual_shapes(tmp_path: Path, content: str) -> None:
    assert texts(write(tmp_path / "t.json", content)) == ["One", "Two"]


def test_a_single_object_is_a_task_even_when_it_holds_a_list(tmp_path: Path) -> None:
    for name in ("t.json", "t.jsonl", "t"):
        assert texts(write(tmp_path / name, '{"task": "One", "tags": ["a", "b"]}\n')) == ["One"]


def test_json_lines_under_another_name_are_recognised(tmp_path: Path) -> None:
    assert texts(write(tmp_path / "t.json", '{"task": "One"}\n{"task": "Two"}\n')) == ["One", "Two"]
    assert texts(write(tmp_path / "t", '{"task": "One"}\n{"task": "Two"}\n')) == ["One", "Two"]


def test_plain_text_has_one_task_a_line(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.txt", "\ufeff# tasks\r\nBook a room\r\n\r\n#12 is late, rebook it\r\n  图书馆还书  \n#\n"
    )
    assert read_tasks(path).tasks == (
        SourceTask("Book a room", 2),
        SourceTask("#12 is late, rebook it", 4),
        SourceTask("图书馆还书", 5),
    )


def test_a_broken_line_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    path = write(
        tmp_path / "t.jsonl",
        b'{"task": "One"}\n{"task": \n{"title": "x"}\n{"task": 5}\n{"task": " "}\n"\xff\xfe"\n7\n{"task": "Two"}\n',
    )
    file = read_tasks(path)
    assert [task.text for task in file.tasks] == ["One", "Two"]
    assert [problem.line for problem in file.problems] == [2, 3, 4, 5, 6, 7]
    assert "not JSON" in file.problems[0].message
    assert "neither `task` nor `text`; it has `title`" in file.problems[1].message
    assert "not UTF-8" in file.problems[4].message


def test_equal_texts_are_kept_once_and_counted(tmp_path: Path) -> None:
    file = read_tasks(write(tmp_path / "t.txt", "One\nTwo\n One\nOne\n"))
    assert [task.line for task in file.tasks] == [1, 2]
    assert file.duplicates == 2


def test_a_limit_counts_usable_tasks(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", '{"task": "One"}\n{"task": "One"}\nbroken\n{"task": "Two"}\n{"task": "Three"}\n')
    file = read_tasks(path, limit=2)
    assert [task.text for task in file.tasks] == ["One", "Two"]
    assert (len(file.problems), file.duplicates) == (1, 1)


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.jsonl", b"", r"is empty; give one task a line"),
        ("t.txt", b" \n\n", r"is empty"),
        ("t.txt", b"# only a comment\n", r"holds no usable task$"),
        ("t.jsonl", b"{broken\n", r"holds no usable task \(line 1: it is not JSON"),
        ("t.json", b'["One", ', r"t\.json is not JSON"),
        ("t.json", b'{"a": ["x"], "b": ["y"]}', r"holds no list of tasks"),
        ("t.txt", "Böök".encode("utf-16"), r"not UTF-8 text"),
        ("t.bin", b"\x7fELF\0\0", r"not UTF-8 text"),
    ],
)
def test_what_cannot_be_used_is_one_sentence(tmp_path: Path, name: str, content: bytes, sentence: str) -> None:
    with pytest.raises(StoreError, match=sentence) as caught:
        read_tasks(write(tmp_path / name, content))
    assert "\n" not in str(caught.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file"):
        read_tasks(tmp_path / "missing.jsonl")
    with pytest.raises(StoreError, match="is a folder"):
        read_tasks(tmp_path)


@given(st.lists(st.text(min_size=1).filter(lambda text: text.strip()), min_size=1, unique_by=str.strip))
def test_any_text_survives_json_lines(tmp_path_factory: pytest.TempPathFactory, wanted: list[str]) -> None:
    path = tmp_path_factory.mktemp("tasks") / "t.jsonl"
    path.write_text("".join(json.dumps({"task": text}) + "\n" for text in wanted), encoding="utf-8")
    assert texts(path) == [text.strip() for text in wanted]


def test_half_of_an_emoji_does_not_reach_the_pipeline(tmp_path: Path) -> None:
    [text] = texts(write(tmp_path / "t.jsonl", '{"task": "Send \\ud83d now"}\n'))
    assert text.encode("utf-8")


def test_descriptions_in_their_forms(tmp_path: Path) -> None:
    path = write(
        tmp_path / "d.jsonl",
        '{"summary": "Desk", "introduction": "Lends books."}\n'
        '{"environment_summary": "Lot", "environment_introduction": "Parks cars."}\n'
        '"Clinic: Keeps patients: and visits."\n{"summary": "Alone"}\n',
    )
    file = read_descriptions(path)
    assert [(each.summary, each.introduction) for each in file.descriptions] == [
        ("Desk", "Lends books."),
        ("Lot", "Parks cars."),
        ("Clinic", "Keeps patients: and visits."),
    ]
    assert [problem.line for problem in file.problems] == [4]


def test_the_real_task_file_is_read_whole(shared_data: Path) -> None:
    file = read_tasks(shared_data / "data" / "source_tasks.jsonl")
    assert len(file.tasks) + file.duplicates == 7305
    assert file.problems == ()
    assert {task.source for task in file.tasks} == {"api-bank", "toolace"}
