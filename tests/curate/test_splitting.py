"""Splits: by environment, stable, copies together, and nothing held out ever moves back."""

from __future__ import annotations

from pathlib import Path

import pytest
from env.lending import SOURCE, scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.curate import parse_ratio, split_library
from envscaler.curate.splitting import _drawn, _quotas
from envscaler.errors import UsageError
from envscaler.store import LibraryStore, splits_of


def program(number: int) -> str:
    """A program of a structure of its own: so many more tools."""
    more = "".join(
        f"\n    def extra_{k}(self, value: int) -> Dict[str, Any]:\n        self.extra_{k}_seen = value\n"
        f"        return {{'success': True}}\n"
        for k in range(number)
    )
    return SOURCE + more


def add(store: LibraryStore, numbers: range) -> None:
    for number in numbers:
        effects = {"find_books": "query", "lend_book": "update", "return_book": "update"}
        effects |= {f"extra_{k}": "update" for k in range(number)}
        made = skeleton(program(number), effects, id=f"env-{number:02d}")
        store.write_environment(made, None, [scenario(made)])
    store.write_index({})


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    store = LibraryStore.create(tmp_path / "library")
    add(store, range(10))
    return store


def test_environments_are_split_by_share_and_written_into_the_library(library: LibraryStore) -> None:
    report = split_library(library.path, {"train": 0.8, "test": 0.2})
    assert (len(report.splits["train"]), len(report.splits["test"]), report.added, report.kept) == (8, 2, 10, 0)
    assert splits_of(library) == {env_id: name for name, ids in report.splits.items() for env_id in ids}
    for env_id, split in splits_of(library).items():
        assert [one.split for one in library.scenarios(env_id)] == [split]


def test_the_same_seed_draws_the_same_and_another_one_something_else(library: LibraryStore) -> None:
    drawn = {
        seed: split_library(library.path, {"train": 0.5, "test": 0.5}, seed=seed, redraw=True).splits["test"]
        for seed in (0, 1, 2, 0)
    }
    assert split_library(library.path, {"train": 0.5, "test": 0.5}, seed=0, redraw=True).splits["test"] == drawn[0]
    assert len(set(drawn.values())) == 3


def test_environments_that_come_later_move_nothing(library: LibraryStore) -> None:
    ratio = {"train": 0.8, "test": 0.2}
    before = split_library(library.path, ratio).splits
    add(library, range(10, 20))
    after = split_library(library.path, ratio, seed=9)
    assert set(before["train"]) <= set(after.splits["train"])
    assert set(before["test"]) <= set(after.splits["test"])
    assert (len(after.splits["test"]), after.added, after.kept) == (4, 10, 10)


def test_a_copy_of_what_is_held_out_is_held_out_with_it(library: LibraryStore) -> None:
    before = split_library(library.path, {"train": 0.8, "test": 0.2}).splits
    original = library.read_environment(before["test"][0])
    copy = original.model_copy(update={"id": "a-copy", "source": original.source.replace("There is", "Where is")})
    library.write_environment(copy)
    assert "a-copy" in split_library(library.path, {"train": 0.8, "test": 0.2}).splits["test"]


def test_a_split_that_is_not_named_any_more_is_not_dropped_silently(library: LibraryStore) -> None:
    split_library(library.path, {"train": 0.8, "test": 0.2})
    with pytest.raises(UsageError, match="has the split 'test'"):
        split_library(library.path, {"train": 0.8, "dev": 0.2})
    assert set(split_library(library.path, {"train": 0.8, "dev": 0.2}, redraw=True).splits) == {"train", "dev"}
    assert "test" not in splits_of(library).values()


def test_large_and_small_environments_are_in_every_split(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "sizes")
    add(store, range(18))
    test = split_library(store.path, {"train": 0.5, "test": 0.5}).splits["test"]
    small = sum(int(env_id[-2:]) + 3 < 12 for env_id in test)
    assert small in (4, 5)


@pytest.mark.parametrize(
    "text", ["", "train", "train=0.9", "train=x,test=1", "train=1,train=1", "a=0,b=1", "a=inf,b=1"]
)
def test_a_ratio_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--ratio"):
        parse_ratio(text)


def test_shares_are_made_to_add_up() -> None:
    assert parse_ratio("train=9, test=1") == {"train": 0.9, "test": 0.1}


RATIOS = st.dictionaries(st.sampled_from(["train", "test", "dev", "extra"]), st.floats(0.01, 1), min_size=2).map(
    lambda shares: {name: share / sum(shares.values()) for name, share in shares.items()}
)


@given(RATIOS, st.data())
def test_every_split_has_its_share_and_nobody_is_left_over(ratio: dict[str, float], data: st.DataObject) -> None:
    number = data.draw(st.integers(len(ratio), 60))
    quotas = _quotas(number, ratio)
    assert sum(quotas.values()) == number
    assert min(quotas.values()) >= 1
    groups = [(f"e{n}",) for n in range(number)]
    before = data.draw(st.dictionaries(st.sampled_from([group[0] for group in groups]), st.sampled_from(sorted(ratio))))
    chosen = _drawn(groups, ratio, before)
    assert chosen.keys() | before.keys() == {group[0] for group in groups}
    assert not chosen.keys() & before.keys()
    if not before:
        assert {name: list(chosen.values()).count(name) for name in ratio} == quotas
