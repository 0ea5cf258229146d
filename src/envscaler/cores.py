"""`usable_cores`: how many cores this process may use, whatever the machine has."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """The cores that affinity and, in a container, the control group leave to this process; at least 1.

    Args:
        quota: file in which the control group says how many microseconds of how many it grants.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        granted, period = quota.read_text(encoding="ascii").split()
        cores = min(cores, math.ceil(int(granted) / int(period)))
    except (OSError, ValueError):
        pass  # no control groups here, or no limit in them ("max")
    return max(1, cores)
