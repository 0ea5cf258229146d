"""`Library`: a folder of environments and scenarios that can be played. Writing one is the store's business."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self

from envscaler.env.homes import Homes
from envscaler.env.observation import ObservationStyle
from envscaler.env.shelf import Shelf, observations_of
from envscaler.env.tool_env import ToolEnv
from envscaler.env.verdict import ResetChecks
from envscaler.sandbox import BlockingSandbox, Isolation, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore
from envscaler.trajectory import RewardMode


def open_library(path: str | PathLike[str], *, isolation: Isolation = "default") -> Library:
    """Open a library folder.

    Args:
        isolation: how far apart the sessions of what `make` gives are kept.

    Raises:
        StoreError: if there is none at `path`.

    Example:
        >>> import envscaler as es
        >>> lib = es.open("library")                          # doctest: +SKIP
        >>> env = lib.make(lib.env_ids[0], scenario=0)        # doctest: +SKIP
        >>> observation, info = env.reset()                   # doctest: +SKIP
    """
    return Library(LibraryStore.open(Path(path)), isolation)


class Library(Shelf):
    """Environments by id, their scenarios by index or id, and `make`, which turns them into something to play.

    All environments that it makes share one sandbox, which starts with the first of them and ends with the library
    or the process. `AsyncLibrary` is its twin for event loops.
    """

    def __init__(self, store: LibraryStore, isolation: Isolation = "default") -> None:
        super().__init__(store, isolation)
        self._reset_checks = ResetChecks()
        self._sandbox: BlockingSandbox | None = None
        self._opening = threading.Lock()
        self._homes: Homes | None = None
        self._finalizer: weakref.finalize[[], Library] | None = None

    @property
    def kept_apart(self) -> Mapping[str, str]:
        """Environments that run in processes of their own though `isolation` asks for less, with the reasons."""
        return self._homes.apart if self._homes is not None else {}

    def make(
        self,
        env_id: str,
        scenario: int | str | None = None,
        *,
        reward: RewardMode = "fraction",
        seed: int | None = None,
        max_steps: int | None = None,
        observations: ObservationStyle | None = None,
        coerce: bool = False,
    ) -> ToolEnv:
        """An environment to play one scenario in.

        Args:
            scenario: index or id; None: the first one.
            reward: how the final state is rewarded, see `Verdict.reward`.
            seed: seed of the first episode; None: the scenario's.
            max_steps: steps after which an episode is truncated; None: no limit.
            coerce: put arguments into the types that the tool asks for where nothing is lost (`"3"` for an integer).
            observations: None: JSON text, or the authors' style for environments imported from their release.

        Raises:
            UsageError: for an unknown environment or scenario, after `close`, or where the isolation that is required
                cannot be had.
            SandboxError: if the machinery fails.
        """
        self._require_open()
        skeleton, chosen = self.skeleton(env_id), self.scenario(env_id, scenario)
        return ToolEnv(
            skeleton,
            chosen,
            self._sandbox_for(skeleton, chosen),
            reward=reward,
            max_steps=max_steps,
            observations=observations if observations is not None else observations_of(skeleton),
            coerce=coerce,
            seed=seed,
            reset_checks=self._reset_checks,
            owner=self,
        )

    def close(self) -> None:
        """End the sandbox that its environments share, for good; idempotent. What it holds can still be read."""
        with self._opening:
            self.closed = True
            sandbox, self._sandbox = self._sandbox, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if sandbox is not None:
            sandbox.close()

    def __enter__(self) -> Self:
        self._require_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _sandbox_for(self, skeleton: EnvSkeleton, scenario: Scenario) -> BlockingSandbox:
        with self._opening:
            self._require_open()
            if self._sandbox is None:
                self._sandbox = BlockingSandbox(isolation=self.isolation)
                self._finalizer = weakref.finalize(self, self._sandbox.close)
                # At exit the workers end by themselves, and no thread can be started any more to wait for them.
                self._finalizer.atexit = False
            sandbox = self._sandbox
        if self.isolation in ("shared", "in-process"):
            sandbox.run(lambda inner: self._settled(skeleton, scenario, inner))
        return sandbox

    async def _settled(self, skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox) -> None:
        if self._homes is None:
            self._homes = Homes(sandbox, self.isolation, self.store.cache_dir)
        await self._homes.settle(skeleton, scenario)
