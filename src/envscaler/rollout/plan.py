"""Which episodes a run asks for, which scenarios it passes over and why, and the order in which they are played."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice

from envscaler.agents import Agent
from envscaler.env import Shelf
from envscaler.errors import UsageError
from envscaler.rollout.report import Skipped
from envscaler.rollout.settings import RolloutSettings
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton

ENVIRONMENTS_AT_ONCE = 64
"""Environments that take turns. The process that workers are forked from keeps some hundred programs compiled."""


@dataclass(frozen=True)
class Assignment:
    """One episode to be played."""

    skeleton: EnvSkeleton
    scenario: Scenario
    sample: int

    @property
    def place(self) -> tuple[str, str]:
        """Environment and scenario."""
        return self.skeleton.id, self.scenario.id

    @property
    def key(self) -> tuple[str, str, int]:
        """What is unique in a run."""
        return self.skeleton.id, self.scenario.id, self.sample

    @property
    def name(self) -> str:
        """As `key`, and as long as neither program nor scenario is changed."""
        return self.name_of(str(self.sample))

    def name_of(self, sample: str) -> str:
        """The name that it has with another sample."""
        return f"{self.skeleton.id} {self.scenario.id} {sample} {self.skeleton.digest} {self.scenario.digest}"


@dataclass
class Plan:
    """What is asked for, and why some of it is not played."""

    playable: list[tuple[EnvSkeleton, Scenario]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    order: dict[tuple[str, str], int] = field(default_factory=dict)
    """Index of each scenario in its environment, by environment and scenario id."""

    def names(self, samples: int, done: Container[tuple[str, str, int]]) -> Callable[[str], bool]:
        """Whether a text is the name of an episode that is asked for and not done."""
        expected = {Assignment(*pair, 0).name_of("*"): pair for pair in self.playable}

        def wanted(name: str) -> bool:
            place, _, rest = name.rpartition(" ")
            place, _, env_digest = place.rpartition(" ")
            place, _, sample = place.rpartition(" ")
            pair = expected.get(f"{place} * {env_digest} {rest}")
            if pair is None or not sample.isdecimal() or int(sample) >= samples:
                return False
            return Assignment(*pair, int(sample)).key not in done

        return wanted


def plan_episodes(
    library: Shelf, settings: RolloutSettings, agent: Agent, only: Collection[tuple[str, str]] | None = None
) -> Plan:
    """The plan of a run.

    Args:
        only: environment and scenario of all that may be played; None: everything.

    Raises:
        UsageError: for an unknown environment, or if there is no scenario at all.
    """
    plan = Plan()
    found = False
    for env_id in settings.env_ids if settings.env_ids is not None else library.env_ids:
        skeleton = library.skeleton(env_id)
        scenarios = library.scenarios(env_id)
        plan.order.update({(env_id, scenario.id): index for index, scenario in enumerate(scenarios)})
        if not scenarios:
            plan.skipped.append(
                Skipped(
                    env_id=env_id,
                    scenario_id=None,
                    reason=f"no scenarios there; make some with: envscaler scenarios {library.path}",
                )
            )
        for scenario in scenarios[: settings.scenarios_per_env]:
            if only is not None and (env_id, scenario.id) not in only:
                continue
            found = True
            fault = (
                f"made for another version of the program; renew them with: envscaler scenarios {library.path} --renew"
                if scenario.env_digest != skeleton.digest
                else agent.unplayable(scenario)
            )
            if fault is None:
                plan.playable.append((skeleton, scenario))
            else:
                plan.skipped.append(Skipped(env_id=env_id, scenario_id=scenario.id, reason=fault))
    if not found:
        raise UsageError(f"{library.path} has no scenarios to play; make some with: envscaler scenarios {library.path}")
    return plan


def assignments(
    playable: Sequence[tuple[EnvSkeleton, Scenario]], samples: int, *, at_once: int = ENVIRONMENTS_AT_ONCE
) -> Iterator[Assignment]:
    """The episodes in the order in which they begin.

    All samples of a scenario follow each other; then it is another environment's turn, so that a run that ends early
    has something of each.

    Args:
        at_once: environments that take turns; the next one joins when one of them has no more scenarios.
    """
    shelves = (iter(list(group)) for _, group in groupby(playable, key=lambda pair: pair[0].id))
    turns = deque(islice(shelves, at_once))
    while turns:
        shelf = turns.popleft()
        pair = next(shelf, None)
        if pair is None:
            turns.extend(islice(shelves, 1))
            continue
        turns.append(shelf)
        for sample in range(samples):
            yield Assignment(*pair, sample)
