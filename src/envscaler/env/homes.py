"""`Homes`: which environments may run nearer to others than in processes of their own, and why others may not.

What living there means, and what is contained, is the sandbox's business; what is tried before, `vetting`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from pathlib import Path

from envscaler.cores import usable_cores
from envscaler.engine import bounded_map
from envscaler.env.vetting import shared_faults
from envscaler.offline.regenerate import regenerated
from envscaler.program import class_name_of
from envscaler.sandbox import Home, Isolation, Program, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton


class Homes:
    """Settles programs in a sandbox under an isolation, each once.

    Args:
        cache: folder of a library in which it is remembered which programs may share a process.
    """

    def __init__(self, sandbox: Sandbox, isolation: Isolation, cache: Path | None = None) -> None:
        self._sandbox = sandbox
        self._isolation = isolation
        self._cache = cache
        self._locks: dict[str, asyncio.Lock] = {}
        self._settled: dict[str, tuple[str, ...]] = {}
        """By digest of the program, why it stays apart; nothing: it does not."""
        self.apart: dict[str, str] = {}
        """Environments that run in processes of their own though less was asked for, by id, with all reasons."""

    @property
    def decide(self) -> bool:
        """Whether anything is decided here: whether less than processes of their own was asked for."""
        return self._isolation in ("shared", "in-process")

    async def settle_all(
        self, tried_on: Sequence[tuple[EnvSkeleton, Scenario]], advance: Callable[[], None] = lambda: None
    ) -> None:
        """`settle` for several environments, side by side.

        Args:
            advance: called when one more is settled.

        Raises:
            SandboxError: if the machinery fails.
        """

        async def one(pair: tuple[EnvSkeleton, Scenario]) -> None:
            await self.settle(*pair)
            advance()

        async with aclosing(bounded_map(one, tried_on, limit=usable_cores())) as settled:
            async for _ in settled:
                pass

    async def settle(self, skeleton: EnvSkeleton, scenario: Scenario) -> None:
        """Have the sessions of an environment that are opened from now on run where they may.

        `shared`: workers are hardened here, nothing in the program's text reaches beyond its module, it keeps the
        contract of `check_env`, and in one process with others it tells what it tells in one of its own. `in-process`:
        the embedded generator writes the same program again.

        Args:
            scenario: one of its scenarios, to try it on.

        Raises:
            SandboxError: if the machinery fails.
        """
        if not self.decide:
            return
        program = Program(source=skeleton.source, class_name=skeleton.class_name)
        async with self._locks.setdefault(program.digest, asyncio.Lock()):
            if program.digest not in self._settled:
                if self._isolation == "shared":
                    home: Home = "shared"
                    faults = await shared_faults(skeleton, scenario, self._sandbox, self._cache)
                else:
                    home = "in-process"
                    # Never remembered: what runs here is contained by nothing but this answer.
                    faults = await _foreign(skeleton)
                self._sandbox.settle(program, "own" if faults else home)
                self._settled[program.digest] = faults
        faults = self._settled[program.digest]
        if faults:
            self.apart[skeleton.id] = "; ".join(faults)


async def _foreign(skeleton: EnvSkeleton) -> tuple[str, ...]:
    # Seconds of work for large programs; the loop goes on meanwhile.
    again = await asyncio.to_thread(regenerated, skeleton)
    if again == skeleton.source and class_name_of(again) == skeleton.class_name:
        return ()
    return ("the offline model does not write this program",)
