"""The `envscaler` command: options in, one clear result out; what a command does lies in the packages below.

Modules that commands need are imported inside them, so that `--help` answers at once.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process; it ends the process with the exit code."""
    import gc

    from envscaler.cli.app import app

    # Syntax trees and records are made by the million and hold no cycles: looking for cycles at Python's default pace
    # costs a synthesis a fourteenth of its time.
    gc.set_threshold(100_000, 20, 20)
    app()


__all__ = ["main"]
