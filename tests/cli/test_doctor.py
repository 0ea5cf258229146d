from __future__ import annotations

from pathlib import Path

from cli.conftest import Command
from servers.chat_server import ChatServer


def test_a_machine_without_an_endpoint_is_well(cli: Command, tmp_path: Path) -> None:
    answer = cli("doctor", "--library", tmp_path / "new", "--json")
    diagnosis = answer.json
    assert answer.code == 0
    assert diagnosis["ok"] is True
    findings = {finding["subject"]: finding for finding in diagnosis["findings"]}
    assert set(findings) == {"Python", "Cores", "Memory", "Disk", "Sandbox", "Isolation", "Model", "Embedding"}
    assert findings["Sandbox"]["status"] == "ok"
    assert "not a language model" in findings["Model"]["detail"]
    assert not (tmp_path / "new").exists()


def test_an_endpoint_is_tried(cli: Command, tmp_path: Path) -> None:
    with ChatServer(answer='{"ok": true}') as server:
        answer = cli("doctor", "--model", "test-model", "--base-url", server.base_url, "--library", tmp_path / "L")
    assert answer.code == 0, answer.out
    assert "JSON schema" in answer.out
    assert "All that a run needs works." in answer.out


def test_an_endpoint_that_is_down_is_bad(cli: Command, tmp_path: Path) -> None:
    with ChatServer(answer="ok") as server:
        base_url = server.base_url
    answer = cli("doctor", "--model", "test-model", "--base-url", base_url, "--library", tmp_path / "L", "--json")
    assert answer.code == 1
    (finding,) = [finding for finding in answer.json["findings"] if finding["status"] == "bad"]
    assert finding["subject"] == "Model"
    assert base_url in finding["detail"]


def test_settings_that_cannot_be_used_are_refused(cli: Command) -> None:
    assert "--model" in cli("doctor", "--base-url", "http://127.0.0.1:9/v1").refused()


def test_a_file_in_the_place_of_the_library_is_bad(cli: Command, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "deep"):
        answer = cli("doctor", "--library", place)
        assert answer.code == 1
        assert "is a file; a library is a folder" in " ".join(answer.out.split())
