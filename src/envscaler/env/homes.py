"""`Homes`: which environments may run nearer to others than in processes of their own, and why others may not.

What living there means, and what is contained, is the sandbox's business.
"""

from __future__ import annotations

import asyncio

from envscaler.env.conformance import compared, examine_env
from envscaler.offline.regenerate import regenerated
from envscaler.sandbox import Home, Isolation, Program, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import text_digest


class Homes:
    """Settles environments in a sandbox under an isolation, each once."""

    def __init__(self, sandbox: Sandbox, isolation: Isolation) -> None:
        self._sandbox = sandbox
        self._isolation = isolation
        self._locks: dict[str, asyncio.Lock] = {}
        self._settled: set[str] = set()
        self.apart: dict[str, str] = {}
        """Environments that run in processes of their own though more was asked for, by id, with the reason."""

    async def settle(self, skeleton: EnvSkeleton, scenario: Scenario) -> None:
        """Have the sessions of an environment that are opened from now on run where they may.

        `shared`: it keeps the contract of `check_env`, and in one process, two episodes taking turns, it tells what
        it tells in processes of its own. `in-process`: the embedded generator writes the same program again.

        Args:
            scenario: one of its scenarios, to try it on.

        Raises:
            ProgramError: if the program cannot be loaded or built.
            SandboxError: if the machinery fails.
        """
        if self._isolation not in ("shared", "in-process") or skeleton.digest in self._settled:
            return
        async with self._locks.setdefault(skeleton.digest, asyncio.Lock()):
            if skeleton.digest in self._settled:
                return
            if self._isolation == "shared":
                reason = await self._why_not_shared(skeleton, scenario)
                self._end(skeleton, "shared", reason)
            else:
                # Seconds of work for large programs; the loop goes on meanwhile.
                again = await asyncio.to_thread(regenerated, skeleton)
                known = again is not None and text_digest(again) == text_digest(skeleton.source)
                self._end(skeleton, "in-process", None if known else "the offline model does not write this program")
            self._settled.add(skeleton.digest)

    def _end(self, skeleton: EnvSkeleton, home: Home, reason: str | None) -> None:
        program = Program(source=skeleton.source, class_name=skeleton.class_name)
        self._sandbox.settle(program, "own" if reason is not None else home)
        if reason is not None:
            self.apart[skeleton.id] = reason

    async def _why_not_shared(self, skeleton: EnvSkeleton, scenario: Scenario) -> str | None:
        findings = await examine_env(skeleton, scenario, self._sandbox)
        if findings:
            return f"it does not keep the contract: {findings[0].oracle}: {findings[0].detail}"
        return await compared(skeleton, scenario, self._sandbox, "shared")
