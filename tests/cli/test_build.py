"""synth, assess and scenarios: what they refuse, and that they need no more than they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Command


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    path = tmp_path / "tasks.jsonl"
    path.write_text('{"task": "Renew the loan of my library book."}\n', encoding="utf-8")
    return path


def test_a_missing_task_file_is_refused_and_makes_no_library(cli: Command, tmp_path: Path) -> None:
    sentence = cli("synth", tmp_path / "none.jsonl", "--library", tmp_path / "L").refused()
    assert "none.jsonl" in sentence
    assert not (tmp_path / "L").exists()


@pytest.mark.parametrize(("content", "word"), [("", "empty"), ("\n  \n", "empty"), ('{"task": \n', "line 1")])
def test_a_task_file_without_a_task_is_refused(cli: Command, tmp_path: Path, content: str, word: str) -> None:
    (tmp_path / "tasks.jsonl").write_text(content, encoding="utf-8")
    assert word in cli("synth", tmp_path / "tasks.jsonl", "--library", tmp_path / "L").refused()
    assert not (tmp_path / "L").exists()


def test_a_folder_is_no_task_file(cli: Command, tmp_path: Path) -> None:
    assert "folder" in cli("synth", tmp_path, "--library", tmp_path / "L").refused()
    assert not (tmp_path / "L").exists()


def test_a_source_is_needed_and_only_one(cli: Command, tasks: Path, tmp_path: Path) -> None:
    assert "TASKS" in cli("synth", "--library", tmp_path / "L").refused()
    assert "TASKS" in cli("synth", tasks, "--descriptions", tasks, "--library", tmp_path / "L").refused()


def test_a_library_where_it_cannot_be_is_refused(cli: Command, tasks: Path, tmp_path: Path) -> None:
    assert "is a file" in cli("synth", tasks, "--library", tasks).refused()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    assert "not empty" in cli("synth", tasks, "--library", tmp_path / "full").refused()
    assert [path.name for path in (tmp_path / "full").iterdir()] == ["letter.txt"]


def test_a_library_of_a_newer_version_is_refused(cli: Command, tasks: Path, library: Path) -> None:
    index = library / "library.json"
    index.write_text(index.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    for arguments in (("synth", tasks, "--library", library), ("assess", library), ("scenarios", library)):
        assert "99" in cli(*arguments).refused()


def test_a_model_without_an_endpoint_is_refused_before_anything_is_made(
    cli: Command, tasks: Path, tmp_path: Path
) -> None:
    assert "--base-url" in cli("synth", tasks, "--library", tmp_path / "L", "--model", "gpt-x").refused()
    assert not (tmp_path / "L").exists()


@pytest.mark.parametrize("name", ["assess", "scenarios"])
def test_what_extends_a_library_needs_one(cli: Command, made_library: Path, tmp_path: Path, name: str) -> None:
    assert "no such library" in cli(name, tmp_path / "none").refused()
    assert "lending-desk" in cli(name, f"{made_library}/lendin-desk").refused()
    assert "is a run" in cli(name, made_library / "rollouts" / "noop").refused()
    assert "names a scenario" in cli(name, f"{made_library}/lending-desk/0").refused()


@pytest.mark.parametrize(
    "arguments",
    [("--limit", "0"), ("--threshold", "2"), ("--until", "never"), ("--language", "xx"), ("--rounds", "no")],
)
def test_impossible_values_are_wrong_use(cli: Command, tasks: Path, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    answer = cli("synth", tasks, "--library", tmp_path / "L", *arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert arguments[0] in answer.err


def test_a_number_of_scenarios_that_nobody_means_is_refused(cli: Command, library: Path, tmp_path: Path) -> None:
    (tmp_path / "tasks.txt").write_text("Lend Emma to Ann.\n")
    for command in (
        ("scenarios", library, "--per-env"),
        ("synth", tmp_path / "tasks.txt", "-l", tmp_path / "L", "--scenarios"),
    ):
        answer = cli(*command, 10**20)
        assert answer.code == 2
        assert "10000" in answer.err


def test_a_target_that_the_tasks_cannot_meet_is_said_to_be_missed(cli: Command, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("Book a table for two at the restaurant on Friday.\nWhat is two and two?\n", encoding="utf-8")
    command = ("synth", tasks, "-l", tmp_path / "library", "--until", "discover", "--quiet")
    answer = cli(*command, "--target", 2)
    assert answer.code == 1
    assert "The tasks are used up with 1 of 2 environments wanted accepted" in answer.out
    met = cli(*command, "--target", 1, "--json")
    assert met.code == 0
    assert met.json["target"]["accepted"] == 1
    assert Path(met.json["record"]).is_file()


def test_a_target_and_clusters_are_refused_together(cli: Command, tasks: Path, tmp_path: Path) -> None:
    command = ("synth", tasks, "-l", tmp_path / "library", "--target", 2, "--clusters", 2)
    assert "exclude each other" in cli(*command).refused()
