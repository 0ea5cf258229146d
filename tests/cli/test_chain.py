"""The whole way by the commands alone: tasks → environments → scenarios → episodes → rows → page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.conftest import Command

TASKS = (
    "Book a place in the watercolour workshop for Ann Lee and tell her the room.",
    "Move the meeting with the auditors to Thursday at ten.",
)


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chain") / "tasks.jsonl"
    lines = [json.dumps({"task": task}) for task in TASKS]
    path.write_text("\n".join([lines[0], '{"task": broken', lines[1], "7"]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def one_task(tmp_path: Path) -> Path:
    path = tmp_path / "one.txt"
    path.write_text(TASKS[1] + "\n", encoding="utf-8")
    return path


def files(library: Path) -> dict[str, bytes]:
    kept = [library / "library.json", *(library / "environments").rglob("*")]
    return {str(path.relative_to(library)): path.read_bytes() for path in kept if path.is_file()}


def test_the_chain_goes_from_tasks_to_a_page_and_again_for_nothing(cli: Command, tasks: Path, tmp_path: Path) -> None:
    library = tmp_path / "L"
    synth = ("synth", tasks, "--library", library, "--scenarios", "2", "--rounds", "12", "--json")
    first = cli(*synth)
    assert first.code == 0, first.err
    report = first.json
    assert report["environments"]
    assert report["funnel"]["scenarios"] == report["funnel"]["solved"] == 2 * len(report["environments"])
    assert [problem.split(":")[0] for problem in report["problems"]] == ["line 2", "line 4"]

    before = files(library)
    again = cli(*synth)
    assert again.json["resumed"] == len(report["environments"])
    assert again.json["spent"]["calls"] == 0
    assert files(library) == before

    oracle = cli("rollout", library, "--agent", "oracle", "--json").json
    assert oracle["record"]["scores"]["total"]["solved_rate"] == 1.0
    noop = cli("rollout", library, "--agent", "noop", "--json").json
    assert noop["record"]["scores"]["total"]["solved_rate"] == 0.0
    offline = cli("rollout", library, "--json").json
    assert "not a model's score" in offline["record"]["note"]

    rows = tmp_path / "sft.jsonl"
    exported = cli("export", "sft", oracle["run"], "--out", rows, "--solved", "--json").json
    assert exported["kept"] == report["funnel"]["scenarios"]
    assert len(rows.read_text(encoding="utf-8").splitlines()) == exported["kept"]

    view = cli("show", oracle["run"], "0", "--json").json
    assert view["replay"] is None
    assert all(step["agrees"] for step in view["steps"])
    assert any(changes for step in view["steps"] for changes in step["changes"])

    page = tmp_path / "library.html"
    assert cli("show", library, "--html", page).code == 0
    assert report["environments"][0] in page.read_text(encoding="utf-8")
    assert files(library) == before


def test_assessing_and_extending_keep_what_is_valid(cli: Command, one_task: Path, tmp_path: Path) -> None:
    library = tmp_path / "L"
    made = cli("synth", one_task, "--library", library, "--scenarios", "1", "--rounds", "12", "--json").json
    assessed = cli("assess", library, "--rounds", "12", "--json")
    assert assessed.code == 0
    assert [row["fresh"] for row in assessed.json["assessed"]] == [False] * len(made["environments"])
    name = made["environments"][0]
    extended = cli("scenarios", f"{library}/{name}", "--per-env", "2", "--json").json
    assert [(row["env_id"], row["present"]) for row in extended["environments"]] == [(name, 2)]
    assert cli("assess", library, "--rounds", "12", "--json").json["assessed"][0]["fresh"] is False


def test_the_quickstart_makes_everything_and_resumes(one_task: Path, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "examples" / "quickstart.py"
    command = [sys.executable, str(script), "--library", str(tmp_path / "L"), "--tasks", str(one_task)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "FORCE"))}
    first = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert first.returncode == 0, first.stderr
    for part in (
        "What was made",
        "Try next",
        "$ envscaler synth",
        "episodes of oracle, 100% solved",
        "episodes of noop, 0%",
    ):
        assert part in first.stdout
    assert (tmp_path / "L" / "library.html").is_file()
    assert (tmp_path / "L" / "sft.jsonl").is_file()
    second = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert second.returncode == 0
    assert "Everything was there already" in second.stdout
