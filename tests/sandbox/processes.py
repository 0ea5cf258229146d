"""Which sandbox processes are alive, read from /proc."""

from __future__ import annotations

import os
from pathlib import Path


def sandbox_processes() -> set[int]:
    """Process ids of every zygote and worker that descends from this test process, by command line."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if any(b"envscaler.sandbox.inside.zygote" in word for word in words) and state != "Z":
            found.add(int(folder.name))
    return found


def children_of(pid: int) -> set[int]:
    """Process ids of the children of a process, dead ones included."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.add(int(folder.name))
    return found


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
