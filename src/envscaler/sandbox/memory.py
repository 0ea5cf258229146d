"""How much memory processes take and how much there is, read from /proc and the control groups of Linux.

What follows from it is not its business. Elsewhere nothing is known, and None says so.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STALE = ("inactive_file ", "total_inactive_file ")
_NO_LIMIT_BYTES = 1 << 60
"""Control groups without a limit name a number above this, or none."""


@dataclass(frozen=True, slots=True)
class Resident:
    """Memory that a process has in place, pages that it shares with the one that forked it included.

    Unlike the exact share (smaps) it can be read of a process that has given up its user and its dumps, and costs
    microseconds.
    """

    anonymous_bytes: int
    """Of no file."""
    mapped_bytes: int
    """Of files, and what is meant to be shared."""

    @classmethod
    def of(cls, pid: int) -> Resident | None:
        """Of a process; None where the system does not tell."""
        try:
            with open(f"/proc/{pid}/statm", "rb") as sizes:
                _, resident, mapped, *_ = map(int, sizes.read().split())
        except (OSError, ValueError):
            return None
        return cls((resident - mapped) * _PAGE_BYTES, mapped * _PAGE_BYTES)

    def beyond(self, origin: Resident) -> int:
        """Bytes that a process has more of than the one it was forked from."""
        # Apart: a fork begins with less of the files than its origin, and could hide as much of its own behind it.
        more = (self.anonymous_bytes - origin.anonymous_bytes, self.mapped_bytes - origin.mapped_bytes)
        return sum(max(0, amount) for amount in more)


def free_bytes() -> int | None:
    """Memory that can be had on this machine, or in this container, without swapping."""
    known = [amount for amount in (_machine_free(), *_groups_free()) if amount is not None]
    return min(known, default=None)


def _machine_free() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), None)


def _groups_free() -> list[int | None]:
    """What the control groups of this process leave it, of either version; within a container they lie at the root."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    found: list[int | None] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, limit, use = Path("/sys/fs/cgroup"), "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            root, limit, use = Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        own = root / path.lstrip("/")
        for group in (own, *own.parents):
            if group.is_relative_to(root):
                found.append(_left(group / limit, group / use, group / "memory.stat"))
    return found


def _left(limit: Path, use: Path, parts: Path) -> int | None:
    try:
        most, used = limit.read_text(encoding="ascii").strip(), int(use.read_text(encoding="ascii"))
        # Files that were read some time ago count as used, and go when their place is needed.
        stale = [line.split()[1] for line in parts.read_text(encoding="ascii").splitlines() if line.startswith(_STALE)]
        used -= max(map(int, stale), default=0)
    except (OSError, ValueError):
        return None
    if not most.isdigit() or int(most) >= _NO_LIMIT_BYTES:
        return None
    return max(0, int(most) - used)
