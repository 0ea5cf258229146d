"""Which episodes of several runs are exported, and that each that is not is counted with its reason."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from export.episodes import PLAIN, TALK, stored, trajectory, turn, verdict
from hypothesis import given
from hypothesis import strategies as st

from envscaler.errors import StoreError, UsageError
from envscaler.export import SftFilters, export_sft
from envscaler.export.sameness import calls_mark
from envscaler.export.selection import Selection
from envscaler.export.sources import RunSource, run_sources
from envscaler.trajectory import Slip, StopReason, Trajectory, UserRecord, UserUtterance


def sample(number: int, passed: int, *, scenario: str = "s", steps: int = 1, **changes: Any) -> Trajectory:
    looks = tuple(turn(("find_books", {"title": str(index)}), number=index) for index in range(1, steps))
    return trajectory(
        id=f"{scenario}.{number}",
        scenario_id=scenario,
        sample=number,
        steps=(turn(("find_books", {"title": "0"}), told="Go."), *looks, turn(says=f"Done {number}.")),
        verdict=verdict(*(index < passed for index in range(4))),
        **changes,
    )


def kept(*runs: Path, filters: SftFilters) -> tuple[list[str], Counter[str]]:
    ids: list[str] = []
    dropped: Counter[str] = Counter()
    for _, episode, reason in Selection(run_sources(runs, None), filters, lambda *_: None).episodes():
        if reason is None:
            ids.append(episode.id)
        else:
            dropped[reason] += 1
    return ids, dropped


def test_the_best_of_each_scenario_are_those_with_most_reward_and_then_the_shortest(tmp_path: Path) -> None:
    run = stored(
        tmp_path / "run",
        sample(0, 1),
        sample(1, 4, steps=3),
        sample(2, 4, steps=2),
        sample(3, 2),
        sample(0, 0, scenario="other"),
        trajectory(id="u.0", scenario_id="u", verdict=None),
    )
    ids, dropped = kept(run, filters=SftFilters(best=1))
    assert ids == ["s.2", "other.0", "u.0"]
    assert dropped == {"not among the best 1 of its scenario": 3}
    assert kept(run, filters=SftFilters(best=2))[0] == ["s.1", "s.2", "other.0", "u.0"]


def test_an_episode_without_a_reward_is_the_last_choice(tmp_path: Path) -> None:
    unknown = trajectory(id="s.9", verdict=None)
    run = stored(tmp_path / "run", unknown, sample(0, 0, steps=9))
    assert kept(run, filters=SftFilters(best=1))[0] == ["s.0"]


def test_an_episode_that_the_format_cannot_hold_takes_no_ones_place(tmp_path: Path) -> None:
    best = trajectory(id="s.1", steps=(turn(told="Go.", says="Done.", thinks="a </think> b"),))
    run = stored(tmp_path / "run", best, sample(0, 1))
    report = export_sft(run, tmp_path / "rows.jsonl", SftFilters(best=1), format="swift")
    assert report.kept == 1
    assert report.dropped == {"reasoning that holds </think>": 1}


def test_environments_are_balanced_by_a_draw_that_a_seed_decides(tmp_path: Path) -> None:
    episodes = [
        sample(number, 4, scenario=f"{env}-{number}", env_id=env)
        for env, size in (("a", 30), ("b", 3))
        for number in range(size)
    ]
    run = stored(tmp_path / "run", *episodes)
    ids, dropped = kept(run, filters=SftFilters(per_env=5, seed=1))
    assert Counter(name.split("-")[0] for name in ids) == {"a": 5, "b": 3}
    assert dropped == {"beyond 5 of its environment": 25}
    assert kept(run, filters=SftFilters(per_env=5, seed=1))[0] == ids
    assert kept(run, filters=SftFilters(per_env=5, seed=2))[0] != ids


def test_a_draw_stays_what_it_was_for_the_episodes_that_stay(tmp_path: Path) -> None:
    episodes = [sample(0, 4, scenario=f"a-{number}") for number in range(20)]
    few = stored(tmp_path / "few", *episodes[:19])
    more = stored(tmp_path / "more", *episodes)
    one, other = (set(kept(run, filters=SftFilters(per_env=6))[0]) for run in (few, more))
    assert len(one & other) >= 5


def test_an_episode_in_two_runs_is_taken_once_whatever_it_is_numbered(tmp_path: Path) -> None:
    first = stored(tmp_path / "first", sample(0, 4), sample(1, 4))
    merged = stored(tmp_path / "merged", sample(0, 4).model_copy(update={"id": "s.7", "sample": 7}), sample(2, 4))
    ids, dropped = kept(first, merged, filters=SftFilters())
    assert ids == ["s.0", "s.1", "s.2"]
    assert dropped == {"in an earlier run too": 1}
    assert kept(first, first, filters=SftFilters())[0] == ["s.0", "s.1"]


def test_equal_samples_of_one_run_stay_unless_distinct_ones_are_asked_for(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", sample(0, 4), sample(1, 4), sample(2, 4, steps=2))
    assert len(kept(run, filters=SftFilters())[0]) == 3
    ids, dropped = kept(run, filters=SftFilters(distinct=True))
    assert ids == ["s.0", "s.2"]
    assert dropped == {"the same calls as an earlier one": 1}


def test_comparing_and_deciding_one_by_one_come_to_the_same(tmp_path: Path) -> None:
    episodes = [sample(number, number % 5, steps=1 + number % 3) for number in range(12)]
    run = stored(tmp_path / "run", *episodes, trajectory(stop=StopReason.INFRASTRUCTURE))
    alone = SftFilters(reward_at_least=0.5, distinct=True)
    compared = alone.model_copy(update={"best": 100, "per_env": 100})
    assert kept(run, filters=alone) == kept(run, filters=compared)


SLIP = Slip(kind="unclosed_tag")


@pytest.mark.parametrize(
    ("changes", "filters", "reason"),
    [
        ({"masked": "the user gave it away"}, SftFilters(), "masked: the user gave it away"),
        ({"masked": "x"}, SftFilters(masked=True), None),
        ({"steps": (PLAIN[0].model_copy(update={"slips": (SLIP,)}), *PLAIN[1:])}, SftFilters(), None),
        (
            {"steps": (PLAIN[0].model_copy(update={"slips": (SLIP,)}), *PLAIN[1:])},
            SftFilters(slips=False),
            "a slip that was not put right",
        ),
        (
            {
                "steps": (
                    PLAIN[0].model_copy(update={"slips": (SLIP.model_copy(update={"repaired": True}),)}),
                    *PLAIN[1:],
                )
            },
            SftFilters(slips=False),
            None,
        ),
        (
            {"user": UserRecord(model="u", utterances=(UserUtterance(text="x", slips=(SLIP,)),))},
            SftFilters(user_slips=False),
            "a slip of the simulated user",
        ),
        ({"user": UserRecord(model="u")}, SftFilters(user_slips=False), None),
        ({"stop": StopReason.BUDGET}, SftFilters(finished=False, well_formed=False, masked=True), "cut short: budget"),
    ],
)
def test_masks_and_slips_drop_by_name(changes: dict[str, Any], filters: SftFilters, reason: str | None) -> None:
    assert filters.fault(trajectory(**changes)) == reason


def test_a_run_that_was_changed_meanwhile_is_not_mixed_up(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", sample(0, 4), sample(1, 2))
    file = run / "trajectories.jsonl"

    def rearranging(source: RunSource, episode: Trajectory) -> None:
        if episode.sample == 1:
            file.write_text("".join(reversed(file.read_text(encoding="utf-8").splitlines(keepends=True))))

    selection = Selection(run_sources([run], None), SftFilters(best=2), rearranging)
    with pytest.raises(StoreError, match="changed while it was exported"):
        list(selection.episodes())


def test_no_run_at_all_is_wrong_use() -> None:
    with pytest.raises(UsageError, match="at least one run"):
        run_sources([], None)


# -- the same calls -----------------------------------------------------------------------------------------


def lending(loan: str, day: str, book: str = "B1") -> Trajectory:
    seen = json.dumps({"success": True, "data": {"loan_id": loan}})
    return trajectory(
        steps=(
            turn(("lend_book", {"book_id": book, "member": "Ann", "due": f"{day}T09:00:00"}), told="Lend.", sees=seen),
            turn(("return_book", {"loan_id": loan})),
            turn(says="Done."),
        )
    )


def test_created_ids_and_times_make_no_other_calls() -> None:
    assert calls_mark(lending("L-93ab", "2025-01-06")) == calls_mark(lending("L-77c0", "2026-11-30"))


def test_another_book_makes_other_calls() -> None:
    assert calls_mark(lending("L-1", "2025-01-06")) != calls_mark(lending("L-1", "2025-01-06", book="B2"))


def test_ids_that_were_only_looked_up_are_not_exchangeable() -> None:
    def looking(book: str) -> Trajectory:
        found = json.dumps({"data": [{"book_id": "B1"}, {"book_id": "B2"}]})
        return trajectory(
            steps=(
                turn(("find_books", {}), told="Lend.", sees=found),
                turn(("lend_book", {"book_id": book, "member": "Ann"}), sees="{}"),
                turn(says="Done."),
            )
        )

    assert calls_mark(looking("B1")) != calls_mark(looking("B2"))


@given(st.lists(st.text("abcXYZ019", min_size=1, max_size=6), min_size=3, max_size=3, unique=True))
def test_which_of_two_created_ids_is_used_matters_and_what_they_are_does_not(names: list[str]) -> None:
    def returning(first: str, second: str, which: int) -> Trajectory:
        loans = [f"loan-{first}", f"loan-{second}"]
        made = tuple(
            turn(
                ("lend_book", {"book_id": book, "member": "Ann"}),
                sees=json.dumps({"loan_id": loan}),
                told="Lend." if book == "B1" else None,
            )
            for book, loan in zip(("B1", "B2"), loans, strict=True)
        )
        return trajectory(steps=(*made, turn(("return_book", {"loan_id": loans[which]})), turn(says="Done.")))

    one, two, three = names
    assert calls_mark(returning(one, two, 0)) == calls_mark(returning(two, three, 0))
    assert calls_mark(returning(one, two, 0)) != calls_mark(returning(one, two, 1))


def test_what_was_said_and_thought_is_no_call() -> None:
    other = tuple(
        step.model_copy(update={"assistant": step.assistant.model_copy(update={"reasoning": "else"})}) for step in TALK
    )
    assert calls_mark(trajectory(steps=TALK)) == calls_mark(trajectory(steps=other))
