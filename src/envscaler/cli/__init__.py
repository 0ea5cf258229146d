"""The `envscaler` command: options in, one clear result out; what a command does lies in the packages below.

Modules that commands need are imported inside them, so that `--help` answers at once.
"""

from __future__ import annotations


def main() -> None:
    """Run the command line of this process; it ends the process with the exit code."""
    from envscaler.cli.app import app

    app()


__all__ = ["main"]
