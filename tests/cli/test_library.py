from __future__ import annotations

from pathlib import Path

from cli.conftest import Command


def test_libraries_are_merged(cli: Command, made_library: Path, library: Path, tmp_path: Path) -> None:
    answer = cli("library", "merge", made_library, library, "--out", tmp_path / "merged", "--runs")
    assert answer.code == 0
    assert "1 environment with 2 scenarios" in answer.out
    assert "2 scenarios there already" in answer.out
    assert "2 runs with 4 episodes" in answer.out
    told = cli("library", "merge", made_library, library, "--out", tmp_path / "other", "--json").json
    assert (told["environments"], told["same_environments"], told["runs"]) == (1, 1, 0)


def test_a_library_is_filtered(cli: Command, made_library: Path, tmp_path: Path) -> None:
    answer = cli("library", "filter", made_library, "--out", tmp_path / "f", "--env", "lending-*", "--accepted")
    assert answer.code == 0
    assert "1 environment with 2 scenarios" in answer.out
    assert cli("show", tmp_path / "f").code == 0


def test_nothing_that_fits_is_no_result_and_no_folder(cli: Command, made_library: Path, tmp_path: Path) -> None:
    answer = cli("library", "filter", made_library, "--out", tmp_path / "f", "--band", "0.2:0.8")
    assert answer.code == 1
    assert "left out: 2 scenarios, not calibrated" in answer.out
    assert not (tmp_path / "f").exists()


def test_a_library_with_too_few_environments_is_not_split(cli: Command, library: Path) -> None:
    assert "too few environments for 2 splits" in cli("library", "split", library).refused()


def test_bad_input_is_one_sentence(cli: Command, made_library: Path, tmp_path: Path) -> None:
    assert "write LOW:HIGH" in cli("library", "filter", made_library, "-o", tmp_path / "f", "--band", "5").refused()
    assert "--ratio" in cli("library", "split", made_library, "--ratio", "train").refused()
    assert "two or more" in cli("library", "merge", made_library, "-o", tmp_path / "f").refused()
    assert "is what is read" in cli("library", "filter", made_library, "-o", made_library).refused()
    missing = tmp_path / "missing.json"
    answer = cli("library", "filter", made_library, "-o", tmp_path / "f", "--curriculum", missing)
    assert "missing.json" in answer.refused()


def test_a_library_is_counted_under_either_name(cli: Command, made_library: Path) -> None:
    assert cli("library", "stats", made_library).out == cli("stats", made_library).out
