from __future__ import annotations

import json
from pathlib import Path

from cli.conftest import Command


def test_pass_rates_are_told_and_the_curriculum_is_written(cli: Command, library: Path, tmp_path: Path) -> None:
    out = tmp_path / "curriculum.json"
    answer = cli("calibrate", library, "--samples", 2, "--extremes", "--out", out, "--quiet")
    assert answer.code == 0
    assert "4 episodes played now, 2 scenarios calibrated" in answer.out
    assert "not a model's score" in answer.out
    assert "Never solved: 0, always: 2, in the band: 2" in answer.out
    written = json.loads(out.read_text())
    assert (written["schema_version"], written["model"]) == (1, "offline")
    assert [one["pass_rate"] for one in written["scenarios"]] == [1.0, 1.0]
    filtered = cli("library", "filter", library, "--out", tmp_path / "f", "--curriculum", out)
    assert (filtered.code, "2 scenarios" in filtered.out) == (0, True)


def test_the_same_command_resumes(cli: Command, library: Path) -> None:
    cli("calibrate", library, "--samples", 2, "--quiet")
    told = cli("calibrate", library, "--samples", 2, "--json", "--quiet").json
    assert (told["report"]["played"], told["report"]["solved"]) == (0, {"2/2": 2})
    assert told["curriculum"]["scenarios"] == []


def test_bad_input_is_refused_before_anything_is_played(cli: Command, library: Path, tmp_path: Path) -> None:
    assert "write LOW:HIGH" in cli("calibrate", library, "--band", "1").refused()
    assert "keeps files of its own" in cli("calibrate", library, "--out", library / "library.json").refused()
    assert "is a run" in cli("calibrate", library / "rollouts/oracle").refused()
    assert not list((library / "rollouts").glob("model-*"))


def test_what_nobody_can_write_anew_is_named_and_changes_nothing(cli: Command, library: Path) -> None:
    # The embedded model did not design this environment.
    before = (library / "environments/lending-desk/scenarios.jsonl").read_text().count("\n")
    answer = cli("calibrate", library, "--samples", 1, "--harden", "--soften", "--quiet")
    assert answer.code == 0
    assert "2 scenarios to be written anew harder: 0 there, proved" in answer.out
    assert "lending-desk-s001.harder: " in answer.out
    assert (library / "environments/lending-desk/scenarios.jsonl").read_text().count("\n") == before
    told = cli("calibrate", library, "--samples", 1, "--harden", "--json", "--quiet").json
    assert [one["fault"] is None for one in told["rewritten"]] == [False, False]
