"""`Chain`: test calls one after the other from one state, made a second time at the end to see whether they repeat.

Which calls are made is `assess`' business.

Source: ours. Chains of one program take turns in few workers: each call is made from a snapshot with the program's
module executed anew, since a chain waits nearly all of the time, and a worker of its own would wait with it. The second
run goes through a chain in another worker and in spans, in each of which the module stays, so that a tool that lives on
what a program keeps outside its state gives itself away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from envscaler.assessment import Finding
from envscaler.env.oracles import ExaminedCall, did_not_return, examine, try_call
from envscaler.errors import ProgramError
from envscaler.messages import ToolCall
from envscaler.sandbox import Program, Sandbox, Session, Snapshot
from envscaler.skeleton import ToolSpec
from envscaler.state import State

SPAN = 5
"""Calls that are repeated from one snapshot."""
_SEATS = 2
"""Workers of one program in which its chains take turns: a tool that does not come back holds up one of them."""


class Sessions:
    """Sessions of one program in which chains take turns."""

    def __init__(self, sandbox: Sandbox, program: Program, state: State) -> None:
        self._sandbox = sandbox
        self._program = program
        self._state = state
        self._seats = asyncio.Semaphore(_SEATS)
        self._opened: list[Session] = []
        self._free: list[Session] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for session in self._opened:
            await session.close()

    async def beginning(self) -> tuple[Snapshot, str]:
        """The moment from which every chain goes, and the digest of its state.

        Raises:
            ProgramError: if the program cannot be loaded.
        """
        async with self._seat() as session:
            return await session.snapshot(), session.digest

    @asynccontextmanager
    async def at(self, moment: Snapshot) -> AsyncIterator[Session]:
        """A session that goes on from a moment.

        Raises:
            ProgramError: if the program cannot go on from there.
        """
        async with self._seat() as session:
            await session.restore(moment, fresh=False)
            yield session

    @asynccontextmanager
    async def apart(self) -> AsyncIterator[Session]:
        """A session in a worker in which no chain was."""
        session = await self._sandbox.open(self._program, self._state)
        try:
            yield session
        finally:
            await session.close()

    @asynccontextmanager
    async def _seat(self) -> AsyncIterator[Session]:
        async with self._seats:
            if self._free:
                session = self._free.pop()
            else:
                session = await self._sandbox.open(self._program, self._state)
                self._opened.append(session)
            try:
                yield session
            finally:
                self._free.append(session)


@dataclass(frozen=True)
class _Made:
    round: int
    tool: ToolSpec
    examined: ExaminedCall


class Chain:
    """Test calls each of which goes on from the state that the one before it left."""

    def __init__(self, sessions: Sessions, beginning: Snapshot, digest: str) -> None:
        """
        Args:
            digest: of the state at the beginning.
        """
        self.digest = digest
        """Digest of the state that the next call starts from."""
        self._sessions = sessions
        self._moment = beginning
        self._made: list[_Made] = []
        self._findings: dict[int, Finding] = {}

    @property
    def state(self) -> State:
        """The state that the next call starts from."""
        return self._moment.state

    async def call(self, round_number: int, tool: ToolSpec, call: ToolCall) -> ExaminedCall:
        """Make a call; the next one goes on from the state that it leaves.

        Where the program cannot go on from there, the call is made from where it last could, and that is found.

        Raises:
            ProgramError: if it cannot even go on from the beginning.
        """
        while True:
            try:
                async with self._sessions.at(self._moment) as session:
                    examined = await try_call(session, tool, call, repeat=False, now=(self.digest, self._moment.state))
                    moment, digest = await session.snapshot(state=examined.after), session.digest
                break
            except ProgramError as fault:
                last = next((one for one in reversed(self._made) if one.examined.outcome.changed), None)
                if last is None or last.round in self._findings:
                    raise
                self._findings[last.round] = _not_restorable(fault)
                self._moment, self.digest = last.examined.moment, last.examined.digest_before
        self._moment, self.digest = moment, digest
        self._made.append(_Made(round_number, tool, examined))
        return examined

    async def repeat(self, session: Session) -> dict[int, Finding]:
        """Make all calls again and say by round which of them gave something else, or a state to go on from nowhere."""
        for number, made in enumerate(self._made):
            examined = made.examined
            if did_not_return(examined.outcome):
                continue
            try:
                if number % SPAN == 0 or session.digest != examined.digest_before:
                    await session.restore(examined.moment, fresh=False)
            except ProgramError as fault:
                self._findings.setdefault(made.round, _not_restorable(fault))
                continue
            finding = await _repeated(session, made)
            if finding is not None:
                self._findings.setdefault(made.round, finding)
        if self._made:
            try:
                await session.restore(self._moment, fresh=False)
            except ProgramError as fault:
                self._findings.setdefault(self._made[-1].round, _not_restorable(fault))
        return self._findings


async def _repeated(session: Session, made: _Made) -> Finding | None:
    examined = made.examined
    repeated = await session.call(examined.call.name, examined.call.arguments)
    found = examine(made.tool, examined.outcome, digest_before=examined.digest_before, repeated=repeated)
    return next((finding for finding in found if finding.oracle == "nondeterministic"), None)


def _not_restorable(fault: ProgramError) -> Finding:
    return Finding(
        oracle="not_restorable", detail=f"the program cannot go on from a state that it made itself: {fault}"
    )
