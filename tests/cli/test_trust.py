"""`prove` and `audit` on the command line."""

from __future__ import annotations

from pathlib import Path

from cli.conftest import Command

from envscaler.store import LibraryStore


def test_prove_proves_what_has_no_proof_and_then_nothing(cli: Command, library: Path) -> None:
    lenient = ("--min-mutation-score", 0, "--min-over-edits-caught", 0, "--json")
    first = cli("prove", library, *lenient).json
    assert [row["fresh"] for row in first["scenarios"]] == [True, True]
    proofs = (library / "environments" / "lending-desk" / "proofs.jsonl").read_bytes()
    again = cli("prove", library, *lenient)
    assert again.code == 0
    assert [row["fresh"] for row in again.json["scenarios"]] == [False, False]
    assert (library / "environments" / "lending-desk" / "proofs.jsonl").read_bytes() == proofs
    assert [proof.solved for proof in LibraryStore.open(library).proofs("lending-desk")] == [True, True]


def test_prove_tells_what_falls_short_and_exits_with_1(cli: Command, library: Path) -> None:
    short = cli("prove", library, "--min-mutation-score", 1, "--min-over-edits-caught", 1)
    assert short.code == 1
    assert "0 reach the thresholds" in short.out
    assert "lending-desk-s001: " in short.out


def test_one_scenario_is_proved_alone(cli: Command, library: Path) -> None:
    answer = cli("prove", f"{library}/lending-desk/lending-desk-s002", "--json")
    assert [row["scenario_id"] for row in answer.json["scenarios"]] == ["lending-desk-s002"]
    assert "no scenario 'nobody'" in cli("prove", f"{library}/lending-desk/nobody").refused()


def test_audit_counts_and_writes_a_page_and_a_cleaned_library(cli: Command, library: Path, tmp_path: Path) -> None:
    page, cleaned = tmp_path / "audit.html", tmp_path / "cleaned"
    answer = cli("audit", library, "--html", page, "--fix", cleaned, "--json")
    assert answer.code == 0
    summary = answer.json["summary"]
    assert (summary["environments"], summary["scenarios"], summary["proved"]) == (1, 2, 2)
    assert "Audit of desk" in page.read_text(encoding="utf-8")
    assert LibraryStore.open(cleaned).env_ids() == ("lending-desk",)
    told = cli("audit", library)
    assert "2 scenarios proved" in told.out
    assert "\x1b[31m" not in told.out


def test_audit_refuses_what_it_cannot_do(cli: Command, library: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert "is not empty" in cli("audit", library, "--fix", tmp_path / "full", "--quiet").refused()
    assert "is the library itself" in cli("audit", library, "--fix", library, "--quiet").refused()
    assert "name the library" in cli("audit", f"{library}/lending-desk", "--fix", tmp_path / "new").refused()
    assert "names a scenario" in cli("audit", f"{library}/lending-desk/0").refused()
    assert "no such library" in cli("audit", tmp_path / "none").refused()
    assert "no environment 'nobody'" in cli("audit", f"{library}/nobody").refused()
