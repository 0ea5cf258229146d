"""Rows of scenarios: the prompt of collection, byte for byte, and everything that opens the scenario."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from env.lending import scenario, skeleton

from envscaler.env import open_library
from envscaler.errors import StoreError, UsageError
from envscaler.export import RL_FORMATS, RlFilters, export_rl
from envscaler.export.rl_formats import REFERENCE
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import LibraryStore, RunStore


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    store = LibraryStore.create(tmp_path / "L")
    for env_id in ("desk", "other"):
        environment = skeleton(id=env_id)
        scenarios = [scenario(environment, number) for number in range(1, 4)]
        store.write_environment(environment, None, scenarios)
    store.write_index({})
    return store


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def prompt_of(name: str, row: dict[str, Any]) -> list[dict[str, str]]:
    found: list[dict[str, str]] = row["responses_create_params"]["input"] if name == "nemo-gym" else row["prompt"]
    return found


@pytest.mark.parametrize("name", RL_FORMATS)
def test_the_prompt_is_byte_for_byte_the_one_that_episodes_are_collected_with(
    name: str, library: LibraryStore, tmp_path: Path
) -> None:
    with open_library(library.path) as opened:
        played = asyncio.run(run_rollout(opened, RolloutSettings(agent="oracle", out=tmp_path / "run")))
    report = export_rl(library, tmp_path / "rows.jsonl", format=name)
    episodes = {episode.scenario_id: episode for episode in RunStore(played.run).trajectories()}
    written = rows(tmp_path / "rows.jsonl")
    assert report.kept == len(written) == 6
    for row in written:
        reference = row["extra_info"] if name == "verl" else row
        episode = episodes[reference["scenario_id"]]
        told = episode.steps[0].user
        assert told is not None
        assert prompt_of(name, row) == [
            {"role": "system", "content": episode.system_prompt},
            {"role": "user", "content": told.content},
        ]
        assert (reference["env_digest"], reference["scenario_digest"]) == (episode.env_digest, episode.scenario_digest)


@pytest.mark.parametrize("name", RL_FORMATS)
def test_every_row_says_which_scenario_it_is_and_where(name: str, library: LibraryStore, tmp_path: Path) -> None:
    export_rl(library, tmp_path / "rows.jsonl", format=name, library_path="/data/L")
    for row in rows(tmp_path / "rows.jsonl"):
        reference = row["extra_info"] if name == "verl" else row
        assert set(REFERENCE) <= set(reference)
        assert reference["library"] == "/data/L"
    export_rl(library, tmp_path / "rows.jsonl", format=name)
    row = rows(tmp_path / "rows.jsonl")[0]
    assert (row["extra_info"] if name == "verl" else row)["library"] == str(library.path.resolve())


def test_trl_rows_choose_the_environment_by_its_id(library: LibraryStore, tmp_path: Path) -> None:
    export_rl(library, tmp_path / "rows.jsonl", format="trl")
    assert [row["environment"] for row in rows(tmp_path / "rows.jsonl")] == ["desk"] * 3 + ["other"] * 3


def test_verl_rows_have_what_its_dataset_and_agent_loop_look_for(library: LibraryStore, tmp_path: Path) -> None:
    export_rl(library, tmp_path / "rows.jsonl", format="verl")
    written = rows(tmp_path / "rows.jsonl")
    assert [row["extra_info"]["index"] for row in written] == list(range(6))
    assert {row["agent_name"] for row in written} == {"envscaler"}
    assert set(written[0]) == {"data_source", "agent_name", "prompt", "ability", "reward_model", "extra_info"}


def test_nemo_gym_tools_are_flat_functions_with_their_schemas(library: LibraryStore, tmp_path: Path) -> None:
    export_rl(library, tmp_path / "rows.jsonl", format="nemo-gym")
    environment = library.read_environment("desk")
    tools = rows(tmp_path / "rows.jsonl")[0]["responses_create_params"]["tools"]
    assert [tool["name"] for tool in tools] == [tool.name for tool in environment.tools]
    assert [tool["parameters"] for tool in tools] == [tool.parameters for tool in environment.tools]
    assert {(tool["type"], tool["strict"]) for tool in tools} == {("function", False)}


def test_only_the_tools_that_a_scenario_shows_are_in_its_row(library: LibraryStore, tmp_path: Path) -> None:
    environment = library.read_environment("desk")
    library.replace_scenarios("desk", [scenario(environment, 1, tools=("lend_book", "find_books"))])
    export_rl(library, tmp_path / "rows.jsonl", format="skyrl", env_ids=["desk"])
    (row,) = rows(tmp_path / "rows.jsonl")
    assert [tool["function"]["name"] for tool in json.loads(row["tools"])] == ["find_books", "lend_book"]


@pytest.mark.parametrize("name", RL_FORMATS)
def test_parquet_holds_the_rows_of_the_lines(name: str, library: LibraryStore, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")
    report = export_rl(library, tmp_path / "rows.jsonl", format=name, parquet=True)
    table = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    if name == "nemo-gym":
        table = [{**row, "responses_create_params": json.loads(row["responses_create_params"])} for row in table]
    assert table == rows(tmp_path / "rows.jsonl")
    assert [path.name for path in report.files] == ["rows.jsonl", "rows.parquet", "rows.jsonl.card.json"]


def test_scenarios_that_cannot_be_rewarded_or_are_stale_are_dropped_by_name(
    library: LibraryStore, tmp_path: Path
) -> None:
    environment = library.read_environment("desk")
    library.replace_scenarios(
        "desk",
        [
            scenario(environment, 1, checks=()),
            scenario(environment, 2, env_digest="old"),
            scenario(environment, 3, user_profile=None),
        ],
    )
    report = export_rl(library, tmp_path / "rows.jsonl", RlFilters(mode="conversation"), env_ids=["desk"])
    assert report.kept == 0
    assert report.dropped == {
        "made for another version of the environment": 1,
        "no checks, and so no reward": 1,
        "no user profile to converse with": 1,
    }


def test_a_conversation_begins_with_what_the_user_says_first(library: LibraryStore, tmp_path: Path) -> None:
    export_rl(library, tmp_path / "rows.jsonl", RlFilters(mode="conversation"))
    row = rows(tmp_path / "rows.jsonl")[0]
    assert row["prompt"][1]["content"] == "Hello, I want to borrow a book."
    assert row["mode"] == "conversation"


def test_scenarios_of_runs_are_those_that_were_played(library: LibraryStore, tmp_path: Path) -> None:
    with open_library(library.path) as opened:
        settings = RolloutSettings(agent="noop", scenarios_per_env=2, out=library.path / "rollouts" / "noop")
        played = asyncio.run(run_rollout(opened, settings))
    run = RunStore(played.run)
    export_rl(run, tmp_path / "rows.jsonl")
    assert [row["scenario_id"] for row in rows(tmp_path / "rows.jsonl")] == [
        episode.scenario_id for episode in run.trajectories()
    ]
    environment = library.read_environment("desk")
    library.replace_scenarios("desk", [scenario(environment, 1)])
    assert export_rl([run, run], tmp_path / "rows.jsonl").dropped == {"no longer in the library": 1}


def test_what_is_held_out_is_left_out_and_exported_by_name_only(library: LibraryStore, tmp_path: Path) -> None:
    drawn = "other"
    library.write_splits({"train": ["desk"], "test": [drawn]})
    report = export_rl(library, tmp_path / "rows.jsonl")
    assert set(report.card.environments) == {"desk", "other"} - {drawn}
    assert report.dropped == {"held out: test": 3}
    assert "held out from training" in report.notes[0]
    report = export_rl(library, tmp_path / "rows.jsonl", split="test")
    assert set(report.card.environments) == {drawn}
    assert {row["split"] for row in rows(tmp_path / "rows.jsonl")} == {"test"}


def test_a_draw_of_scenarios_is_that_of_its_seed(library: LibraryStore, tmp_path: Path) -> None:
    report = export_rl(library, tmp_path / "rows.jsonl", RlFilters(per_env=1, seed=3))
    first = (tmp_path / "rows.jsonl").read_bytes()
    assert report.dropped == {"beyond 1 of its environment": 4}
    export_rl(library, tmp_path / "rows.jsonl", RlFilters(per_env=1, seed=3))
    assert (tmp_path / "rows.jsonl").read_bytes() == first


def test_what_is_not_there_is_told(library: LibraryStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no environment 'nowhere'"):
        export_rl(library, tmp_path / "rows.jsonl", env_ids=["nowhere"])
    with pytest.raises(StoreError, match="no such library"):
        export_rl(tmp_path / "nowhere", tmp_path / "rows.jsonl")
    with pytest.raises(UsageError, match="nemo-gym"):
        export_rl(library, tmp_path / "rows.jsonl", format="gym")
    alone = RunStore(tmp_path / "run")
    with pytest.raises(UsageError, match="not at hand"):
        export_rl(alone, tmp_path / "rows.jsonl")
