"""The scenarios that a library holds out, played and reported as a benchmark, alone and beside another one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from env.lending import SOURCE, scenario, skeleton
from typer.testing import CliRunner

from envscaler.bench.comparison import compare_bench
from envscaler.bench.held_out import held_out_of, run_held_out
from envscaler.bench.installation import Installation, open_benchmark
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.cli.app import app
from envscaler.env import open_library
from envscaler.errors import UsageError
from envscaler.proof.run import run_prove
from envscaler.report.bench import markdown, tables_of
from envscaler.rollout import RolloutReport, RolloutSettings
from envscaler.rollout.report import RunRecord
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import Sampling

pytestmark = pytest.mark.anyio


@pytest.fixture
def library(tmp_path: Path) -> LibraryStore:
    """An environment to train on, and two held out in different splits, all scenarios proved."""
    store = LibraryStore.create(tmp_path / "library")
    for env_id, number, said in (("desk", 2, "no copy of"), ("counter", 2, "not a copy of"), ("stall", 1, "none of")):
        one = skeleton(SOURCE.replace("no copy of", said), id=env_id)
        store.write_environment(one, None, [scenario(one, n) for n in range(1, number + 1)])
    store.write_index({"made": "here"})
    store.write_splits({"train": ["desk"], "dev": ["stall"], "test": ["counter"]})
    asyncio.run(run_prove(store.path, workers=1))
    return store


async def run(library: LibraryStore, out: Path, agent: str, **more: Any) -> RolloutReport:
    options, names = more.pop("options", None), more.pop("names", ())
    settings = RolloutSettings.model_validate({"agent": agent, "out": out, **more})
    with open_library(library.path) as opened:
        return await run_held_out(opened, settings, options=options, names=names)


async def test_what_is_held_out_is_played_and_nothing_else(library: LibraryStore, tmp_path: Path) -> None:
    runs = [(await run(library, tmp_path / agent, agent)).run for agent in ("oracle", "noop", "random")]
    oracle, noop, _ = bench_report(runs).runs
    assert {trajectory.env_id for trajectory in RunStore(runs[0]).trajectories()} == {"counter", "stall"}
    assert (oracle.total.tasks, oracle.whole, list(oracle.parts)) == (3, 3, ["dev", "test"])
    assert (oracle.total.official.value, noop.total.official.value) == (1.0, 0.0)
    assert (oracle.total.further["gained"].value, noop.total.further["gained"].value) == (1.0, 0.0)
    assert (noop.total.floor, noop.total.ceiling) == (0.0, 1.0)
    assert oracle.faulty == ()


async def test_floors_are_not_known_without_proofs_and_a_solution_that_fails_is_a_faulty_task(
    library: LibraryStore, tmp_path: Path
) -> None:
    wrong = skeleton(id="kiosk")
    broken = scenario(wrong, 1)
    assert broken.solution is not None
    broken = broken.model_copy(update={"solution": broken.solution[:1]})
    library.write_environment(wrong, None, [broken])
    library.write_splits({"train": ["desk"], "dev": ["stall"], "test": ["counter", "kiosk"]})
    (card,) = bench_report([(await run(library, tmp_path / "before", "noop")).run]).runs
    assert card.parts["test"].floor is None
    await run_prove(library.path, workers=1)
    (card,) = bench_report([(await run(library, tmp_path / "before", "noop")).run]).runs
    assert card.faulty == (f"kiosk/{broken.id}",)
    assert card.parts["test"].ceiling == pytest.approx(2 / 3)
    assert card.without_faulty.ceiling == 1.0


async def test_a_part_a_scenario_and_the_first_of_each_part_can_be_played_alone(
    library: LibraryStore, tmp_path: Path
) -> None:
    _, installed = held_out_of(library)
    name = installed.tasks[-1].id
    part = await run(library, tmp_path / "part", "noop", env_ids=("test",))
    first = await run(library, tmp_path / "first", "noop", scenarios_per_env=1)
    named = await run(library, tmp_path / "named", "noop", names=(name,))
    assert (part.played, first.played, named.played) == (2, 2, 1)
    text = markdown(bench_report([named.run]))
    assert "not the whole benchmark" in text
    for wrong in ({"env_ids": ("train",)}, {"names": ("desk/nothing",)}, {"options": {"mode": "shouted"}}):
        with pytest.raises(UsageError, match=r"no part 'train'|no task|mode is 'shouted'"):
            await run(library, tmp_path / "wrong", "noop", **wrong)


async def test_runs_resume_are_compared_and_are_refused_after_the_library_has_changed(
    library: LibraryStore, tmp_path: Path
) -> None:
    first = (await run(library, tmp_path / "a", "noop", names=(held_out_of(library)[1].tasks[0].id,))).run
    again = await run(library, tmp_path / "a", "noop")
    assert (again.resumed, again.played) == (1, 2)
    second = (await run(library, tmp_path / "b", "oracle")).run
    told = compare_bench(first, second)
    assert told.differences is None
    assert (told.comparison.difference.value, told.comparison.environments) == (1.0, 2)
    changed = library.read_environment("stall")
    library.replace_scenarios("stall", [scenario(changed, n) for n in (1, 2)])
    third = (await run(library, tmp_path / "c", "oracle")).run
    with pytest.raises(UsageError, match="tasks is"):
        compare_bench(first, third)
    with pytest.raises(UsageError, match="benchmark"):
        await run(library, tmp_path / "a", "noop")
    (card,) = bench_report([first]).runs
    assert card.total.floor is None
    assert (card.total.tasks, card.whole, list(card.parts)) == (3, None, ["all"])


async def test_a_library_that_holds_nothing_out_is_no_benchmark(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "library")
    store.write_environment(skeleton(id="desk"))
    store.write_index({"made": "here"})
    with pytest.raises(UsageError, match="holds out no scenarios"):
        held_out_of(store)


async def test_several_benchmarks_stand_in_one_table_with_how_they_were_played(
    library: LibraryStore, lamps: Installation, tmp_path: Path
) -> None:
    runs = []
    for name, temperature in (("plain", 0.7), ("other", 1.0)):
        for place, report in (
            ("bfcl", await run_bench(lamps, RolloutSettings(agent="oracle", out=tmp_path / f"bfcl-{name}"))),
            ("held", await run(library, tmp_path / f"held-{name}", "noop")),
        ):
            store = RunStore(report.run)
            record = store.read_run(RunRecord)
            assert record is not None
            settings = record.settings.model_copy(update={"agent": "model"})
            sampling = Sampling(temperature=temperature if place == "bfcl" else 0.7)
            as_model = {"settings": settings, "sampling": sampling, "models": {"agent": "Small"}}
            store.write_run(record.model_copy(update=as_model))
            runs.append(store.path)
    table = next(tables_of(bench_report(runs)))
    assert table.head == ("model", "played with", "BFCL-MT", "held-out")
    cold, warm = (f"non-thinking, temperature {value}, native calls" for value in (0.7, 1.0))
    solved, idle = "100.00 [100.0, 100.0]", "0.00 [0.0, 0.0]"
    # Two runs of one player in the second column need two rows.
    assert [row[1:] for row in table.rows if row[0] == "Small"] == [
        (cold, solved, idle),
        (cold, "–", idle),
        (warm, solved, "–"),
    ]
    assert [row[2:] for row in table.rows if row[0].startswith("  ")] == [("0.00", "0.00"), ("100.00", "100.00")]
    assert ("Qwen3-8B (published)", "", "28.88", "–") in table.rows


def test_the_command_line_plays_a_library_and_refuses_what_does_not_fit(library: LibraryStore, tmp_path: Path) -> None:
    runner = CliRunner()
    out = tmp_path / "run"
    words = ["bench", "run", "held-out", "--library", str(library.path), "--agent", "oracle", "--out", str(out), "-q"]
    done = runner.invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "3 episodes played now" in done.output
    for words in (["show", str(out)], ["scores", str(out)], ["bench", "report", str(out)]):
        assert runner.invoke(app, words).exit_code == 0
    for words in (["held-out"], ["bfcl", "--library", str(library.path)]):
        done = runner.invoke(app, ["bench", "run", *words, "--agent", "noop"])
        assert done.exit_code == 2
        assert "--library" in done.output
    assert runner.invoke(app, ["bench", "install", "held-out"]).exit_code == 2
    with pytest.raises(UsageError, match="nothing to be installed"):
        open_benchmark("held-out")
