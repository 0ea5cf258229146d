"""Commands that ask a real endpoint: a local server that answers from a script and fails on demand."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli.conftest import Command
from servers.chat_server import Body, ChatServer, Message, rate_limited, refused, tool_call


def lends(body: Body) -> Message | str:
    """Lends Emma to Ann in one call, then says so."""
    if any(message["role"] == "tool" for message in body["messages"]):
        return "Done."
    call = tool_call("lend_book", {"book_id": "B1", "member": "Ann"})
    return {"content": "I lend it.", "reasoning_content": "B1 is Emma.", "tool_calls": [call]}


def test_a_model_plays_and_its_thoughts_are_shown(cli: Command, library: Path) -> None:
    with ChatServer(answer=lends) as server:
        flags = ("--model", "test-model", "--base-url", server.base_url)
        report = cli("rollout", library, *flags, "--json").json
        assert report["record"]["scores"]["total"]["solved_rate"] == 1.0
        assert report["record"]["models"]["agent"] == "test-model"
        served = server.served
        again = cli("rollout", library, *flags, "--json").json
        assert again["resumed"] == 2
        assert server.served == served
    out = cli("show", report["run"], "0").out
    for part in (
        "reasoning: B1 is Emma.",
        "agent: I lend it.",
        "~ /books/B1/copies 1 → 0",
        "played by model (test-model)",
    ):
        assert part in out


def test_a_budget_ends_with_3_and_the_same_command_resumes(cli: Command, library: Path) -> None:
    with ChatServer(answer=lends) as server:
        flags = ("rollout", library, "--model", "test-model", "--base-url", server.base_url)
        ended = cli(*flags, "--max-calls", "2", "--quiet")
        assert "resumes" in ended.refused(3) or "goes on" in ended.refused(3)
        assert cli(*flags, "--json").json["record"]["scores"]["total"]["episodes"] == 2


def test_an_endpoint_that_stays_down_ends_with_1(cli: Command, library: Path) -> None:
    with ChatServer(answer="ok") as server:
        base_url = server.base_url
    answer = cli("rollout", library, "--model", "test-model", "--base-url", base_url, "--patience", "0", "--quiet")
    assert "the same command goes on where it stopped" in answer.refused(1)


@pytest.mark.parametrize(
    ("fault", "word"), [(refused(401, "Incorrect API key provided"), "key"), (refused(404, "no such model"), "model")]
)
def test_what_the_endpoint_refuses_for_good_is_one_sentence(
    cli: Command, library: Path, fault: object, word: str
) -> None:
    with ChatServer(answer=lends, faults=lambda index, body: fault) as server:  # type: ignore[arg-type, return-value]
        answer = cli("rollout", library, "--model", "test-model", "--base-url", server.base_url, "--quiet")
    assert word in answer.refused(2)


def test_a_limited_rate_is_waited_for(cli: Command, library: Path) -> None:
    with ChatServer(answer=lends, faults=[rate_limited(0), rate_limited(0), None]) as server:
        answer = cli("rollout", library, "--model", "test-model", "--base-url", server.base_url, "--json")
        assert server.injected["rate_limited"] == 2
    assert answer.code == 0
    assert answer.json["played"] == 2


def test_a_key_is_never_shown(cli: Command, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with ChatServer(answer=lends) as server:
        report = cli("rollout", library, "--model", "test-model", "--base-url", server.base_url, "--json")
    assert report.code == 0
    assert "sk-very-secret" not in report.out + report.err
    for path in library.rglob("*"):
        assert path.is_dir() or b"sk-very-secret" not in path.read_bytes()


def test_a_cost_limit_needs_a_price(cli: Command, library: Path) -> None:
    answer = cli("rollout", library, "-m", "unheard-of", "--base-url", "http://127.0.0.1:9/v1", "--max-cost", "1")
    assert "price" in answer.refused(2)
