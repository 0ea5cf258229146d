"""`check_all`: whether imported environments keep the contract, remembered so that none is checked twice."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from envscaler.assessment import Finding
from envscaler.cores import usable_cores
from envscaler.engine import Progress, bounded_map
from envscaler.env import examine_env
from envscaler.sandbox import Isolation, Sandbox
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State, digest
from envscaler.store import Journal

CALLS_PER_TOOL = 2
"""One call that should succeed, one that is wrong on purpose; each is repeated and played again."""
STAGE = "check"


@dataclass(frozen=True, slots=True)
class Check:
    """One environment to be checked, and the state that it starts from."""

    skeleton: EnvSkeleton
    state: State
    scenario_id: str | None
    """Scenario that the state is of; None: the state is empty."""

    @property
    def key(self) -> str:
        """Says when the findings of an earlier check still hold."""
        return f"check:{digest([self.skeleton.id, self.skeleton.digest, digest(self.state), CALLS_PER_TOOL])}"


async def check_all(
    checks: Sequence[Check], cache: Path, isolation: Isolation, progress: Progress
) -> list[tuple[Finding, ...]]:
    """The findings of `check_env` on each environment.

    Args:
        cache: folder in which the findings are remembered.

    Raises:
        SandboxError: if the machinery fails.
    """
    progress.stage(STAGE, len(checks))
    with Journal(cache / "released.jsonl") as journal:
        if any(check.key not in journal for check in checks):
            async with Sandbox(isolation=isolation) as sandbox:
                return await _each(checks, journal, progress, sandbox)
        return await _each(checks, journal, progress, None)


async def _each(
    checks: Sequence[Check], journal: Journal, progress: Progress, sandbox: Sandbox | None
) -> list[tuple[Finding, ...]]:
    async def one(check: Check) -> tuple[Finding, ...]:
        if check.key not in journal:
            assert sandbox is not None
            findings = await examine_env(check.skeleton, check.state, sandbox, calls_per_tool=CALLS_PER_TOOL)
            journal.put(check.key, [finding.model_dump() for finding in findings])
        progress.advance(STAGE)
        return tuple(Finding.model_validate(part) for part in journal.get(check.key))

    async with aclosing(bounded_map(one, checks, limit=usable_cores())) as done:
        return [findings async for findings in done]
