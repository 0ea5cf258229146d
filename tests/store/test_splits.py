"""Splits in library.json: written once, kept by everything that writes to the library afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.scenario import Scenario
from envscaler.skeleton import EnvDescription, EnvSkeleton, ToolSpec
from envscaler.store import LibraryStore, held_out, split_of, splits_of


def skeleton(env_id: str) -> EnvSkeleton:
    return EnvSkeleton(
        id=env_id,
        description=EnvDescription(summary="Desk", introduction=""),
        tools=(ToolSpec(name="size", description="Count.", parameters={"type": "object"}, effect="query"),),
        class_name="Desk",
        source="class Desk:\n    pass\n",
    )


def scenario(env_id: str, number: int = 0, split: str | None = None) -> Scenario:
    return Scenario(id=f"{env_id}-{number}", env_id=env_id, env_digest="", initial_state={}, task="?", split=split)


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    store = LibraryStore.create(tmp_path / "library")
    for env_id in ("a", "b", "c"):
        store.write_environment(skeleton(env_id), None, [scenario(env_id)])
    store.write_index({})
    store.write_splits({"train": ["a"], "test": ["b"]})
    return store


def test_a_written_split_stands_in_the_index_and_in_the_scenarios(library: LibraryStore) -> None:
    assert [split_of(library, env_id) for env_id in ("a", "b", "c")] == ["train", "test", None]
    assert held_out(library) == {"b"}
    assert [one.split for env_id in ("a", "b", "c") for one in library.scenarios(env_id)] == ["train", "test", None]


def test_scenarios_that_come_later_are_in_the_split_of_their_environment(library: LibraryStore) -> None:
    library.append_scenarios("b", [scenario("b", 1)])
    library.replace_scenarios("a", [scenario("a", 7)])
    assert [one.split for one in library.scenarios("b")] == ["test", "test"]
    assert [one.split for one in library.scenarios("a")] == ["train"]


def test_an_environment_that_is_made_again_stays_held_out(library: LibraryStore) -> None:
    library.remove_environment("b")
    library.write_index({"made": "again"})
    library.write_environment(skeleton("b"), None, [scenario("b", 3)])
    library.write_index({"made": "again"})
    assert split_of(library, "b") == "test"
    assert [one.split for one in library.scenarios("b")] == ["test"]


def test_an_environment_whose_scenarios_disagree_is_held_out(library: LibraryStore) -> None:
    library.append_scenarios("a", [scenario("a", 1, split="dev")])
    library.write_index({})
    assert splits_of(library) == {"a": "dev", "b": "test"}


def test_other_splits_take_the_place_of_those_before(library: LibraryStore) -> None:
    library.write_splits({"test": ["a", "c"]})
    assert splits_of(library) == {"a": "test", "c": "test"}
    assert [one.split for env_id in ("a", "b", "c") for one in library.scenarios(env_id)] == ["test", None, "test"]
    library.write_index({})
    assert splits_of(library) == {"a": "test", "c": "test"}
