"""How busy a synthesis keeps an endpoint of constant latency: time, rate, CPU and memory of very many calls.

`envscaler synth` runs as it does for a user, against a server in a process of its own that says what the offline model
said to the same questions (`recorded`). The tasks are about things that it knows, one of a kind. The judge is asked
about every test call and no round is spared, as in the paper, and nobody plays the tasks, which the offline model
cannot. What cannot be undercut is calls × latency ÷ calls in
flight and the longest chain of calls that depend on each other; the chain is taken from a run of few environments with
nothing to wait for but the replies. `python -m perf.synth_calls TASKS SECONDS IN_FLIGHT` prints one run as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from rich.console import Console
from rich.table import Table

from envscaler.offline.reading import lexicon
from envscaler.synth import SynthSettings
from perf.recorded import MODEL, Call, Served, funnel_of, recorded, running
from perf.targets import Target
from perf.usage import family, own_cpu_s, proportional_kb

_TASKS, _QUICK_TASKS = 110, 10
_CALLS = 20_000
"""Calls for which the time is to be told."""
_TEXT = "Add the {thing} of Maria Lopez, and cancel the {thing} of Tom Baker that was entered yesterday."
_LATENCY_S, _IN_FLIGHT = 4.0, 256
_CHAIN_TASKS, _CHAIN_LATENCY_S = 4, 1.0
_ENOUGH = 0.95
"""Share of the calls that may be in flight from which on an endpoint counts as busy."""
_LOOK_EVERY_S = 1.0
_FLAGS = ("--judge", "all", "--all-rounds", "--solver-runs", "0", "--keep-equal-structures", "--similarity", "1")


@dataclass(frozen=True)
class Measured:
    """One run."""

    calls: int
    environments: int
    wall_s: float
    bound_s: float
    """1.1 × calls × latency ÷ in flight + the longest chain."""
    chain: int
    """Calls of which each needs the one before it."""
    busy_s: float
    """Time in which the endpoint had about as many calls as it may."""
    rate: float
    """Answers a second in that time."""
    in_flight: float
    """Calls in flight, on average over the run."""
    cpu_s: float
    """Of all our processes."""
    own_cpu_s: float
    """Of the process of the command alone."""
    peak_mb: float | None
    """Of all our processes together, shared pages counted once; None where the system does not tell."""
    own_mb: float | None
    refused: int = 0


def report(console: Console, *, quick: bool = False) -> list[Target]:
    """Measure and print.

    Args:
        quick: a tenth of the size, for trials; no target is told then.
    """
    run = measure(_QUICK_TASKS if quick else _TASKS, _LATENCY_S, _IN_FLIGHT)
    table = Table(
        f"synth, {_LATENCY_S:g} s latency, {_IN_FLIGHT} in flight",
        "calls",
        "s",
        "at most",
        "chain",
        "busy, s",
        "a second then",
        "in flight, mean",
        "CPU, ms a call",
        "of it own",
        "MB",
        "of it own",
        box=None,
    )
    table.add_row(
        f"{run.environments} environments",
        f"{run.calls:,}",
        f"{run.wall_s:.0f}",
        f"{run.bound_s:.0f}",
        f"{run.chain}",
        f"{run.busy_s:.0f}",
        f"{run.rate:.1f}",
        f"{run.in_flight:.0f}",
        f"{run.cpu_s / run.calls * 1e3:.1f}",
        f"{run.own_cpu_s / run.calls * 1e3:.1f}",
        "" if run.peak_mb is None else f"{run.peak_mb:.0f}",
        "" if run.own_mb is None else f"{run.own_mb:.0f}",
    )
    console.print(table)
    if quick:
        return []
    return [
        Target("calls of a synthesis", run.calls, _CALLS, "", True),
        Target("their time, of 1.1 × ideal + longest chain", run.wall_s / run.bound_s, 1.0, ""),
        Target("memory of a synthesis with 256 calls in flight", run.peak_mb, 1000, "MB"),
    ]


def measure(tasks: int, latency_s: float, in_flight: int, most: int | None = None) -> Measured:
    """One synthesis of so many tasks of the examples.

    Args:
        most: calls at once of which the endpoint answers no more; None: any number.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tasks.jsonl"
        path.write_text("".join(json.dumps({"task": text}) + "\n" for text in _texts(tasks)), encoding="utf-8")
        record = recorded(_settings(path, tasks))
        first = min(tasks, _CHAIN_TASKS)
        beginning = recorded(_settings(path, first))
        with running(beginning, _CHAIN_LATENCY_S) as url:
            _run(path, first, url, funnel_of(beginning))
            chain = _chain(_served(url).calls)
        with running(record, latency_s, most) as url:
            # An endpoint that turns some away is to be found out about.
            more = () if most is not None else ("--max-in-flight", str(in_flight))
            watched = _run(path, tasks, url, funnel_of(record), *more)
            served = _served(url)
    calls = len(served.calls)
    busy_s, rate = _busy(served.calls, _ENOUGH * in_flight)
    return Measured(
        calls=calls,
        environments=funnel_of(record)["accepted"],
        wall_s=watched.wall_s,
        bound_s=1.1 * calls * latency_s / in_flight + chain * latency_s,
        chain=chain,
        busy_s=busy_s,
        rate=rate,
        in_flight=sum(call.answered - call.came for call in served.calls) / watched.wall_s,
        cpu_s=watched.cpu_s,
        own_cpu_s=watched.own_cpu_s,
        peak_mb=watched.peak_mb,
        own_mb=watched.own_mb,
        refused=served.refused,
    )


def _texts(count: int) -> list[str]:
    """Tasks about so many things that the offline model knows, each of another group of its nouns."""
    groups = [group for template in lexicon()["nouns"].values() for group in template]
    # Drawn, so that the first ones are of many templates.
    drawn = Random(0).sample(groups, count)
    return [_TEXT.format(thing=group["words"][0]) for group in drawn]


def _settings(tasks: Path, limit: int) -> SynthSettings:
    return SynthSettings(
        tasks=tasks,
        library=Path("library"),
        limit=limit,
        judge="all",
        all_rounds=True,
        solver_runs=0,
        keep_equal_structures=True,
        similarity=1.0,
    )


def _run(tasks: Path, limit: int, url: str, funnel: dict[str, int], *more: str) -> _Watched:
    """Run the command; what is made must be what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "envscaler", "synth", str(tasks), "--limit", str(limit), "--json", *_FLAGS]
        command += ["--library", f"{folder}/library", "--model", MODEL, "--base-url", url, *more]
        output = Path(folder) / "report.json"
        with output.open("wb") as stream:
            watched = _Watched(subprocess.Popen(command, stdout=stream))
        if watched.code:
            raise RuntimeError(f"the command ended with {watched.code}")
        made = json.loads(output.read_bytes())
    if made["funnel"] != funnel:
        raise RuntimeError(f"not what was recorded: {made['funnel']} instead of {funnel}; {made['dropped']}")
    return watched


class _Watched:
    """Waits for a process, and looks meanwhile what it and all below it use."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.peak_mb: float | None = 0.0
        self.own_mb: float | None = 0.0
        self.own_cpu_s = 0.0
        self._pid = process.pid
        over = threading.Event()
        thread = threading.Thread(target=self._watch, args=(over,), daemon=True)
        began = time.perf_counter()
        thread.start()
        # The zygote collects the workers, the command the zygote: all of them are in this sum.
        _, status, use = os.wait4(process.pid, 0)
        self.wall_s = time.perf_counter() - began
        over.set()
        thread.join()
        process.returncode = self.code = os.waitstatus_to_exitcode(status)
        self.cpu_s = use.ru_utime + use.ru_stime

    def _watch(self, over: threading.Event) -> None:
        wait_s = _LOOK_EVERY_S
        while not over.wait(wait_s):
            began = time.perf_counter()
            self.own_cpu_s = max(self.own_cpu_s, own_cpu_s(self._pid))
            sizes = [proportional_kb(pid) for pid in family(self._pid)]
            known = [size for size in sizes if size is not None]
            if len(known) < len(sizes):
                self.peak_mb = self.own_mb = None
            elif self.peak_mb is not None and self.own_mb is not None:
                self.peak_mb = max(self.peak_mb, sum(known) / 1024)
                self.own_mb = max(self.own_mb, known[0] / 1024)
            # A look at hundreds of processes takes long, and what is measured beside it must not slow down.
            wait_s = max(_LOOK_EVERY_S, 30 * (time.perf_counter() - began))


def _served(url: str) -> Served:
    with urllib.request.urlopen(url) as answer:
        told = json.load(answer)
    if told["unknown"]:
        raise RuntimeError(f"{told['unknown']} questions were asked that the record has no reply to")
    return Served(tuple(Call(*call) for call in told["calls"]), told["refused"], told["unknown"])


def _chain(calls: Iterable[Call]) -> int:
    """The most calls of one environment that were made one after another, with those that find its task before them.

    Where calls have nothing to wait for but each other, that is what depends on each other.
    """
    by_unit: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        by_unit[call.asked_for].append(call)
    lengths = {unit: _in_a_row(own) for unit, own in by_unit.items()}
    tasks = [length for unit, length in lengths.items() if unit.startswith("task: ")]
    return max(tasks) + max(length for unit, length in lengths.items() if not unit.startswith("task: "))


def _in_a_row(calls: Sequence[Call]) -> int:
    length, free_at = 0, float("-inf")
    for call in sorted(calls, key=lambda call: call.answered):
        if call.came >= free_at:
            length, free_at = length + 1, call.answered
    return length


def _busy(calls: Sequence[Call], least: float) -> tuple[float, float]:
    """How long at least so many calls were in flight, and the answers a second in that time."""
    events = sorted([(call.came, 1) for call in calls] + [(call.answered, -1) for call in calls])
    in_flight, seconds, answers, before = 0, 0.0, 0, events[0][0]
    for moment, change in events:
        if in_flight >= least:
            seconds += moment - before
            answers += change < 0
        in_flight, before = in_flight + change, moment
    return seconds, answers / seconds if seconds else 0.0


def main() -> None:
    """Print one run as JSON."""
    tasks, latency_s, in_flight, *most = sys.argv[1:]
    limit = int(most[0]) if most else None
    print(json.dumps(asdict(measure(int(tasks), float(latency_s), int(in_flight), limit))))


if __name__ == "__main__":
    main()
