"""`Shelf`: the environments and scenarios of a library folder, each read once. Playing them is `library`'s business."""

from __future__ import annotations

from difflib import get_close_matches
from pathlib import Path
from typing import get_args

from envscaler.env.observation import ObservationStyle
from envscaler.errors import UsageError, require_integer, require_one_of
from envscaler.sandbox import Isolation
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore


class Shelf:
    """Environments by id, their scenarios by index or id."""

    def __init__(self, store: LibraryStore, isolation: Isolation = "default") -> None:
        require_one_of("isolation", isolation, get_args(Isolation))
        self.store = store
        self.isolation = isolation
        self.problems: list[str] = []
        """What was left out of what was read, with file and line: scenarios that a hand edit broke."""
        self.closed = False
        """Whether `close` was called: nothing can be played any more, what it holds can still be read."""
        self._skeletons: dict[str, EnvSkeleton] = {}
        self._scenarios: dict[str, tuple[Scenario, ...]] = {}

    @property
    def path(self) -> Path:
        """The folder."""
        return self.store.path

    @property
    def env_ids(self) -> tuple[str, ...]:
        """Ids of all environments, sorted."""
        return tuple(self.store.env_ids())

    def skeleton(self, env_id: str) -> EnvSkeleton:
        """The environment of that id.

        Raises:
            UsageError: if there is none; the message names the nearest.
        """
        if not isinstance(env_id, str):
            raise UsageError(f"an environment is named by its id, not by {env_id!r}")
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
        if not isinstance(which, str):
            which = require_integer("the index of a scenario", which)
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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.path)!r})"

    def _require_open(self) -> None:
        if self.closed:
            raise UsageError(f"the library {self.path} was closed; open it again to play in it")


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
    number = f"{len(names)} {what}" if len(names) > 1 else f"only one {what.removesuffix('s')}"
    return f"it has {number}: {listed}{', …' if len(names) > 5 else ''}"
