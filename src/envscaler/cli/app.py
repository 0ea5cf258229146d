"""The tree of commands with their help texts. Each command lives in a module of its own beside this one."""

from __future__ import annotations

from typing import Annotated

import typer

EPILOG = (
    "Without --model everything is done by `offline`: a procedural generator, not a language model. It needs no "
    "network and no key. --model NAME with --base-url or OPENAI_BASE_URL asks any OpenAI-compatible endpoint."
)

app = typer.Typer(
    name="envscaler",
    help="From plain task texts to executable environments, scenarios, trajectories and training rows.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
export_app = typer.Typer(
    name="export",
    help="Write the rows that trainers read from the trajectories of a run, or a library in the authors' format.",
    no_args_is_help=True,
)
library_app = typer.Typer(name="library", help="Merge, filter, split and count libraries.", no_args_is_help=True)
import_app = typer.Typer(name="import", help="Make a library from what others published.", no_args_is_help=True)
bench_app = typer.Typer(
    name="bench", help="Play public benchmarks by their own code, and report the scores.", no_args_is_help=True
)
run_app = typer.Typer(name="run", help="Make one run of several.", no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"envscaler {version('envscaler')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


# Registered here, below `app`, in the order in which a user meets them.
from envscaler.cli import (  # noqa: E402
    bench,
    build,
    calibrate,
    doctor,
    explain,
    export,
    library,
    play,
    released,
    run,
    runs,
    scores,
    show,
    stats,
    trust,
)

build.register(app)
run.register(app)
calibrate.register(app)
export.register(export_app)
released.register(app, import_app, export_app)
runs.register(run_app)
app.add_typer(run_app, rich_help_panel="Use")
app.add_typer(export_app, rich_help_panel="Use")
app.add_typer(import_app, rich_help_panel="Make")
trust.register(app)
show.register(app)
explain.register(app)
scores.register(app)
stats.register(app, library_app)
library.register(library_app)
app.add_typer(library_app, rich_help_panel="Make")
bench.register(bench_app)
app.add_typer(bench_app, rich_help_panel="Use")
play.register(app)
doctor.register(app)
