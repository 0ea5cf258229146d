"""`envscaler bench`: public benchmarks, installed in environments of their own, played and reported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli import bench_overlap
from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.model_flags import ModelFlags
from envscaler.cli.play_flags import PlayFlags, SlipsName
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.cli.progress import Reporter
    from envscaler.models import Models
    from envscaler.roles.role import Prompts
    from envscaler.rollout import RolloutReport, RolloutSettings

_NAME = typer.Argument(metavar="BENCH", help="Name of a benchmark; `envscaler bench list` tells them.")


def register(bench_app: typer.Typer) -> None:
    """Add the commands to the tree."""
    _register_install(bench_app)
    _register_run(bench_app)
    _register_report(bench_app)
    bench_overlap.register(bench_app)


def _register_install(bench_app: typer.Typer) -> None:
    @command(bench_app, "install", panel="Benchmarks")
    def install_benchmark(
        name: Annotated[str, _NAME],
        data: Annotated[
            Path | None,
            typer.Option(
                "--data",
                "--tau-bench",
                metavar="DIR",
                help="Folder with tasks in the benchmark's form, in place of its package's; of tau-bench a checkout.",
            ),
        ] = None,
        again: Annotated[bool, typer.Option("--again", help="Make the environment anew in any case.")] = False,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Make a virtual environment with the benchmark's own code, and check it by every recorded solution."""
        import asyncio

        from envscaler.bench.catalogue import benchmark_named
        from envscaler.bench.installing import install
        from envscaler.cli.bench_reports import installation_summary, show_installation
        from envscaler.cli.progress import reporter

        benchmark = benchmark_named(name)
        if data is not None and not data.is_dir():
            raise UsageError(f"--data {data}: there is no such folder")
        folder = data.resolve() if data is not None else None
        with reporter(quiet=output.quiet) as display:
            made = asyncio.run(install(benchmark, data=folder, again=again, progress=display))
        show_report(installation_summary(made), output, show_installation)
        return EXIT_OK

    @command(bench_app, "list", panel="Benchmarks")
    def list_benchmarks(output: OutputFlags = OutputFlags()) -> int:  # noqa: B008 - a frozen value
        """What can be installed, what is, in which version, and with how many tasks."""
        from envscaler.bench.installation import bench_folder, installations
        from envscaler.cli.bench_reports import Listing, listed, show_listing

        found = Listing(folder=bench_folder(), benchmarks=tuple(listed(*pair) for pair in installations()))
        show_report(found, output, show_listing)
        return EXIT_OK


def _register_run(bench_app: typer.Typer) -> None:
    @command(bench_app, "run", panel="Benchmarks")
    def run_benchmark(
        name: Annotated[str, _NAME],
        play: PlayFlags = PlayFlags(),  # noqa: B008 - a frozen value
        samples: Annotated[int, typer.Option("--samples", min=1, help="Episodes of each task.")] = 1,
        split: Annotated[
            list[str] | None, typer.Option("--split", metavar="PART", help="Only this part; may be repeated.")
        ] = None,
        limit: Annotated[
            int | None, typer.Option("--limit", min=1, metavar="K", help="Only the first K tasks of each part.")
        ] = None,
        task: Annotated[
            list[str] | None, typer.Option("--task", metavar="ID", help="Only this task; may be repeated.")
        ] = None,
        option: Annotated[
            list[str] | None,
            typer.Option(
                "--option",
                metavar="NAME=VALUE",
                help="An option of the benchmark's own; `withheld=execute` carries out calls of functions that the "
                "agent has not been told of, as BFCL does.",
            ),
        ] = None,
        concurrency: Annotated[
            int | None,
            typer.Option(
                "--concurrency",
                min=1,
                help="Episodes in play at the same time; else somewhat more than the endpoint is given calls, or 8.",
            ),
        ] = None,
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", metavar="RUN", help="Folder of the run; else one in benchmarks/BENCH."),
        ] = None,
        step_limit: Annotated[
            int | None,
            typer.Option("--step-limit", min=1, help="Turns of the agent at most; else what the benchmark allows."),
        ] = None,
        library: Annotated[
            Path | None,
            typer.Option(
                "--library", "-l", metavar="LIBRARY", help="For the benchmark held-out: whose scenarios are played."
            ),
        ] = None,
        user_slips: Annotated[
            SlipsName,
            typer.Option(
                "--user-slips",
                help="Slips of the simulated user: count them, ask it again, or also mask what slips all the same.",
            ),
        ] = SlipsName.RETRY,
        models: ModelFlags = ModelFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Let an agent play a benchmark and record every step. Stopped at any moment, the same command resumes."""
        import asyncio

        from envscaler.bench.catalogue import HELD_OUT
        from envscaler.bench.installation import open_benchmark
        from envscaler.bench.run import run_bench
        from envscaler.bench.settings import RUNS, cache_folder
        from envscaler.cli.asking import ask_with_cache
        from envscaler.cli.bench_reports import show_run
        from envscaler.cli.progress import reporter
        from envscaler.rollout import RolloutSettings

        if (library is not None) != (name == HELD_OUT.name):
            raise UsageError("--library names the library of the benchmark held-out; give both or neither")
        settings = RolloutSettings(
            **play.settings(),
            samples=samples,
            step_limit=step_limit,
            env_ids=tuple(split) if split else None,
            scenarios_per_env=limit,
            out=out,
            concurrency=concurrency,
            user_slips=user_slips.value,
        )
        chosen, names = _options(option or []), tuple(task or ())
        if library is not None:
            report = _play_held_out(library, settings, chosen, names, models, output)
            show_report(report, output, show_run)
            return _code(report)
        installed = open_benchmark(name)
        if settings.agent == "model":

            async def work(opened: Models, prompts: Prompts, progress: Reporter) -> RolloutReport:
                return await run_bench(
                    installed, settings, opened, options=chosen, names=names, prompts=prompts, progress=progress
                )

            report = ask_with_cache(models, cache_folder(Path(RUNS)), work, quiet=output.quiet)
        else:
            with reporter(quiet=output.quiet) as display:
                report = asyncio.run(run_bench(installed, settings, options=chosen, names=names, progress=display))
        show_report(report, output, show_run)
        return _code(report)


def _code(report: RolloutReport) -> int:
    return EXIT_OK if report.scores.episodes and not report.unfinished else EXIT_NO_RESULT


def _play_held_out(
    library: Path,
    settings: RolloutSettings,
    options: dict[str, str],
    names: tuple[str, ...],
    models: ModelFlags,
    output: OutputFlags,
) -> RolloutReport:
    import asyncio

    from envscaler.bench.held_out import run_held_out
    from envscaler.cli.asking import ask_models
    from envscaler.cli.progress import reporter
    from envscaler.cli.show import warn
    from envscaler.env import open_library

    with open_library(library) as opened:

        async def work(asked: Models | None, prompts: Prompts | None, progress: Reporter) -> RolloutReport:
            return await run_held_out(opened, settings, asked, prompts, options=options, names=names, progress=progress)

        if settings.agent == "model" or options.get("mode") == "conversation":
            report = ask_models(models, library, work, quiet=output.quiet)
        else:
            with reporter(quiet=output.quiet) as display:
                report = asyncio.run(work(None, None, display))
    warn(opened.problems)
    return report


def _register_report(bench_app: typer.Typer) -> None:
    @command(bench_app, "report", panel="Benchmarks")
    def report_runs(
        runs: Annotated[list[str], typer.Argument(metavar="RUN…", help="Folders of runs of benchmarks.")],
        out: Annotated[
            Path | None,
            typer.Option("--out", "-o", metavar="DIR", help="Write report.json, report.md and report.html there."),
        ] = None,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """The paper's table with these runs beside published results, floors, ceilings, violations and costs."""
        from envscaler.bench.report import bench_report
        from envscaler.cli.bench_reports import print_report, write_report
        from envscaler.cli.places import locate_run

        report = bench_report([locate_run(run) for run in runs])
        if out is not None:
            write_report(report, out)
        show_report(report, output, lambda told, console: print_report(told, console, out))
        return EXIT_OK if any(card.total.tasks for card in report.runs) else EXIT_NO_RESULT

    @command(bench_app, "compare", panel="Benchmarks")
    def compare_runs(
        first: Annotated[str, typer.Argument(metavar="RUN_A", help="Folder of the run that is compared with.")],
        second: Annotated[str, typer.Argument(metavar="RUN_B", help="Folder of the run that is to be better.")],
        force: Annotated[
            bool, typer.Option("--force", help="Compare although they were not played under the same settings.")
        ] = False,
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Whether a second run is better than a first one, by a paired test; refused where their settings differ."""
        from envscaler.bench.comparison import compare_bench
        from envscaler.cli.bench_reports import show_bench_comparison
        from envscaler.cli.places import locate_run

        folders = [locate_run(first), locate_run(second)]
        if folders[0].resolve() == folders[1].resolve():
            raise UsageError(f"{first} and {second} are the same run; name two runs")
        report = compare_bench(*folders, force=force)
        show_report(report, output, lambda told, console: show_bench_comparison(told, folders, console))
        return EXIT_OK


def _options(given: list[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--option {text}: write NAME=VALUE")
        out[name] = value
    return out
