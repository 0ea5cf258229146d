"""CPU time and memory of this process and of all below it, read from /proc of Linux.

Workers are killed, not waited for, so what the system adds up for ended children would miss them: live ones are read
one by one, and ended ones in the process that collects them.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICK_S = 1.0 / os.sysconf("SC_CLK_TCK")


@dataclass
class Spent:
    """What was used between the ends of a `with`, complete at its end."""

    wall_s: float = 0.0
    parent_s: float = 0.0
    """CPU of this process."""
    cpu_s: float = 0.0
    """CPU of this process and of all below it."""


@contextmanager
def measured() -> Iterator[Spent]:
    """Measure what happens within."""
    spent = Spent()
    below = _below_cpu_s()
    wall, own = time.perf_counter(), time.process_time()
    yield spent
    spent.wall_s, spent.parent_s = time.perf_counter() - wall, time.process_time() - own
    spent.cpu_s = spent.parent_s + _below_cpu_s() - below


def _below_cpu_s() -> float:
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(_process_cpu_s(pid) for pid in family(os.getpid())[1:])


def _process_cpu_s(pid: int) -> float:
    """Of one process and of those that it has collected."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        own_s = _scheduled_s(pid)
    except OSError:
        return 0.0
    collected_s = (int(fields[13]) + int(fields[14])) * _TICK_S
    return collected_s + (own_s if own_s is not None else (int(fields[11]) + int(fields[12])) * _TICK_S)


def own_cpu_s(pid: int) -> float:
    """CPU of one process that is alive, all its threads, without what it has collected."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * _TICK_S


def _scheduled_s(pid: int) -> float | None:
    """To the nanosecond, where the kernel tells; zygotes and workers have one thread each, and only one is told of."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9 or None
    except (OSError, IndexError):
        return None


def family(root: int) -> list[int]:
    """A process and all below it, ended ones that nobody has collected yet included."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[1])
        except OSError:
            continue  # it has ended since
        children.setdefault(parent, []).append(int(folder.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def proportional_kb(pid: int) -> int | None:
    """Memory of a process, shared pages divided among those that share them: 0 of one that has ended, None where the
    system does not tell, as of hardened workers to anyone but root."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:
        return None
    except OSError:
        return 0 if Path("/proc/self/smaps_rollup").exists() else None
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), None)


def mean_mb(pids: list[int]) -> float | None:
    """Memory of some processes on average; None where the system does not tell."""
    known = [kb for kb in map(proportional_kb, pids) if kb is not None]
    return sum(known) / len(known) / 1024 if known else None
