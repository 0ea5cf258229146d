"""`Chain`: test calls one after the other from one state, made a second time at the end to see whether they repeat.

Which calls are made is `assess`' business.

Source: ours. Repeating every call at once would cost a worker and all earlier calls each time; the second run goes
through a chain in a worker of its own and in spans, each from a snapshot and with the program's module executed anew,
so that what a program keeps outside its state is not there and a tool that lives on it gives itself away.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from envscaler.assessment import Finding
from envscaler.env.oracles import ExaminedCall, examine, try_call
from envscaler.errors import ProgramError
from envscaler.messages import ToolCall
from envscaler.sandbox import Program, Sandbox, Session, Snapshot
from envscaler.skeleton import ToolSpec
from envscaler.state import State

SPAN = 5
"""Calls that are repeated from one snapshot. The first call is repeated by itself, so that short chains are cut too."""


@dataclass(frozen=True)
class _Made:
    round: int
    tool: ToolSpec
    examined: ExaminedCall


class Chain:
    """A session in which test calls are made, and what is needed to make them again."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spans: list[tuple[Snapshot, list[_Made]]] = []

    @classmethod
    async def open(cls, sandbox: Sandbox, program: Program, state: State) -> Self:
        """
        Raises:
            ProgramError: if the program cannot be loaded.
        """
        return cls(await sandbox.open(program, state))

    @property
    def digest(self) -> str:
        """Digest of the state that the next call starts from."""
        return self._session.digest

    async def state(self) -> State:
        """The state that the next call starts from."""
        return await self._session.state()

    async def call(self, round_number: int, tool: ToolSpec, call: ToolCall) -> ExaminedCall:
        """Make a call; the next one goes on from the state that it leaves."""
        if len(self._spans) < 2 or len(self._spans[-1][1]) == SPAN:
            self._spans.append((await self._session.snapshot(), []))
        examined = await try_call(self._session, tool, call, repeat=False)
        self._spans[-1][1].append(_Made(round_number, tool, examined))
        return examined

    async def repeat(self) -> dict[int, Finding]:
        """Make all calls again, in a second worker, and say by round which of them gave something else.

        Calls after the first such one in its span start from another state and are not compared.
        """
        findings: dict[int, Finding] = {}
        if not self._spans:
            return findings
        end = await self._session.snapshot()
        for span, (snapshot, calls) in enumerate(self._spans):
            try:
                await self._session.restore(snapshot, fresh=span == 0)
            except ProgramError as fault:
                findings[calls[0].round] = _not_restorable(fault)
                continue
            for made in calls:
                finding = await self._repeated(made)
                if finding is not None:
                    findings[made.round] = finding
                if self._session.digest != made.examined.outcome.digest:
                    break
        try:
            await self._session.restore(end, fresh=False)
        except ProgramError as fault:
            findings.setdefault(self._spans[-1][1][-1].round, _not_restorable(fault))
        return findings

    async def _repeated(self, made: _Made) -> Finding | None:
        examined = made.examined
        repeated = await self._session.call(examined.call.name, examined.call.arguments)
        found = examine(made.tool, examined.outcome, digest_before=examined.digest_before, repeated=repeated)
        return next((finding for finding in found if finding.oracle == "nondeterministic"), None)

    async def close(self) -> None:
        """End the session; idempotent."""
        await self._session.close()


def _not_restorable(fault: ProgramError) -> Finding:
    return Finding(
        oracle="not_restorable", detail=f"the program cannot go on from a state that it made itself: {fault}"
    )
