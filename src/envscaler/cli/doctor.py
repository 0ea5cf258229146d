"""`envscaler doctor`: what this machine and its endpoint can do. The checks themselves lie in `diagnosis`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, show_report
from envscaler.cli.model_flags import ProbeFlags


def register(app: typer.Typer) -> None:
    """Add the command to the tree."""

    @command(app, "doctor", panel="Look")
    def doctor(
        library: Annotated[
            Path, typer.Option("--library", "-l", metavar="DIR", help="Where a library would be written.")
        ] = Path("."),
        models: ProbeFlags = ProbeFlags(),  # noqa: B008 - a frozen value
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Try what a run needs on this machine; exit 1 when something needed does not work."""
        from envscaler.cli.diagnosis import diagnose, show_diagnosis

        diagnosis = diagnose(models, library)
        show_report(diagnosis, output, show_diagnosis)
        return EXIT_OK if diagnosis.ok else EXIT_NO_RESULT
