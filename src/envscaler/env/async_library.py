"""`AsyncLibrary`: a library whose environments are played in an event loop. `Library` is its blocking twin."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from envscaler.env.async_env import AsyncToolEnv
from envscaler.env.homes import Homes
from envscaler.env.observation import ObservationStyle
from envscaler.env.shelf import Shelf, observations_of
from envscaler.env.verdict import ResetChecks
from envscaler.errors import UsageError
from envscaler.sandbox import Isolation, Limits, Sandbox
from envscaler.store import LibraryStore
from envscaler.trajectory import RewardMode


def open_async(
    path: str | PathLike[str], *, isolation: Isolation = "default", limits: Limits | None = None
) -> AsyncLibrary:
    """Open a library folder, to play in it from an event loop.

    Args:
        isolation: how far apart the sessions of what `make` gives are kept.
        limits: what one session may use, and all together; None: `Limits()`.

    Raises:
        StoreError: if there is none at `path`.

    Example:
        >>> import envscaler as es
        >>> async def play():
        ...     async with es.open_async("library") as lib:
        ...         env = await lib.make(lib.env_ids[0], scenario=0)
        ...         observation, info = await env.reset()
    """
    return AsyncLibrary(LibraryStore.open(Path(path)), isolation, limits)


class AsyncLibrary(Shelf):
    """As `Library`, for one event loop: `make` gives an `AsyncToolEnv`.

    An async context manager; without `async with` it is open from the first `make` until `aclose`.
    """

    def __init__(self, store: LibraryStore, isolation: Isolation = "default", limits: Limits | None = None) -> None:
        super().__init__(store, isolation)
        self._limits = limits
        self._reset_checks = ResetChecks()
        self._opening = asyncio.Lock()
        self._sandbox: Sandbox | None = None
        self._homes: Homes | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def kept_apart(self) -> Mapping[str, str]:
        """As `Library.kept_apart`."""
        return self._homes.apart if self._homes is not None else {}

    async def make(
        self,
        env_id: str,
        scenario: int | str | None = None,
        *,
        reward: RewardMode = "fraction",
        seed: int | None = None,
        max_steps: int | None = None,
        observations: ObservationStyle | None = None,
        coerce: bool = False,
    ) -> AsyncToolEnv:
        """As `Library.make`.

        Raises:
            UsageError: also from another event loop than the one in which it was first used.
            SandboxError: if the machinery fails.
        """
        self._require_open()
        skeleton, chosen = self.skeleton(env_id), self.scenario(env_id, scenario)
        sandbox, homes = await self._started()
        await homes.settle(skeleton, chosen)
        return AsyncToolEnv(
            skeleton,
            chosen,
            sandbox,
            reward=reward,
            max_steps=max_steps,
            observations=observations if observations is not None else observations_of(skeleton),
            coerce=coerce,
            seed=seed,
            reset_checks=self._reset_checks,
        )

    async def aclose(self) -> None:
        """End the sandbox that its environments share, for good; idempotent. What it holds can still be read."""
        async with self._opening:
            self.closed = True
            sandbox, self._sandbox = self._sandbox, None
        if sandbox is not None:
            await sandbox.aclose()

    async def __aenter__(self) -> Self:
        self._require_open()
        await self._started()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _started(self) -> tuple[Sandbox, Homes]:
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop is not loop:
            raise UsageError(f"the library {self.path} is in use in another event loop; open it in this one as well")
        self._loop = loop
        async with self._opening:
            self._require_open()
            if self._sandbox is None or self._homes is None:
                self._sandbox = await Sandbox(self._limits, isolation=self.isolation).__aenter__()
                self._homes = Homes(self._sandbox, self.isolation, self.store.cache_dir)
            return self._sandbox, self._homes
