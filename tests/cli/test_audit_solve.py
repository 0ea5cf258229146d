"""`audit --solve`: a model plays what came without a solution, then the checks are tried after its episodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from cli.conftest import Command
from env.lending import scenario, skeleton
from servers.chat_server import Body, ChatServer, Message, refused, tool_call

from envscaler.store import LibraryStore, RunStore

TASKS = ("Lend Emma to Ann.", "Please lend Emma to Ann.", "Ann wants Emma.")


@pytest.fixture
def imported(tmp_path: Path) -> Path:
    """Four scenarios, three of which came without a solution."""
    store = LibraryStore.create(tmp_path / "imported")
    environment = skeleton()
    unsolved = [scenario(environment, number, task=task, solution=None) for number, task in enumerate(TASKS, 2)]
    store.write_environment(environment, None, [scenario(environment), *unsolved])
    store.write_index({})
    return tmp_path / "imported"


class Lender:
    """Lends Emma to Ann where the task is one of those that it can do; says what it was asked."""

    def __init__(self, *tasks: str) -> None:
        self.able = set(tasks)
        self.asked: list[str] = []

    def __call__(self, body: Body) -> Message | str:
        task = next(message["content"] for message in body["messages"] if message["role"] == "user")
        if any(message["role"] == "tool" for message in body["messages"]):
            return "Done."
        self.asked.append(task)
        if task not in self.able:
            return "I do not know how."
        return {"content": None, "tool_calls": [tool_call("lend_book", {"book_id": "B1", "member": "Ann"})]}


def flags(server: ChatServer, *more: object) -> tuple[object, ...]:
    return ("--solve", "test-model", "--base-url", server.base_url, *more)


def test_what_has_no_solution_is_played_and_then_proved(cli: Command, imported: Path) -> None:
    assert cli("audit", imported, "--json").json["summary"]["without_solution"] == 3
    lender = Lender(*TASKS[:2])
    with ChatServer(answer=lender) as server:
        report = cli("audit", imported, *flags(server), "--json").json
    assert sorted(lender.asked) == sorted(TASKS)
    assert (report["summary"]["proved"], report["summary"]["without_solution"]) == (3, 1)
    solving = report["solving"]
    assert (solving["model"], solving["scenarios"], solving["solved"], solving["played"]) == ("test-model", 3, 2, 3)
    assert solving["spent"]["calls"] == 5
    assert Path(solving["run"]).parent == imported / "rollouts"
    assert list(report)[:2] == ["summary", "findings"]
    stored = list(LibraryStore.open(imported).scenarios("lending-desk"))
    assert [kept.solution is None for kept in stored] == [False, True, True, True]


def test_the_same_command_plays_nothing_twice(cli: Command, imported: Path) -> None:
    lender = Lender(TASKS[0])
    with ChatServer(answer=lender) as server:
        first = cli("audit", imported, *flags(server), "--json").json
        again = cli("audit", imported, *flags(server), "--json").json
        assert len(lender.asked) == 3
        told = cli("audit", imported, *flags(server))
    assert again["solving"]["played"] == 0
    assert again["solving"]["run"] == first["solving"]["run"]
    assert (again["summary"], again["findings"]) == (first["summary"], first["findings"])
    assert "3 scenarios came without a solution: 1 solved by episodes in the library." in told.out
    assert "0 episodes played now by test-model." in told.out


def test_more_samples_go_to_what_is_still_unsolved(cli: Command, imported: Path) -> None:
    lender = Lender(TASKS[0])
    with ChatServer(answer=lender) as server:
        report = cli("audit", imported, *flags(server, "--solve-samples", 3), "--json").json
    assert [lender.asked.count(task) for task in TASKS] == [1, 3, 3]
    episodes = list(RunStore.open(report["solving"]["run"]).trajectories())
    assert {(episode.scenario_id, episode.sample) for episode in episodes} == {
        ("lending-desk-s002", 0),
        *(("lending-desk-s003", sample) for sample in range(3)),
        *(("lending-desk-s004", sample) for sample in range(3)),
    }


def test_episodes_of_other_runs_count_and_a_run_of_the_same_model_stays_as_it_is(cli: Command, imported: Path) -> None:
    lender = Lender(*TASKS)
    with ChatServer(answer=lender) as server:
        played = cli("rollout", imported, "--model", "test-model", "--base-url", server.base_url, "--json").json
        record = Path(played["run"], "run.json").read_bytes()
        asked = len(lender.asked)
        report = cli("audit", imported, *flags(server), "--json").json
    assert len(lender.asked) == asked
    assert (report["solving"]["solved"], report["solving"]["played"], report["solving"]["run"]) == (3, 0, None)
    assert Path(played["run"], "run.json").read_bytes() == record


def test_a_budget_ends_with_3_and_the_same_command_goes_on(cli: Command, imported: Path) -> None:
    lender = Lender(*TASKS)
    with ChatServer(answer=lender) as server:
        stopped = cli("audit", imported, *flags(server, "--max-calls", 2, "--max-in-flight", 1, "--quiet"))
        assert "same command" in stopped.refused(3)
        assert not (imported / "environments" / "lending-desk" / "audit.json").exists()
        report = cli("audit", imported, *flags(server), "--json").json
    assert report["summary"]["proved"] == 4
    assert report["solving"]["unfinished"] == 0


def test_an_endpoint_that_stays_down_ends_with_1(cli: Command, imported: Path) -> None:
    with ChatServer(answer="ok") as server:
        down = flags(server, "--patience", 0, "--quiet")
    assert "the same command goes on where it stopped" in cli("audit", imported, *down).refused(1)


def test_what_the_endpoint_refuses_for_good_is_one_sentence(cli: Command, imported: Path) -> None:
    with ChatServer(answer="ok", faults=lambda index, body: refused(401, "Incorrect API key provided")) as server:
        assert "key" in cli("audit", imported, *flags(server, "--quiet")).refused(2)


def test_the_offline_model_cannot_solve(cli: Command, imported: Path) -> None:
    sentence = cli("audit", imported, "--solve", "offline", "--quiet").refused()
    assert "plays recorded solutions only" in sentence
    assert not (imported / "rollouts").exists()


def test_solutions_of_their_own_leave_nothing_to_ask(cli: Command, library: Path) -> None:
    with ChatServer(answer="ok") as server:
        told = cli("audit", library, *flags(server))
    assert server.served == 0
    assert "Every scenario came with a solution; no model was asked." in told.out


def test_a_library_that_is_being_written_is_refused_before_a_call_is_paid_for(cli: Command, imported: Path) -> None:
    with ChatServer(answer="ok") as server, LibraryStore.open(imported).writing():
        assert "is being written" in cli("audit", imported, *flags(server, "--quiet")).refused()
    assert server.served == 0


def test_scenarios_of_another_version_of_the_program_are_told(cli: Command, imported: Path) -> None:
    store = LibraryStore.open(imported)
    kept = [
        known.model_copy(update={"env_digest": "0" * 64}) if known.id.endswith("s002") else known
        for known in store.scenarios("lending-desk")
    ]
    store.replace_scenarios("lending-desk", kept)
    lender = Lender(*TASKS)
    with ChatServer(answer=lender) as server:
        told = cli("audit", imported, *flags(server))
    assert sorted(lender.asked) == sorted(TASKS[1:])
    assert "Not played: 1 scenario: made for another version of the program" in " ".join(told.out.split())


def test_an_episode_of_a_scenario_that_was_changed_since_is_no_solution_of_it(cli: Command, imported: Path) -> None:
    with ChatServer(answer=Lender(*TASKS)) as server:
        cli("audit", imported, *flags(server))
    store = LibraryStore.open(imported)
    kept = [changed(known) for known in store.scenarios("lending-desk")]
    store.replace_scenarios("lending-desk", kept)
    assert cli("audit", imported, "--json").json["summary"]["without_solution"] == 1


def changed(known: Any) -> Any:
    if not known.id.endswith("s003"):
        return known
    fields = {name: getattr(known, name) for name in type(known).model_fields}
    return type(known)(**{**fields, "task": "Lend Emma to Bob."})


def test_a_model_of_a_settings_file_does_not_take_its_place(cli: Command, imported: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings.toml"
    settings.write_text('[models.agent]\nmodel = "another"\n', encoding="utf-8")
    with ChatServer(answer=Lender(*TASKS)) as server:
        report = cli("audit", imported, *flags(server, "--config", settings), "--json").json
    assert report["solving"]["model"] == "test-model"


@pytest.mark.parametrize("option", [("--base-url", "http://127.0.0.1:9/v1"), ("--solve-samples", "2")])
def test_options_of_solving_need_a_model(cli: Command, imported: Path, option: tuple[str, str]) -> None:
    sentence = cli("audit", imported, *option, "--quiet").refused()
    assert f"{option[0]} says how to solve; name a model with --solve MODEL" in sentence
