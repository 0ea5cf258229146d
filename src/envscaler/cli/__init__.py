"""The `envscaler` command: options in, one clear result out; what a command does lies in the packages below.

Modules that commands need are imported inside them, so that `--help` answers at once.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process; it ends the process with the exit code."""
    from envscaler.cli.app import app

    collect_rarely()
    app()


def collect_rarely() -> None:
    """Have Python look for cycles less often: syntax trees and records are made by the million and hold none, and its
    default pace costs a synthesis a fourteenth of its time."""
    import gc

    gc.set_threshold(100_000, 20, 20)


__all__ = ["collect_rarely", "main"]
