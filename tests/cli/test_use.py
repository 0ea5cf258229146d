"""rollout and export."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest
from cli.conftest import Command

from envscaler.rollout import RunRecord
from envscaler.store import RunStore


def test_a_rollout_plays_scores_and_resumes(cli: Command, library: Path) -> None:
    first = cli("rollout", library, "--agent", "random", "--samples", "2", "--json", "--quiet")
    assert first.code == 0
    assert first.err == ""
    assert first.json["played"] == 4
    again = cli("rollout", library, "--agent", "random", "--samples", "2", "--json").json
    assert (again["played"], again["resumed"]) == (0, 4)
    assert again["run"] == first.json["run"]


def test_a_rollout_tells_where_to_look(cli: Command, library: Path, tmp_path: Path) -> None:
    run = tmp_path / "my-run"
    answer = cli("rollout", f"{library}/lending-desk", "--agent", "oracle", "--out", run)
    assert answer.code == 0
    assert "2 episodes played now" in answer.out
    assert f"envscaler show {run} 0" in " ".join(answer.out.split())
    assert "/books/B1/copies" in cli("show", run, "0").out


def test_rows_are_exported_and_counted(cli: Command, made_library: Path, tmp_path: Path) -> None:
    out = tmp_path / "sft.jsonl"
    answer = cli("export", "sft", made_library / "rollouts" / "oracle", "--out", out, "--json")
    assert answer.json["kept"] == 2
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [set(row) >= {"messages", "tools"} for row in rows] == [True, True]


@pytest.mark.parametrize("state", ["being played", "killed", "stopped", "complete"])
def test_an_export_of_a_part_says_so_and_exports(cli: Command, library: Path, tmp_path: Path, state: str) -> None:
    run = RunStore(library / "rollouts" / "oracle")
    record = run.read_run(RunRecord)
    assert record is not None
    status = {"killed": "running", "being played": "running"}.get(state, state)
    run.write_run(record.model_copy(update={"planned": 2 if state == "complete" else 7, "status": status}))
    out = tmp_path / "sft.jsonl"
    with run.writing() if state == "being played" else nullcontext():
        answer = cli("export", "sft", run.path, "--out", out, "--json")
        released = cli("export", "released", library, "--run", run.path, "--out", tmp_path / "released", "--json")
    assert (answer.code, released.code) == (0, 0)
    assert answer.json["kept"] == len(out.read_text(encoding="utf-8").splitlines()) == 2
    said = {
        "being played": f"warning: {run.path} is still being played: 2 of 7 episodes are there",
        "complete": "",
    }.get(state, f"warning: {run.path} was not played to its end: 2 of 7 episodes are there; the command that began")
    assert answer.err.startswith(f"envscaler: {said}") if said else answer.err == ""
    assert released.err == answer.err


def test_rows_can_be_written_to_a_pipe_which_is_not_replaced(cli: Command, made_library: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE) as reader:
        answer = cli("export", "sft", made_library / "rollouts" / "oracle" / "trajectories.jsonl", "--out", pipe)
        assert answer.code == 0
        assert reader.stdout is not None
        assert len(reader.stdout.read().splitlines()) == 2
    assert pipe.is_fifo()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full here")
def test_a_device_that_is_full_is_told_and_stays_a_device(cli: Command, made_library: Path) -> None:
    answer = cli("export", "sft", made_library / "rollouts" / "oracle", "--out", "/dev/full")
    assert "No space left" in answer.refused()
    assert Path("/dev/full").is_char_device()


@pytest.mark.parametrize(
    "command",
    [
        ("export", "sft", "{run}", "--out"),
        ("export", "released", "{library}", "--out"),
        ("show", "{library}", "--html"),
        ("show", "{run}", "--html"),
    ],
)
def test_no_output_goes_where_a_library_keeps_its_own(cli: Command, library: Path, command: tuple[str, ...]) -> None:
    named = [part.format(run=library / "rollouts" / "oracle", library=library) for part in command]
    before = (library / "library.json").read_bytes()
    folder = command[1] == "released"
    for place in (
        ("environments/new", ".cache/x") if folder else ("library.json", "environments/lending-desk/program.py")
    ):
        assert "keeps files of its own" in cli(*named, library / place).refused()
    assert (library / "library.json").read_bytes() == before


def test_statistics_are_not_written_into_an_environment(cli: Command, library: Path) -> None:
    assert "keeps files of its own" in cli("stats", library, "--out", library / "environments" / "x.md").refused()


@pytest.mark.parametrize("place", ["environments/lending-desk", "environments/x", "", "rollouts"])
def test_a_rollout_goes_nowhere_where_a_library_keeps_its_own(cli: Command, library: Path, place: str) -> None:
    before = sorted(map(str, library.rglob("*")))
    assert str(library / place) in cli("rollout", library, "--agent", "noop", "--out", library / place).refused()
    assert sorted(map(str, library.rglob("*"))) == before


def test_scenarios_of_an_edited_program_are_renewed_by_the_command_that_is_named(cli: Command, library: Path) -> None:
    program = library / "environments" / "lending-desk" / "program.py"
    program.write_text(program.read_text() + "\n# edited\n")
    named = f"envscaler scenarios {library} --renew"
    answer = cli("rollout", library, "--agent", "oracle")
    assert answer.code == 1
    shown = [cli("show", library), cli("scenarios", library, "--per-env", "1"), answer]
    for text in [*(part.out for part in shown), cli("show", f"{library}/lending-desk").out]:
        assert f"envscaler scenarios {library}" in " ".join(text.split())
    command = named.split()[1:]
    renewed = cli(*command)
    assert renewed.code == 0
    assert "2 scenarios of another version of a program do the same in this one" in renewed.out
    answer = cli("rollout", library, "--agent", "oracle", "--json").json
    assert (answer["record"]["skipped"], answer["record"]["planned"]) == ([], 2)


def test_an_export_that_keeps_nothing_has_no_result(cli: Command, made_library: Path, tmp_path: Path) -> None:
    out = tmp_path / "sft.jsonl"
    answer = cli("export", "sft", made_library / "rollouts" / "noop", "--out", out, "--solved")
    assert answer.code == 1
    assert "2 not solved" in answer.out


def test_a_library_is_no_run(cli: Command, made_library: Path, tmp_path: Path) -> None:
    assert "give one of its runs" in cli("export", "sft", made_library, "--out", tmp_path / "x").refused()


def test_a_run_is_no_library(cli: Command, made_library: Path) -> None:
    assert "is a run; give a library" in cli("rollout", made_library / "rollouts" / "noop", "--agent", "noop").refused()


def test_an_unknown_environment_is_refused(cli: Command, made_library: Path) -> None:
    assert "lending-desk" in cli("rollout", f"{made_library}/lending", "--agent", "noop").refused()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission_is_refused(cli: Command, library: Path, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    assert str(tmp_path / "run") in cli("rollout", library, "--agent", "noop", "--out", tmp_path / "run").refused()


def test_a_file_in_the_way_of_a_run_is_refused(cli: Command, library: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    sentence = cli("rollout", library, "--agent", "noop", "--out", tmp_path / "file" / "run", "--quiet").refused()
    assert "file" in sentence


# -- models --


def test_a_model_without_an_endpoint_is_refused(cli: Command, library: Path) -> None:
    assert "--base-url" in cli("rollout", library, "--model", "gpt-x").refused()


def test_an_endpoint_that_needs_a_key_is_refused_without_one(cli: Command, library: Path) -> None:
    sentence = cli("rollout", library, "--model", "gpt-x", "--base-url", "https://api.example.com/v1").refused()
    assert "OPENAI_API_KEY" in sentence


def test_a_wrong_family_is_refused(cli: Command, library: Path) -> None:
    assert "scenario_writer" in cli("rollout", library, "--role-model", "agnet=x").refused()
    assert "FAMILY=NAME" in cli("rollout", library, "--role-model", "agent").refused()


def test_an_unknown_key_of_the_settings_file_is_named(cli: Command, library: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('modle = "x"\n')
    sentence = cli("rollout", library, "--config", tmp_path / "settings.toml").refused()
    assert "modle" in sentence
    assert "settings.toml" in sentence


def test_missing_prompts_are_refused(cli: Command, library: Path, tmp_path: Path) -> None:
    assert "no such folder" in cli("rollout", library, "--prompts", tmp_path / "none").refused()


def test_an_empty_cache_is_refused(cli: Command, library: Path) -> None:
    assert "cache" in cli("rollout", library, "--model", "cached").refused()


@pytest.mark.parametrize("isolation", ["default", "required", "shared", "in-process"])
def test_a_rollout_gives_the_same_in_every_isolation_and_says_which_it_was(
    cli: Command, library: Path, tmp_path: Path, isolation: str
) -> None:
    answer = cli("rollout", library, "--agent", "oracle", "--isolation", isolation, "--out", tmp_path / "run", "--json")
    if isolation == "required" and answer.code == 2:
        pytest.skip("this machine cannot contain generated code")
    record = answer.json["record"]
    assert ("ran in processes of their own" in answer.err) == (isolation == "in-process")
    assert record["isolation_modes"] == [isolation]
    assert list(record["kept_apart"]) == (["lending-desk"] if isolation == "in-process" else [])
    usual = cli("rollout", library, "--agent", "oracle", "--out", tmp_path / "usual", "--json")
    assert usual.code == 0
    lines = [(tmp_path / name / "trajectories.jsonl").read_bytes() for name in ("run", "usual")]
    assert lines[0] == lines[1]
    assert cli("replay", tmp_path / "run", "--isolation", isolation, "--json").json["summary"]["episodes"] == 2


def test_code_that_nobody_knows_cannot_be_made_to_share(cli: Command, library: Path) -> None:
    answer = cli("assess", library, "--isolation", "shared")
    assert answer.code == 2
    assert "'shared' is not one of" in answer.err
