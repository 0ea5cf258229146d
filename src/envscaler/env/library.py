"""`Library`: a folder of environments and scenarios that can be played. Writing one is the store's business."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Self, get_args

from envscaler.env.homes import Homes
from envscaler.env.observation import ObservationStyle
from envscaler.env.tool_env import ToolEnv
from envscaler.env.verdict import ResetChecks
from envscaler.errors import UsageError, require_one_of
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


class Library:
    """Environments by id, their scenarios by index or id, and `make`, which turns them into something to play.

    All environments that it makes share one sandbox, which starts with the first of them and ends with the library
    or the process.
    """

    def __init__(self, store: LibraryStore, isolation: Isolation = "default") -> None:
        require_one_of("isolation", isolation, get_args(Isolation))
        self.store = store
        self.isolation = isolation
        self.problems: list[str] = []
        """What was left out of what was read, with file and line: scenarios that a hand edit broke."""
        self._skeletons: dict[str, EnvSkeleton] = {}
        self._scenarios: dict[str, tuple[Scenario, ...]] = {}
        self._reset_checks = ResetChecks()
        self._sandbox: BlockingSandbox | None = None
        self._opening = threading.Lock()
        self._homes: Homes | None = None
        self._finalizer: weakref.finalize[[], Library] | None = None

    @property
    def path(self) -> Path:
        """The folder."""
        return self.store.path

    @property
    def kept_apart(self) -> Mapping[str, str]:
        """Environments that run in processes of their own though `isolation` asks for less, with the reason."""
        return self._homes.apart if self._homes is not None else {}

    @property
    def env_ids(self) -> tuple[str, ...]:
        """Ids of all environments, sorted."""
        return tuple(self.store.env_ids())

    def skeleton(self, env_id: str) -> EnvSkeleton:
        """The environment of that id.

        Raises:
            UsageError: if there is none; the message names the nearest.
        """
        if env_id not in self._skeletons:
            ids = self.env_ids
            if env_id not in ids:
                raise UsageError(f"{self.path} has no environment {env_id!r}; {_hint(env_id, ids, 'environments')}")
            self._skeletons[env_id] = self.store.read_environment(env_id)
        return self._skeletons[env_id]

    def scenarios(self, env_id: str) -> tuple[Scenario, ...]:
        """The scenarios of one environment, in their order."""
        self.skeleton(env_id)
        if env_id not in self._scenarios:
            self._scenarios[env_id] = tuple(self.store.scenarios(env_id, self.problems.append))
        return self._scenarios[env_id]

    def scenario(self, env_id: str, which: int | str | None = None) -> Scenario:
        """One scenario: by index, by id, or the first one.

        Raises:
            UsageError: if there is none such; the message says which there are.
        """
        scenarios = self.scenarios(env_id)
        if not scenarios:
            raise UsageError(f"environment {env_id} has no scenarios yet; make some with: envscaler scenarios")
        if which is None:
            return scenarios[0]
        if isinstance(which, int):
            if not -len(scenarios) <= which < len(scenarios):
                raise UsageError(
                    f"environment {env_id} has {len(scenarios)} scenarios; "
                    f"{which} is not one of 0 to {len(scenarios) - 1}"
                )
            return scenarios[which]
        for scenario in scenarios:
            if scenario.id == which:
                return scenario
        ids = tuple(scenario.id for scenario in scenarios)
        raise UsageError(f"environment {env_id} has no scenario {which!r}; {_hint(which, ids, 'scenarios')}")

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
            UsageError: for an unknown environment or scenario, or where the isolation that is required cannot be had.
            ProgramError: if it has to be tried before it may share a process, and cannot be loaded or built.
            SandboxError: if the machinery fails.
        """
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
        """End the sandbox that its environments share; idempotent."""
        sandbox, self._sandbox, self._homes = self._sandbox, None, None
        if self._finalizer is not None:
            self._finalizer.detach()
        if sandbox is not None:
            sandbox.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Library({str(self.path)!r})"

    def _sandbox_for(self, skeleton: EnvSkeleton, scenario: Scenario) -> BlockingSandbox:
        with self._opening:
            if self._sandbox is None:
                self._sandbox = BlockingSandbox(isolation=self.isolation)
                self._finalizer = weakref.finalize(self, self._sandbox.close)
                # At exit the workers end by themselves, and no thread can be started any more to wait for them.
                self._finalizer.atexit = False
        if self.isolation in ("shared", "in-process"):
            self._sandbox.run(lambda sandbox: self._settled(skeleton, scenario, sandbox))
        return self._sandbox

    async def _settled(self, skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox) -> None:
        if self._homes is None:
            self._homes = Homes(sandbox, self.isolation)
        await self._homes.settle(skeleton, scenario)


def observations_of(skeleton: EnvSkeleton) -> ObservationStyle:
    """The style in which an environment's results are shown: the authors' for what comes from their release."""
    return "released" if skeleton.released is not None else "json"


def _hint(wrong: str, names: tuple[str, ...], what: str) -> str:
    near = get_close_matches(wrong, names, n=3, cutoff=0.5)
    if near:
        return f"did you mean {' or '.join(near)}?"
    if not names:
        return f"it has no {what}"
    listed = ", ".join(names[:5])
    return f"it has {len(names)} {what}: {listed}{', …' if len(names) > 5 else ''}"
