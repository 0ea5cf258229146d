"""`python -m perf [topic ...]`: measures, prints tables and, at the end, which targets are met."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import Annotated

import typer
from rich.console import Console

from envscaler.sandbox import BlockingSandbox
from perf import authoring, economy, episodes, judging, memory, rollouts, steps, synth_calls, synthesis
from perf.machine import Machine
from perf.targets import Target, table_of


class Topic(StrEnum):
    """What can be measured."""

    STEPS = "steps"
    EPISODES = "episodes"
    CALLS = "calls"
    MEMORY = "memory"
    CHECKS = "checks"
    AUTHORING = "authoring"
    ECONOMY = "economy"
    SYNTH = "synth"
    ROLLOUTS = "rollouts"
    SYNTH_CALLS = "synth-calls"


REPORTS: dict[Topic, Callable[[Console], list[Target]]] = {
    Topic.STEPS: steps.report,
    Topic.EPISODES: episodes.report_episodes,
    Topic.CALLS: episodes.report_calls,
    Topic.MEMORY: memory.report,
    Topic.CHECKS: judging.report,
    Topic.AUTHORING: authoring.report,
    Topic.ECONOMY: economy.report,
    Topic.SYNTH: synthesis.report,
    Topic.ROLLOUTS: rollouts.report,
    Topic.SYNTH_CALLS: synth_calls.report,
}
LONG = {Topic.SYNTH_CALLS}
"""Measured only where they are named."""


def main(
    topics: Annotated[list[Topic] | None, typer.Argument(help="All but synth-calls, unless some are named.")] = None,
    long: Annotated[bool, typer.Option(help="Also episodes with 1,024 sessions on the large state; minutes.")] = False,
    quick: Annotated[
        bool, typer.Option(help="rollouts and synth-calls of a tenth of the size, for trials; no targets.")
    ] = False,
) -> None:
    """Measure and print; a target that is missed is told, and is no failure."""
    reports: dict[Topic, Callable[[Console], list[Target]]] = {
        **REPORTS,
        Topic.EPISODES: partial(episodes.report_episodes, long=long),
        Topic.ROLLOUTS: partial(rollouts.report, quick=quick),
        Topic.SYNTH_CALLS: partial(synth_calls.report, quick=quick),
    }
    console = Console(width=132)
    start = time.monotonic()
    with BlockingSandbox() as sandbox:
        level = sandbox.isolation.level
    load = os.getloadavg()[0]
    console.print(f"{os.cpu_count()} cores, load {load:.1f}, workers {level}: read ratios, not absolute times")
    machine = Machine.here()
    console.print(f"{machine}\n")
    targets: list[Target] = []
    for topic in topics or [topic for topic in Topic if topic not in LONG]:
        targets += reports[topic](console)
        console.print()
    if targets:
        console.print(table_of(targets, machine.slower))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    console.print(
        f"\n{time.monotonic() - start:.0f} s; load now {os.getloadavg()[0]:.1f}; peak of this process {peak:.0f} MB"
    )


if __name__ == "__main__":
    typer.run(main)
