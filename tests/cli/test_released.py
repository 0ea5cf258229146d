"""import released, export released, replay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli.conftest import Command
from released.desk import ENVIRONMENT, FINAL, SCENARIO, recorded


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published files of one environment with a good and a bad scenario and two episodes."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "environments.json").write_text(json.dumps({"env_7_rl": ENVIRONMENT}))
    (folder / "scenarios.json").write_text(json.dumps([SCENARIO, {**SCENARIO, "task": 1}]))
    opened = ("open_ticket", {"title": "lamp"})
    good = recorded(opened, ("close_ticket", {"ticket_id": "$0.ticket_id"}), FINAL)
    cut = recorded(opened)
    (folder / "episodes.jsonl").write_text("".join(f"{json.dumps(episode)}\n" for episode in (good, cut)))
    odd = {**good, "total_reward": 0.1}
    (folder / "odd.jsonl").write_text(f"{json.dumps(odd)}\n")
    return folder


def test_an_import_tells_what_it_took_and_what_is_wrong(cli: Command, files: Path, tmp_path: Path) -> None:
    given = ("--environments", files / "environments.json", "--scenarios", files / "scenarios.json")
    answer = cli("import", "released", *given, "--library", tmp_path / "L", "--quiet")
    assert answer.code == 0
    assert "environments: 1 added" in answer.out
    assert "scenarios: 1 added, 1 skipped" in answer.out
    assert "field `task` holds a number" in " ".join(answer.out.split())
    assert "no attribute of TicketDesk holds the published entity 'Ghost'" in answer.out
    assert "Ticket desk" in cli("show", tmp_path / "L").out
    assert "lamp" in cli("show", f"{tmp_path / 'L'}/env_7_rl/0").out


def test_an_import_as_json_has_the_counts_and_the_findings(cli: Command, files: Path, tmp_path: Path) -> None:
    given = ("--environments", files / "environments.json", "--trajectories", files / "episodes.jsonl")
    answer = cli("import", "released", *given, "--library", tmp_path / "L", "--json", "--quiet").json
    assert answer["environments"]["added"] == 1
    assert answer["trajectories"]["added"] == 2
    assert answer["imported"][0]["findings"] is not None
    assert answer["run"].endswith("released-episodes")


def test_nothing_to_import_is_wrong_use(cli: Command, tmp_path: Path) -> None:
    assert "--environments" in cli("import", "released", "--library", tmp_path / "L").refused()


@pytest.fixture(scope="module")
def desk(files: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from typer.testing import CliRunner

    from envscaler.cli.app import app

    library = tmp_path_factory.mktemp("desk") / "L"
    given = [f"--environments={files / 'environments.json'}", f"--scenarios={files / 'scenarios.json'}"]
    result = CliRunner().invoke(
        app,
        ["import", "released", *given, f"--trajectories={files / 'episodes.jsonl'}", "-l", str(library), "--no-check"],
    )
    assert result.exit_code == 0
    return library


def test_a_replay_as_json_has_the_keys_that_readers_rely_on(cli: Command, files: Path, desk: Path) -> None:
    answer = cli("replay", files / "episodes.jsonl", "--library", desk, "--json", "--quiet")
    assert answer.code == 0
    assert answer.json["summary"] == {
        "episodes": 2,
        "observations": 3,
        "observations_equal": 1,
        "observations_equal_up_to_ids": 3,
        "reward_equal": 1,
        "reward_explained": 1,
        "reward_unexplained": 0,
    }
    first, second = answer.json["episodes"]
    wanted = {
        "env_id": "env_7_rl",
        "task_id": "env_7_rl-task_1",
        "model": "somebody",
        "reward_recorded": 1.0,
        "reward_authors_rule": 1.0,
        "fraction": 1.0,
        "gained": 1.0,
        "solved": True,
        "explanation": {"kind": None, "evidence": ""},
    }
    assert {name: first[name] for name in wanted} == wanted
    assert second["explanation"]["kind"] == "cut_at_limit"


def test_the_run_of_an_import_replays_without_being_told_its_library(cli: Command, desk: Path) -> None:
    run = desk / "rollouts" / "released-episodes"
    answer = cli("replay", run, "--quiet")
    assert answer.code == 0
    assert cli("replay", run / "trajectories.jsonl", "--quiet").out == answer.out
    assert "2 episodes played again" in answer.out
    assert "Rewards: 1 equal, 1 explained, 0 unexplained" in answer.out


def test_a_replay_that_cannot_be_explained_is_a_failure(cli: Command, files: Path, desk: Path) -> None:
    answer = cli("replay", files / "odd.jsonl", "--library", desk, "--quiet")
    assert answer.code == 1
    assert "unexplained" in answer.out
    assert "recorded 0.1" in answer.out


def test_our_own_run_replays_equal(cli: Command, made_library: Path) -> None:
    answer = cli("replay", made_library / "rollouts" / "oracle", "--json", "--quiet")
    assert answer.code == 0
    assert answer.json["summary"]["reward_equal"] == answer.json["summary"]["episodes"] == 2


def test_a_file_needs_a_library(cli: Command, files: Path) -> None:
    assert "--library" in cli("replay", files / "episodes.jsonl").refused()


def test_a_folder_that_is_no_run_is_refused(cli: Command, files: Path, desk: Path) -> None:
    assert "is no run" in cli("replay", files).refused()
    assert "is no run" in cli("replay", files, "--library", desk).refused()


def test_what_there_is_neither_as_a_file_nor_as_a_run_is_said_with_where_it_was_looked_for(
    cli: Command, desk: Path, tmp_path: Path
) -> None:
    sentence = cli("replay", tmp_path / "nofile").refused()
    assert "neither a file nor a run" in sentence
    assert str(tmp_path / "nofile") in sentence
    sentence = cli("replay", "nofile", "--library", desk).refused()
    assert f"looked at nofile and {desk / 'rollouts' / 'nofile'}" in sentence


def test_a_run_can_be_named_by_its_id(cli: Command, desk: Path) -> None:
    assert cli("replay", "released-episodes", "--library", desk, "--quiet").code == 0


@pytest.mark.parametrize("form", ["file", "run"])
def test_a_library_of_other_environments_is_the_users_mistake(
    cli: Command, files: Path, desk: Path, library: Path, form: str
) -> None:
    source = files / "episodes.jsonl" if form == "file" else desk / "rollouts" / "released-episodes"
    sentence = cli("replay", source, "--library", library, "--quiet").refused()
    assert "none of the environments" in sentence
    assert "(env_7_rl (2))" in sentence


def test_environments_that_a_library_lacks_are_told_once_with_their_number(
    cli: Command, made_library: Path, library: Path
) -> None:
    (lines,) = [path.read_text() for path in library.glob("rollouts/oracle/trajectories.jsonl")]
    other = lines.replace('"env_id": "lending-desk"', '"env_id": "zoo"')
    (library / "rollouts/oracle/trajectories.jsonl").write_text(lines + other)
    answer = cli("replay", library / "rollouts" / "oracle", "--json", "--quiet")
    assert answer.code == 0
    assert answer.json["skipped"] == [f"{library} lacks environments, with so many episodes each: zoo (2)"]


@pytest.mark.parametrize("kind", ["missing", "folder", "empty", "binary", "text", "other"])
@pytest.mark.parametrize("option", ["--environments", "--scenarios", "--trajectories"])
def test_an_import_of_nothing_leaves_nothing(cli: Command, tmp_path: Path, option: str, kind: str) -> None:
    place = tmp_path / "given.json"
    if kind == "folder":
        place.mkdir()
    elif kind != "missing":
        contents = {"empty": b"", "binary": b"\x7fELF\xff\x00", "text": b"Hello", "other": b'[{"a": 1}]'}
        place.write_bytes(contents[kind])
    there = sorted(tmp_path.iterdir())
    answer = cli("import", "released", option, place, "--library", tmp_path / "deep" / "L", "--quiet")
    if kind == "other":
        assert answer.code == 1
        assert "Nothing was imported" in answer.out
    else:
        assert str(place) in answer.refused()
    assert sorted(tmp_path.iterdir()) == there


def test_an_import_into_a_file_is_refused(cli: Command, files: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    given = ("--environments", files / "environments.json")
    assert "is a file" in cli("import", "released", *given, "--library", tmp_path / "file").refused()
    assert (tmp_path / "file").read_text() == "mine"


def test_an_import_of_no_episode_leaves_a_library_as_it_was(cli: Command, library: Path, tmp_path: Path) -> None:
    place = tmp_path / "given.jsonl"
    place.write_text('{"a": 1}\n')
    runs = sorted((library / "rollouts").iterdir())
    assert cli("import", "released", "--trajectories", place, "--library", library, "--quiet").code == 1
    assert sorted((library / "rollouts").iterdir()) == runs


def test_an_export_can_be_imported_again(cli: Command, desk: Path, tmp_path: Path) -> None:
    answer = cli("export", "released", desk, "--out", tmp_path / "out")
    assert answer.code == 0
    assert "2 episodes in episodes.jsonl" in answer.out
    again = cli(
        *("import", "released", "--environments", tmp_path / "out" / "environments.json"),
        *("--scenarios", tmp_path / "out" / "scenarios.json", "--library", desk, "--json", "--no-check"),
    ).json
    assert (again["environments"]["unchanged"], again["scenarios"]["unchanged"]) == (1, 1)
