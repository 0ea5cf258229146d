"""`Homes`: which environments may run nearer to others than in processes of their own, and why others may not.

What living there means, and what is contained, is the sandbox's business.
"""

from __future__ import annotations

import asyncio

from envscaler.env.conformance import compared, examine_env
from envscaler.errors import WorkerLost
from envscaler.offline.regenerate import regenerated
from envscaler.program import class_name_of, way_out
from envscaler.sandbox import Home, Isolation, Program, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton


class Homes:
    """Settles programs in a sandbox under an isolation, each once."""

    def __init__(self, sandbox: Sandbox, isolation: Isolation) -> None:
        self._sandbox = sandbox
        self._isolation = isolation
        self._locks: dict[str, asyncio.Lock] = {}
        self._settled: dict[str, str | None] = {}
        """By digest of the program, why it stays apart."""
        self.apart: dict[str, str] = {}
        """Environments that run in processes of their own though less was asked for, by id, with the reason."""

    async def settle(self, skeleton: EnvSkeleton, scenario: Scenario) -> None:
        """Have the sessions of an environment that are opened from now on run where they may.

        `shared`: workers are hardened here, nothing in the program's text reaches beyond its module, it keeps the
        contract of `check_env`, and in one process with others it tells what it tells in one of its own. `in-process`:
        the embedded generator writes the same program again.

        Args:
            scenario: one of its scenarios, to try it on.

        Raises:
            ProgramError: if the program cannot be loaded or built.
            SandboxError: if the machinery fails.
        """
        if self._isolation not in ("shared", "in-process"):
            return
        program = Program(source=skeleton.source, class_name=skeleton.class_name)
        async with self._locks.setdefault(program.digest, asyncio.Lock()):
            if program.digest not in self._settled:
                if self._isolation == "shared":
                    home: Home = "shared"
                    reason = await self._why_not_shared(skeleton, scenario)
                else:
                    home = "in-process"
                    reason = await _why_not_here(skeleton)
                self._sandbox.settle(program, home if reason is None else "own")
                self._settled[program.digest] = reason
        reason = self._settled[program.digest]
        if reason is not None:
            self.apart[skeleton.id] = reason

    async def _why_not_shared(self, skeleton: EnvSkeleton, scenario: Scenario) -> str | None:
        if self._sandbox.isolation.level != "hardened":
            return "workers are not hardened on this machine"
        outside = way_out(skeleton.source)
        if outside is not None:
            return f"its sessions could meet there: {outside}"
        try:
            findings = await examine_env(skeleton, scenario, self._sandbox)
            if findings:
                return f"it does not keep the contract: {findings[0].oracle}: {findings[0].detail}"
            return await compared(skeleton, scenario, self._sandbox, "shared")
        except WorkerLost as fault:
            return f"it does not do again what it did: {fault}"


async def _why_not_here(skeleton: EnvSkeleton) -> str | None:
    # Seconds of work for large programs; the loop goes on meanwhile.
    again = await asyncio.to_thread(regenerated, skeleton)
    if again == skeleton.source and class_name_of(again) == skeleton.class_name:
        return None
    return "the offline model does not write this program"
