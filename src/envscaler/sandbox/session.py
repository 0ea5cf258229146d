"""`Session`: one live instance of a program, which survives the loss of its worker."""

from __future__ import annotations

from envscaler.sandbox.contract import Arguments, Outcome, Snapshot
from envscaler.state import State


class Session:
    """One instance of a program in a worker of its own. `Sandbox.open` makes it."""

    @property
    def digest(self) -> str:
        """Digest of the present state."""
        raise NotImplementedError

    async def call(self, name: str, arguments: Arguments) -> Outcome:
        """Call the program's public method `name`.

        Raises:
            WorkerLost: if the worker died and replaying the session's log did not give the same states.
        """
        raise NotImplementedError

    async def state(self) -> State:
        """The present state, a copy of the caller's own."""
        raise NotImplementedError

    async def snapshot(self) -> Snapshot:
        """All that is needed to go on from here, also in another process on another machine."""
        raise NotImplementedError

    async def restore(self, snapshot: Snapshot) -> None:
        """Go on from `snapshot`, in a fresh worker."""
        raise NotImplementedError

    async def fork(self) -> Session:
        """A second session that goes on from here by itself."""
        raise NotImplementedError

    async def close(self) -> None:
        """End the worker; idempotent."""
        raise NotImplementedError
