from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Command

ENV = "lending-desk"


def test_a_library_is_a_table_of_environments_and_runs(cli: Command, made_library: Path) -> None:
    answer = cli("show", made_library)
    assert answer.code == 0
    row = next(line for line in answer.out.splitlines() if line.startswith(ENV))
    assert row.split() == [ENV, "Lending", "desk", "1", "2", "1", "2", "90%"]
    assert "Run oracle  oracle: 2 episodes, 100% solved" in answer.out


def test_a_library_as_json_counts_what_it_holds(cli: Command, made_library: Path) -> None:
    view = cli("show", made_library, "--json").json
    (row,) = view["environments"]
    assert (row["queries"], row["updates"], row["scenarios"], row["solutions"]) == (1, 2, 2, 2)
    assert row["pass_rate"] == 0.9
    assert {run["id"] for run in view["runs"]} == {"oracle", "noop"}


def test_an_environment_shows_rules_tools_schema_and_scenarios(cli: Command, made_library: Path) -> None:
    out = cli("show", f"{made_library}/{ENV}").out
    for part in (
        "A book is lent only while a copy is left.",
        "lend_book(book_id: string, member: string)",
        "book_id: str → Book",
        "it lent what was gone",
        "Lend Emma to Ann.",
    ):
        assert part in out


def test_an_environment_as_json_holds_the_skeleton(cli: Command, made_library: Path) -> None:
    view = cli("show", f"{made_library}/{ENV}", "--json").json
    assert view["skeleton"]["id"] == ENV
    assert [case["round"] for case in view["failing"]] == [3]


@pytest.mark.parametrize("name", ["0", "lending-desk-s001"])
def test_a_scenario_is_named_by_index_or_id(cli: Command, made_library: Path, name: str) -> None:
    answer = cli("show", f"{made_library}/{ENV}/{name}")
    assert answer.code == 0
    for part in ("Lend Emma to Ann.", "def check_func(final_state):", 'find_books(title="Emma")', "books: 2 records"):
        assert part in answer.out
    assert cli("show", f"{made_library}/{ENV}/{name}", "--json").json["id"] == "lending-desk-s001"


def test_the_folder_of_an_environment_names_it_too(cli: Command, made_library: Path) -> None:
    assert "Lends books to members." in cli("show", made_library / "environments" / ENV).out


def test_a_run_shows_scores_and_how_episodes_ended(cli: Command, made_library: Path) -> None:
    answer = cli("show", made_library / "rollouts" / "noop")
    assert answer.code == 0
    assert "2 episodes, 2 with a verdict, 0% of these solved" in answer.out
    assert "Ended: finished 2" in answer.out
    view = cli("show", made_library / "rollouts" / "noop", "--json").json
    assert [episode["solved"] for episode in view["episodes"]] == [False, False]


def test_an_episode_shows_what_each_step_changed(cli: Command, made_library: Path) -> None:
    answer = cli("show", made_library / "rollouts" / "oracle", "0")
    assert answer.code == 0
    for part in ("~ /books/B1/copies 1 → 0", "+ /loans/L1 ", "✓ Has Ann a loan of Emma?", "fraction 1.000"):
        assert part in answer.out


@pytest.mark.parametrize("which", ["1", "lending-desk-s002"])
def test_an_episode_is_named_by_index_or_scenario(cli: Command, made_library: Path, which: str) -> None:
    view = cli("show", made_library / "rollouts" / "oracle", which, "--json").json
    assert view["trajectory"]["scenario_id"] == "lending-desk-s002"
    assert all(step["agrees"] for step in view["steps"])
    assert [change["pointer"] for change in view["steps"][1]["changes"][0]] == [
        "/books/B1/copies",
        "/loans/L1",
        "/next_loan",
    ]


def test_an_episode_of_a_changed_environment_shows_no_state_changes(cli: Command, library: Path) -> None:
    program = library / "environments" / ENV / "program.py"
    program.write_text(program.read_text(encoding="utf-8").replace('"L{', '"X{'), encoding="utf-8")
    answer = cli("show", library / "rollouts" / "oracle", "0")
    assert answer.code == 0
    assert "is no longer the one that was played" in answer.out
    assert "→ lend_book(" in answer.out
    assert "/loans/" not in answer.out


def test_nothing_that_a_task_says_drives_a_terminal(cli: Command, made_library: Path) -> None:
    for place in (made_library, f"{made_library}/{ENV}", f"{made_library}/{ENV}/1"):
        assert "\x1b" not in cli("show", place).out
    assert "Ann,\\x1b[31m please!" in cli("show", f"{made_library}/{ENV}/1").out


def test_lines_end_without_blanks(cli: Command, made_library: Path) -> None:
    for place in ("", f"/{ENV}/0"):
        out = cli("show", f"{made_library}{place}").out
        assert [line for line in out.splitlines()[1:] if line.endswith("  ")] == []


def test_a_library_and_a_run_become_pages(cli: Command, made_library: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert cli("show", made_library, "--html", page).code == 0
    assert "/books/B1/copies" in page.read_text(encoding="utf-8")
    assert cli("show", made_library / "rollouts" / "noop", "--html", page, "--json").json == {"page": str(page)}
    assert "not solved" in page.read_text(encoding="utf-8")


# -- wrong names --


def test_a_missing_library_says_how_to_make_one(cli: Command, tmp_path: Path) -> None:
    assert "no such library or run" in cli("show", tmp_path / "none").refused()


def test_a_folder_that_is_neither_says_so(cli: Command, tmp_path: Path) -> None:
    assert "neither a library" in cli("show", tmp_path).refused()


def test_a_wrong_environment_suggests_the_nearest(cli: Command, made_library: Path) -> None:
    assert "did you mean lending-desk?" in cli("show", f"{made_library}/lendin-desk").refused()


@pytest.mark.parametrize("name", ["7", "lending-desk-s009"])
def test_a_wrong_scenario_says_which_there_are(cli: Command, made_library: Path, name: str) -> None:
    sentence = cli("show", f"{made_library}/{ENV}/{name}").refused()
    assert "0 to 1" in sentence or "lending-desk-s001" in sentence


def test_a_wrong_run_lists_the_runs(cli: Command, made_library: Path) -> None:
    assert "it has noop, oracle" in cli("show", made_library / "rollouts" / "orcale").refused()


@pytest.mark.parametrize("name", ["9", "lending-desk-s00"])
def test_a_wrong_episode_says_which_there_are(cli: Command, made_library: Path, name: str) -> None:
    sentence = cli("show", made_library / "rollouts" / "oracle", name).refused()
    assert "from 0 to 1" in sentence or "did you mean lending-desk-s00" in sentence


def test_a_library_of_a_newer_version_is_refused(cli: Command, library: Path) -> None:
    index = library / "library.json"
    index.write_text(index.read_text().replace('"schema_version": 1', '"schema_version": 99'))
    assert "99" in cli("show", library).refused()


def test_a_page_that_cannot_be_written_is_refused(cli: Command, made_library: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert str(tmp_path / "file") in cli("show", made_library, "--html", tmp_path / "file" / "x.html").refused()


@pytest.mark.parametrize(("rest", "word"), [(("0",), "is no run"), (("--html", "x.html"), "a whole library or a run")])
def test_what_belongs_to_a_run_is_refused_elsewhere(
    cli: Command, made_library: Path, rest: tuple[str, ...], word: str
) -> None:
    assert word in cli("show", f"{made_library}/{ENV}", *rest).refused()


def test_an_assessment_of_another_program_is_said_to_be_one(cli: Command, library: Path) -> None:
    program = library / "environments" / ENV / "program.py"
    program.write_text(program.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")
    answer = cli("show", library)
    assert "90%" not in answer.out
    assert "out of date" in answer.out
    assert f"envscaler assess {library}" in " ".join(answer.out.split())
    assert "of another program" in cli("show", library / ENV).out
    assert cli("show", library, "--json").json["environments"][0]["stale"] is True


def test_a_broken_scenario_does_not_hide_the_rest(cli: Command, library: Path) -> None:
    lines = library / "environments" / ENV / "scenarios.jsonl"
    first, second = lines.read_text(encoding="utf-8").splitlines()
    lines.write_text(f"{first[:50]}\n{second}\n", encoding="utf-8")
    for place in (library, library / ENV, library / ENV / "0"):
        answer = cli("show", place)
        assert answer.code == 0
        assert "scenarios.jsonl, line 1 is not JSON" in answer.err
    assert cli("show", library, "--json").json["environments"][0]["scenarios"] == 1
    played = cli("rollout", library, "--agent", "oracle", "--quiet")
    assert played.code == 0
    assert "scenarios.jsonl, line 1 is not JSON" in played.err


def test_a_broken_episode_does_not_hide_the_rest(cli: Command, library: Path) -> None:
    lines = library / "rollouts/oracle/trajectories.jsonl"
    first, second = lines.read_text(encoding="utf-8").splitlines()
    lines.write_text(f"{first[:50]}\n{second}\n", encoding="utf-8")
    answer = cli("show", library / "rollouts/oracle")
    assert answer.code == 0
    assert "trajectories.jsonl, line 1 is not JSON" in answer.err
    assert "1 episode," in answer.out
    assert cli("show", library).code == 0
    assert cli("show", library, "--html", library / "page.html").code == 0


def test_a_run_that_was_killed_is_said_to_be_partial(cli: Command, library: Path) -> None:
    lines = library / "rollouts/oracle/trajectories.jsonl"
    lines.write_text(lines.read_text(encoding="utf-8").splitlines(keepends=True)[0], encoding="utf-8")
    assert "Partial: 1 of 2 episodes asked for" in cli("show", library / "rollouts/oracle").out
    assert "Partial" not in cli("show", library / "rollouts/noop").out


def test_scores_of_more_than_was_asked_for_are_said_to_be_so(cli: Command, library: Path) -> None:
    out = library / "rollouts/more"
    assert "asked for now" not in cli("rollout", library, "--agent", "random", "--samples", 2, "--out", out).out
    answer = cli("rollout", library, "--agent", "random", "--samples", 1, "--out", out)
    assert "2 episodes asked for now; the scores below are of all 4 in the run" in answer.out


@pytest.mark.parametrize("which", ["²", "١٢", "--1", "-", "ünï", "99", "-99"])
def test_a_scenario_that_there_is_not_is_refused_however_it_is_written(
    cli: Command, made_library: Path, which: str
) -> None:
    assert which.lstrip("-")[:1] in cli("show", f"{made_library}/lending-desk/{which}").refused() or which == "١٢"
    cli("play", f"{made_library}/lending-desk", f"--scenario={which}").refused()


def test_an_empty_name_is_refused(cli: Command) -> None:
    for command in ("show", "assess", "rollout", "play"):
        assert "an empty name" in cli(command, "").refused()


def test_a_name_that_is_too_long_is_refused(cli: Command, made_library: Path) -> None:
    for name in ("x" * 5000, f"{made_library}/{'x' * 5000}"):
        assert "x" * 300 in cli("show", name).refused()
