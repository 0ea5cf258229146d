"""`run_prove`: proves the scenarios of a library whose proofs are missing or stale, and keeps the proofs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from envscaler.cores import usable_cores
from envscaler.engine import NullProgress, Progress, Serve, Tell, spread
from envscaler.errors import SandboxError, StoreError, UsageError
from envscaler.evidence import Proof, Thresholds
from envscaler.proof.prove import is_stale, prove
from envscaler.record import Record
from envscaler.sandbox import Isolation, Limits, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.store import LibraryStore

STAGE = "prove"
_PORTION = 8
"""Scenarios that are handed out together."""
_WRITTEN_EVERY = 64
"""Proofs that a kill loses at most."""


class ProvedScenario(Record):
    """What came of one scenario."""

    env_id: str
    scenario_id: str
    fresh: bool
    """Whether it was proved now; else its proof is still valid."""
    mutation_score: float | None = None
    over_edits_caught: float | None = None
    variants_passed: float | None = None
    mutants: int = 0
    variants: int = 0
    shortfalls: tuple[str, ...] = ()
    """Why it is not accepted; empty when it is."""


class ProveReport(Record):
    """What one run of `prove` did."""

    library: Path
    thresholds: Thresholds
    scenarios: tuple[ProvedScenario, ...]

    @property
    def accepted(self) -> int:
        """Scenarios that reach the thresholds."""
        return sum(not row.shortfalls for row in self.scenarios)

    def mean(self, figure: str) -> float | None:
        """The mean of a figure over the scenarios that have it."""
        values = [value for row in self.scenarios if (value := getattr(row, figure)) is not None]
        return sum(values) / len(values) if values else None


@dataclass(frozen=True)
class _Work:
    """Some scenarios of an environment."""

    skeleton: EnvSkeleton
    scenarios: tuple[Scenario, ...]


async def run_prove(
    library: Path,
    *,
    env_id: str | None = None,
    scenario_id: str | None = None,
    thresholds: Thresholds | None = None,
    force: bool = False,
    workers: int | None = None,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> ProveReport:
    """Prove what has no valid proof. Nothing is removed: the report says what is not accepted.

    Args:
        env_id, scenario_id: only these; None: all.
        force: also where the stored proof is still valid.
        workers: processes; None: as many as there are cores. The result is the same with any number.

    Raises:
        StoreError: if there is no such library, environment or scenario.
        SandboxError: if the machinery fails.
    """
    store = LibraryStore.open(library)
    names = (env_id,) if env_id is not None else store.env_ids()
    thresholds, progress = thresholds or Thresholds(), progress or NullProgress()
    with store.writing():
        progress.stage(STAGE, sum(1 for name in names for _ in _chosen(store, name, scenario_id)))
        work = spread(
            f"{__name__}:serve",
            (workers or usable_cores(), isolation),
            _stale(store, names, scenario_id, force, progress),
            workers=workers or usable_cores(),
        )
        fresh: set[tuple[str, str]] = set()
        with closing(_Keeper(store)) as keeper:
            async with aclosing(work) as answers:
                async for answer in answers:
                    if isinstance(answer, str):
                        raise SandboxError(answer)
                    fresh.update((proof.env_id, proof.scenario_id) for proof in answer)
                    keeper.keep(answer)
                    progress.advance(STAGE, len(answer))
    rows = [
        _row(proof, thresholds, fresh=(name, proof.scenario_id) in fresh)
        for name in names
        for proof in store.proofs(name)
        if scenario_id in (None, proof.scenario_id)
    ]
    if not rows:
        what = f"no scenario {scenario_id!r}" if scenario_id is not None else "no scenarios to prove"
        raise UsageError(f"{library} has {what}; `envscaler scenarios` makes them")
    return ProveReport(library=library, thresholds=thresholds, scenarios=tuple(rows))


def _row(proof: Proof, thresholds: Thresholds, *, fresh: bool) -> ProvedScenario:
    return ProvedScenario(
        env_id=proof.env_id,
        scenario_id=proof.scenario_id,
        fresh=fresh,
        mutation_score=proof.mutation_score,
        over_edits_caught=proof.over_edits_caught,
        variants_passed=proof.variants_passed,
        mutants=len(proof.mutants),
        variants=len(proof.of("variant", "alternative")),
        shortfalls=thresholds.shortfalls(proof),
    )


def _stale(
    store: LibraryStore, names: Sequence[str], scenario_id: str | None, force: bool, progress: Progress
) -> Iterator[_Work]:
    """What has no valid proof, in portions."""
    for name in names:
        skeleton, known = store.read_environment(name), _known(store, name)
        portion: list[Scenario] = []
        for scenario in _chosen(store, name, scenario_id):
            proof = known.get(scenario.id)
            if proof is not None and not force and not is_stale(proof, skeleton, scenario):
                progress.advance(STAGE)
                continue
            portion.append(scenario)
            if len(portion) == _PORTION:
                yield _Work(skeleton, tuple(portion))
                portion = []
        if portion:
            yield _Work(skeleton, tuple(portion))


def _known(store: LibraryStore, name: str) -> dict[str, Proof]:
    try:
        return {proof.scenario_id: proof for proof in store.proofs(name)}
    except StoreError:
        return {}  # proofs can be made again


class _Keeper:
    """Puts proofs beside those that a library has, one environment after the other."""

    def __init__(self, store: LibraryStore) -> None:
        self._store = store
        self._name: str | None = None
        self._known: dict[str, Proof] = {}
        self._unwritten = 0

    def keep(self, proofs: Sequence[Proof]) -> None:
        """Take proofs of one environment; they are written now and then."""
        name = proofs[0].env_id
        if name != self._name:
            self.close()
            self._name, self._known = name, _known(self._store, name)
        self._known |= {proof.scenario_id: proof for proof in proofs}
        self._unwritten += len(proofs)
        if self._unwritten >= _WRITTEN_EVERY:
            self.close()

    def close(self) -> None:
        """Write what is not written yet, in the order of the scenarios."""
        if self._name is not None and self._unwritten:
            ids = [scenario.id for scenario in self._store.scenarios(self._name)]
            self._store.replace_proofs(self._name, [self._known[key] for key in ids if key in self._known])
            self._unwritten = 0


def _chosen(store: LibraryStore, name: str, scenario_id: str | None) -> Iterator[Scenario]:
    return (scenario for scenario in store.scenarios(name) if scenario_id in (None, scenario.id))


@asynccontextmanager
async def serve(argument: tuple[int, Isolation]) -> AsyncIterator[Serve]:
    """Proves portions; entered once in each process."""
    processes, isolation = argument
    async with Sandbox(Limits(sandboxes=processes), isolation=isolation) as sandbox:

        async def answer(work: _Work, tell: Tell) -> Sequence[Proof] | str:
            try:
                async with sandbox.judge() as judge:
                    return [await prove(work.skeleton, scenario, sandbox, judge) for scenario in work.scenarios]
            except SandboxError as error:
                return str(error)

        yield answer
