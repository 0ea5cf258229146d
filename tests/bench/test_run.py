from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from envscaler.bench.comparison import compare_bench
from envscaler.bench.installation import Installation
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.cli.app import app
from envscaler.errors import UsageError
from envscaler.report.bench import markdown, page
from envscaler.rollout import RolloutReport, RolloutSettings
from envscaler.rollout.report import RunRecord
from envscaler.store import RunStore

TASKS = 5


async def run(lamps: Installation, out: Path, agent: str, **more: Any) -> RolloutReport:
    options = more.pop("options", None)
    settings = RolloutSettings.model_validate({"agent": agent, "out": out, **more})
    return await run_bench(lamps, settings, options=options)


def line(text: str, name: str) -> list[str]:
    """The cells of the first row of a Markdown table that begins with a name."""
    row = next(row for row in text.splitlines() if row.startswith(f"| {name} |"))
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.anyio
async def test_recorded_solutions_pass_and_nothing_and_chance_do_not(lamps: Installation, tmp_path: Path) -> None:
    runs = [(await run(lamps, tmp_path / agent, agent)).run for agent in ("oracle", "noop", "random")]
    oracle, noop, chance = bench_report(runs).runs
    assert oracle.total.official.value == 1.0
    assert oracle.violations == {}
    assert noop.total.official.value == 0.0
    assert noop.total.tasks == chance.total.tasks == TASKS
    assert (noop.total.floor, noop.total.ceiling) == (0.0, 1.0)
    assert chance.calls > 0


@pytest.mark.anyio
async def test_a_run_that_is_there_in_part_is_continued_and_ends_as_if_played_at_once(
    lamps: Installation, tmp_path: Path
) -> None:
    whole = await run(lamps, tmp_path / "whole", "random", samples=2)
    part = await run(lamps, tmp_path / "part", "random", samples=1, scenarios_per_env=1)
    rest = await run(lamps, tmp_path / "part", "random", samples=2)
    assert (part.played, rest.resumed, rest.played) == (4, 4, 2 * TASKS - 4)
    lines = [[one.model_dump() for one in RunStore(report.run).trajectories()] for report in (whole, rest)]
    for episode in (*lines[0], *lines[1]):
        for step in episode["steps"]:
            step.pop("latency_s")
    assert lines[0] == lines[1]


@pytest.mark.anyio
async def test_a_folder_with_a_run_of_other_options_is_refused(lamps: Installation, tmp_path: Path) -> None:
    await run(lamps, tmp_path / "run", "noop", scenarios_per_env=1)
    with pytest.raises(UsageError, match="benchmark"):
        await run(lamps, tmp_path / "run", "noop", options={"withheld": "execute"})
    for wrong in ({"withheld": "maybe"}, {"unheard": "of"}):
        with pytest.raises(UsageError, match=r"give one of|has no option"):
            await run(lamps, tmp_path / "other", "noop", options=wrong)
    with pytest.raises(UsageError, match="no part 'live'"):
        await run(lamps, tmp_path / "other", "noop", env_ids=("live",))


@pytest.mark.anyio
async def test_runs_are_compared_only_under_the_same_settings_unless_forced(
    lamps: Installation, tmp_path: Path
) -> None:
    first = (await run(lamps, tmp_path / "a", "noop")).run
    second = (await run(lamps, tmp_path / "b", "oracle")).run
    other = (await run(lamps, tmp_path / "c", "oracle", step_limit=9)).run
    told = compare_bench(first, second)
    assert told.differences is None
    assert told.comparison.difference.value == 1.0
    assert told.comparison.environments == 2  # variants of one task are no independent tasks
    with pytest.raises(UsageError, match="step_limit is 168 in the first and 9 in the second"):
        compare_bench(first, other)
    assert "step_limit" in str(compare_bench(first, other, force=True).differences)


@pytest.mark.anyio
async def test_sampling_is_a_setting_that_has_to_be_equal(lamps: Installation, tmp_path: Path) -> None:
    folders = []
    for name, temperature in (("cold", 0.0), ("warm", 0.7)):
        store = RunStore((await run(lamps, tmp_path / name, "oracle")).run)
        record = store.read_run(RunRecord)
        assert record is not None
        settings = record.settings.model_copy(update={"agent": "model"})
        sampling = record.sampling.model_copy(update={"temperature": temperature})
        store.write_run(
            record.model_copy(update={"settings": settings, "sampling": sampling, "models": {"agent": name}})
        )
        folders.append(store.path)
    with pytest.raises(UsageError, match=r"sampling is .*0.0.* in the first and .*0.7.* in the second"):
        compare_bench(folders[0], folders[1])
    report = bench_report(folders)
    assert "sampling" in report.differences[str(folders[1])]
    assert "cannot be compared" in markdown(report)


@pytest.mark.anyio
async def test_a_report_has_floors_ceilings_published_results_and_what_is_wrong(
    lamps: Installation, tmp_path: Path
) -> None:
    report = bench_report([(await run(lamps, tmp_path / "run", "noop", samples=3)).run])
    text = markdown(report)
    assert line(text, "noop")[-1].startswith("0.00")
    assert line(text, "&nbsp;&nbsp;recorded solutions")[-1] == "100.00"
    assert line(text, "Qwen3-8B (published)")[-1] == "28.88"
    assert "arXiv 2601.05808" in text
    assert report.runs[0].repeats == (0.0, 0.0, 0.0)
    assert set(report.runs[0].total.pass_all) == {1, 2, 3}
    assert "<table>" in page(report)


@pytest.mark.anyio
async def test_runs_of_the_same_player_are_told_apart_by_their_folders(lamps: Installation, tmp_path: Path) -> None:
    runs = [(await run(lamps, tmp_path / name, "noop", scenarios_per_env=1)).run for name in ("one", "two")]
    text = markdown(bench_report(runs))
    assert line(text, "noop (one)")
    assert line(text, "noop (two)")
    assert "4 Base" not in text
    assert "tasks: 1 Base, 1 Miss-Func, 1 Miss-Param, 1 Long-Context, not the whole benchmark" in text


def test_the_command_line_plays_reports_and_compares(lamps: Installation, tmp_path: Path) -> None:
    runner = CliRunner()

    def said(*words: str, code: int = 0) -> str:
        done = runner.invoke(app, ["bench", *words])
        assert done.exit_code == code, done.output
        return done.output

    assert "installed" in said("list")
    runs = [str(tmp_path / agent) for agent in ("noop", "oracle")]
    for folder in runs:
        assert "5 episodes played now" in said("run", "bfcl", "--agent", Path(folder).name, "--out", folder, "--quiet")
    assert "100.00" in said("report", *runs, "--out", str(tmp_path / "report"))
    assert {file.name for file in (tmp_path / "report").iterdir()} == {"report.json", "report.md", "report.html"}
    assert "report.html" in said("report", *runs, "--out", str(tmp_path / "report"))
    assert "5 better, 0 worse" in said("compare", *runs)
    for words in (["show", runs[1]], ["show", runs[1], "0"], ["scores", *runs], ["compare", *runs]):
        done = runner.invoke(app, words)
        assert done.exit_code == 0, done.output
    said("run", "bfcl-v4", "--agent", "noop", code=2)
    said("run", "nonsense", code=2)
    said("run", "bfcl", "--agent", "noop", "--task", "nonsense", code=2)
    said("report", str(tmp_path), code=2)
    said("install", "bfcl", "--data", str(tmp_path / "nowhere"), code=2)
