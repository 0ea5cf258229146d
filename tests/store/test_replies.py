"""The journal of replies: what a kill leaves, what is dropped, and that files do not pile up."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.store import ReplyJournal


def everything(_: str) -> bool:
    return True


def reopened(folder: Path) -> ReplyJournal:
    journal = ReplyJournal(folder)
    journal.load(everything)
    return journal


def test_replies_of_a_killed_process_are_given_once_in_their_order(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path / "r")
    for number in range(3):
        journal.append("a", {"n": number})
        journal.append("b", number)
    again = reopened(tmp_path / "r")  # the first one was never closed
    assert len(again) == 2
    assert again.take("a") == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert again.take("a") == []
    assert again.take("c") == []
    again.append("a", {"n": 3})
    assert reopened(tmp_path / "r").take("a") == [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 3}]


def test_a_torn_line_costs_one_reply(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path / "r")
    journal.append("a", "first")
    journal.append("a", "second")
    (file,) = (tmp_path / "r").iterdir()
    file.write_bytes(file.read_bytes()[:-5])
    again = reopened(tmp_path / "r")
    assert again.take("a") == ["first"]
    again.append("a", "other")
    assert reopened(tmp_path / "r").take("a") == ["first", "other"]


def test_nothing_is_left_when_all_is_over(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path / "r")
    journal.append("a", 1)
    journal.append("b", 2)
    journal.drop("a")
    journal.drop("b")
    journal.close()
    journal.close()
    assert not (tmp_path / "r").exists()


def test_what_is_over_by_other_knowledge_is_dropped_on_reading(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path / "r")
    journal.append("a", 1)
    again = ReplyJournal(tmp_path / "r")
    again.load(lambda episode: episode != "a")
    again.close()
    assert not (tmp_path / "r").exists()


def test_an_episode_that_begins_anew_has_no_old_replies_even_after_a_kill(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path / "r", segment_bytes=1)
    journal.append("a", "old")
    journal.append("b", "keeps the first file")
    journal.drop("a", again=True)
    journal.append("a", "new")
    assert reopened(tmp_path / "r").take("a") == ["new"]


def test_files_go_when_their_episodes_are_over(tmp_path: Path) -> None:
    journal = ReplyJournal(tmp_path / "r", segment_bytes=200)
    most = 0
    for number in range(300):
        for step in range(3):
            journal.append(f"e{number}", {"step": step, "text": "x" * 50})
        if number:
            journal.drop(f"e{number - 1}")
        most = max(most, len(list((tmp_path / "r").iterdir())))
    assert most <= 8
    assert reopened(tmp_path / "r").take("e299") == [{"step": step, "text": "x" * 50} for step in range(3)]


Action = tuple[str, str]


@pytest.mark.parametrize("segment_bytes", [1, 150, 1 << 20])
@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["append", "drop", "again", "kill"]), st.sampled_from("abc")), max_size=30))
def test_what_is_kept_is_what_was_answered_since_the_beginning(
    segment_bytes: int, tmp_path_factory: pytest.TempPathFactory, actions: list[Action]
) -> None:
    folder = tmp_path_factory.mktemp("journal") / "r"
    journal = ReplyJournal(folder, segment_bytes=segment_bytes)
    expected: dict[str, list[int]] = {}
    over: set[str] = set()
    for number, (action, episode) in enumerate(actions):
        if action == "append" and episode not in over:
            journal.append(episode, number)
            expected.setdefault(episode, []).append(number)
        elif action == "drop":
            journal.drop(episode)
            expected.pop(episode, None)
            over.add(episode)
        elif action == "again" and episode not in over:
            journal.drop(episode, again=True)
            expected.pop(episode, None)
        elif action == "kill":
            journal = ReplyJournal(folder, segment_bytes=segment_bytes)
            journal.load(lambda key: key not in over)
    last = ReplyJournal(folder, segment_bytes=segment_bytes)
    last.load(lambda key: key not in over)
    assert {key: replies for key in "abc" if (replies := last.take(key))} == expected
