"""What the data card says is true of the file beside it, and the same inputs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest
from env.lending import scenario, skeleton
from export.episodes import PARALLEL, PLAIN, TALK, stored, trajectory, verdict
from hypothesis import given
from hypothesis import strategies as st

from envscaler.export import SFT_FORMATS, SftFilters, export_rl, export_sft
from envscaler.export.card import Lengths
from envscaler.skeleton import Origin
from envscaler.store import LibraryStore
from envscaler.trajectory import StopReason


def test_counts_are_those_of_the_file(tmp_path: Path) -> None:
    run = stored(
        tmp_path / "run",
        trajectory(),
        trajectory(id="u", steps=PARALLEL, model=None, agent="oracle", verdict=verdict(True, False)),
        trajectory(id="v", stop=StopReason.STEP_LIMIT),
        trajectory(id="w", stop=StopReason.INFRASTRUCTURE, verdict=None),
    )
    card = export_sft(run, tmp_path / "rows.jsonl", format="trl-prompt-completion").card
    lines = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    assert (card.rows, card.episodes) == (len(lines), 2) == (5, 2)
    assert card.played_by == {"m": 3, "oracle": 2}
    assert card.stops == {"finished": 2}
    assert card.modes == {"non-conversation": 2}
    assert card.dropped == {"cut short: infrastructure": 1, "not finished: step_limit": 1}
    assert card.rewards["fraction"] == 0.75
    assert {env_id: part.rows for env_id, part in card.environments.items()} == {"lending-desk": 5}
    (of_run,) = card.runs
    assert (of_run.id, of_run.episodes, of_run.kept) == ("run", 4, 2)
    assert card.lengths["turns of the agent in an episode"].total == len(PLAIN) + len(PARALLEL)
    assert card.lengths["calls in an episode"].total == 4
    assert card.lengths["characters in a row"].total == sum(len(line) + 1 for line in lines)
    assert card.lengths["tokens in a row"].count == 5


def test_files_are_named_by_their_digests(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory())
    card = export_sft(run, tmp_path / "rows.jsonl").card
    assert card.files == {"rows.jsonl": hashlib.sha256((tmp_path / "rows.jsonl").read_bytes()).hexdigest()}
    assert card.runs[0].trajectories == hashlib.sha256((run / "trajectories.jsonl").read_bytes()).hexdigest()


@pytest.mark.parametrize("name", [name for name, entry in SFT_FORMATS.items() if not entry.tokens])
def test_the_same_inputs_give_the_same_bytes_anywhere(name: str, tmp_path: Path) -> None:
    file = "rows.parquet" if SFT_FORMATS[name].parquet_only else "rows.jsonl"
    written = []
    for place in ("one", "other"):
        run = stored(tmp_path / place / "run", trajectory(), trajectory(id="u", steps=TALK))
        filters = SftFilters(best=1, per_env=3, distinct=True)
        report = export_sft(run, tmp_path / place / "out" / file, filters, format=name)
        written.append({path.name: path.read_bytes() for path in report.files})
    assert written[0] == written[1]
    assert f"{file}.card.json" in written[0]


def test_origins_are_told_as_far_as_the_library_says(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    for env_id, origin, released in (
        ("a", Origin(models={"builder": "big-model"}), None),
        ("b", Origin(models={"builder": "big-model"}), None),
        ("c", Origin(source="environments.json"), {"fields": {}}),
    ):
        environment = skeleton(id=env_id, origin=origin, released=released)
        store.write_environment(environment, None, [scenario(environment)])
    store.write_index({"commands": [{"command": "synth", "source": "tasks.jsonl"}]})
    card = export_rl(store, tmp_path / "rows.jsonl").card
    assert [(part.environments, part.source, part.models, part.licence) for part in card.origins] == [
        (2, "task texts of tasks.jsonl", ("big-model",), None),
        (1, "environments.json", (), "MIT, (c) 2026 RUC-NLPIR: the paper's authors' published data"),
    ]


def test_an_environment_that_left_its_library_does_not_end_the_export(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    store.write_index({})
    run = stored(store.path / "rollouts" / "run", trajectory())
    (origin,) = export_sft(run, tmp_path / "rows.jsonl").card.origins
    assert "no longer in its library" in origin.source


def test_the_card_of_scenarios_changes_with_any_of_them(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment)])
    first = export_rl(store, tmp_path / "rows.jsonl").card
    shutil.rmtree(tmp_path / "L" / ".cache")
    assert export_rl(store, tmp_path / "rows.jsonl").card == first
    store.replace_scenarios(environment.id, [scenario(environment, task="Another task.")])
    second = export_rl(store, tmp_path / "rows.jsonl").card
    assert set(first.libraries) == set(second.libraries) == {"L"}
    assert first.libraries != second.libraries


def test_no_wall_clock_time_and_no_folder_is_in_a_card(tmp_path: Path) -> None:
    export_sft(stored(tmp_path / "run", trajectory()), tmp_path / "rows.jsonl")
    text = (tmp_path / "rows.jsonl.card.json").read_text(encoding="utf-8")
    assert str(tmp_path) not in text
    assert json.loads(text)["versions"].keys() == {"envscaler", "schema"}


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=50))
def test_lengths_are_of_values_that_are_there_in_order(values: list[int]) -> None:
    lengths = Lengths.of(values)
    assert lengths is not None
    assert {lengths.smallest, lengths.median, lengths.p90, lengths.largest} <= set(values)
    assert lengths.smallest <= lengths.median <= lengths.p90 <= lengths.largest
    assert (lengths.count, lengths.total) == (len(values), sum(values))
    assert sum(value <= lengths.median for value in values) * 2 >= len(values)


def test_nothing_has_no_lengths() -> None:
    assert Lengths.of([]) is None
