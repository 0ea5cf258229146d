"""Tests of `--trace` and of looking at what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Command

from envscaler.llm.tracing import Exchange, Mended, TraceLine
from envscaler.store import read_jsonl


@pytest.fixture
def trace(cli: Command, tmp_path: Path) -> Path:
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("Book a table for two at the restaurant on Friday.\n", encoding="utf-8")
    path = tmp_path / "trace.jsonl"
    command = ("synth", tasks, "--library", tmp_path / "library", "--until", "design", "--trace", path, "--quiet")
    assert cli(*command).code == 0
    return path


def test_every_question_is_shown_with_its_reply(cli: Command, trace: Path) -> None:
    answer = cli("show", trace)
    assert answer.code == 0
    heads = [line for line in answer.out.splitlines() if line.startswith("#")]
    assert [line.split()[1] for line in heads] == ["filter_task", "infer_environment", "plan_state", "plan_tools"]
    assert "task: Book a table" in heads[0]
    assert "Book a table for two" in answer.out
    assert answer.out.count("reply (stop)") == 4


def test_what_was_made_good_in_a_reply_is_shown_with_it(cli: Command, trace: Path) -> None:
    asked = [line.trace for line in read_jsonl(trace, TraceLine)]
    (planned,) = [one for one in asked if isinstance(one, Exchange) and one.role == "plan_tools"]
    line = TraceLine(trace=Mended(id=planned.id, mended=("JSON syntax", "extra fields")))
    with trace.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"schema_version": 1, **line.model_dump(mode="json")}) + "\n")
    assert "mended: JSON syntax, extra fields" in cli("show", trace, "plan_tools").out
    assert "mended:" not in cli("show", trace, "plan_state").out
    (shown,) = cli("show", trace, "plan_tools", "--json").json["exchanges"]
    assert shown["mended"] == ["JSON syntax", "extra fields"]
    (other,) = cli("show", trace, "plan_state", "--json").json["exchanges"]
    assert other["mended"] == []


def test_a_role_or_what_it_is_about_is_shown_alone(cli: Command, trace: Path) -> None:
    (shown,) = cli("show", trace, "plan_tools", "--json").json["exchanges"]
    assert (shown["role"], shown["faults"]) == ("plan_tools", [])
    about = cli("show", trace, shown["subject"], "--json").json["exchanges"]
    assert [one["role"] for one in about] == ["plan_state", "plan_tools"]
    assert "no question that 'nobody' fits" in cli("show", trace, "nobody").refused()


def test_a_file_of_somebody_else_is_refused_before_a_library_is_made(cli: Command, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.txt"
    tasks.write_text("Book a table.\n", encoding="utf-8")
    library = tmp_path / "library"
    told = cli("synth", tasks, "--library", library, "--trace", tasks).refused()
    assert "not written by this command" in told
    assert not library.exists()
