"""`Machine`: how fast this one is beside that on which the targets were set, told by what copying a state takes."""

from __future__ import annotations

import copy
import gc
import time
from dataclasses import dataclass

from envscaler.state import State
from perf.workloads import desk

SMALL_S, LARGE_S = 117e-6, 7e-3
"""What `copy.deepcopy` took there: of a state of 5 KB, and of one of 219 KB."""
_ROUNDS_S = 0.5


@dataclass(frozen=True)
class Machine:
    """What `copy.deepcopy` takes here."""

    small_s: float
    """Of a state of 4 KB."""
    large_s: float
    """Of a state of 219 KB."""

    @classmethod
    def here(cls) -> Machine:
        """Measure."""
        return cls(_copying_s(desk().state), _copying_s(desk(large=True).state))

    @property
    def slower(self) -> float:
        """How many times slower than the other; of the two ratios the one that excuses less."""
        return min(self.small_s / SMALL_S, self.large_s / LARGE_S)

    def __str__(self) -> str:
        return (
            f"copy.deepcopy of 4 KB {self.small_s * 1e6:.0f} µs, of 219 KB {self.large_s * 1e3:.1f} ms; on the machine "
            f"on which the targets were set {SMALL_S * 1e6:.0f} µs and {LARGE_S * 1e3:.0f} ms: "
            f"this one is {self.slower:.1f} times slower"
        )


def _copying_s(state: State) -> float:
    """The best of many rounds."""
    best, end = float("inf"), time.perf_counter() + _ROUNDS_S
    gc.collect()
    while time.perf_counter() < end:
        start = time.perf_counter()
        copy.deepcopy(state)
        best = min(best, time.perf_counter() - start)
    return best
