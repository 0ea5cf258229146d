from __future__ import annotations

from pathlib import Path

from cli.conftest import Command

ENV = "lending-desk"


def test_calls_from_a_pipe_change_the_state_and_are_checked(cli: Command, made_library: Path) -> None:
    answer = cli("play", f"{made_library}/{ENV}", stdin='lend_book B1 member="Ann"\ncheck\nquit\n')
    assert answer.code == 0
    assert "~ /books/B1/copies 1 → 0" in answer.out
    assert "reward 1.000, solved" in answer.out


def test_a_call_can_be_taken_back(cli: Command, made_library: Path) -> None:
    answer = cli(
        "play", f"{made_library}/{ENV}", stdin='lend_book {"book_id": "B1", "member": "Ann"}\nundo\ndiff\nundo\n'
    )
    assert "took back lend_book" in answer.out
    assert "The state is the initial one." in answer.out
    assert "there is no call to take back" in answer.out


def test_mistakes_are_answered_and_the_session_goes_on(cli: Command, made_library: Path) -> None:
    lines = [
        "lend_bok B1",
        "lend_book B1",
        "lend_book B1 Ann x y",
        "return_book L9",
        "state /shelves",
        "help nothing",
        "check",
    ]
    answer = cli("play", f"{made_library}/{ENV}", stdin="\n".join(lines))
    assert answer.code == 0
    for part in (
        "did you mean lend_book?",
        "member",
        "nothing is left to give 'x y' to",
        "KeyError",
        "the state has nothing at /shelves; it has /books, /loans, /next_loan",
        "there is no tool 'nothing'",
        "✗ Has Ann a loan of Emma?",
    ):
        assert part in answer.out


def test_commands_list_tools_state_and_task(cli: Command, made_library: Path) -> None:
    answer = cli("play", f"{made_library}/{ENV}", "--quiet", stdin="tools\nhelp lend_book\nhelp\nstate books\ntask\n")
    for part in (
        "find_books(title: string",
        "Name of the member.",
        "take the last call back",
        '"copies": 1',
        "Lend Emma",
    ):
        assert part in answer.out


def test_json_gives_one_object_and_the_talk_on_standard_error(cli: Command, made_library: Path) -> None:
    answer = cli("play", f"{made_library}/{ENV}/1", "--json", stdin="lend_book B1 Ann\nlend_book B2 Bo\nundo\n")
    report = answer.json
    assert report["scenario_id"] == "lending-desk-s002"
    assert [call["call"]["arguments"] for call in report["calls"]] == [{"book_id": "B1", "member": "Ann"}]
    assert all(check["passed"] for check in report["verdict"]["checks"])
    assert "Lending desk" in answer.err


def test_a_library_alone_is_not_enough(cli: Command, made_library: Path) -> None:
    assert "names no environment" in cli("play", made_library, stdin="").refused()


def test_a_scenario_can_be_chosen(cli: Command, made_library: Path) -> None:
    assert "please!" in cli("play", f"{made_library}/{ENV}", "--scenario", "1", stdin="task\n").out
    cli("play", f"{made_library}/{ENV}", "--scenario", "9", stdin="").refused()
