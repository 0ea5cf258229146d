"""Which sandbox processes are alive, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path


def _table() -> dict[int, tuple[int, bool]]:
    """Parent, and whether it is a living sandbox process, of each process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes()
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        found[int(folder.name)] = (int(parent), b"envscaler.sandbox.inside.zygote" in words and state != "Z")
    return found


def sandbox_processes(owner: int | None = None) -> set[int]:
    """Process ids of the zygotes and workers below `owner` (this process), and of those whose parent is gone."""
    table = _table()
    found: set[int] = set()
    below = {owner if owner is not None else os.getpid()}
    while below:
        below = {pid for pid, (parent, _) in table.items() if parent in below}
        found |= below
    orphans = {pid for pid, (parent, _) in table.items() if parent == 1}
    return {pid for pid in found | orphans if table[pid][1]}


def living(processes: set[int]) -> set[int]:
    """Those of `processes` that are still sandbox processes."""
    table = _table()
    return {pid for pid in processes if pid in table and table[pid][1]}


def children_of(pid: int) -> set[int]:
    """Process ids of the children of a process, dead ones included."""
    return {child for child, (parent, _) in _table().items() if parent == pid}


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
