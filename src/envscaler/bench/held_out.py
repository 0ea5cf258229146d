"""`run_held_out`: the scenarios of a library that nothing trains on, played and reported as a benchmark.

Which environments are held out is the business of `library split`; what an episode is, that of rollouts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.bench.catalogue import HELD_OUT, Benchmark
from envscaler.bench.installation import Installed, Recorded
from envscaler.bench.settings import RUNS, played_of, rollout_settings, tasks_asked_for
from envscaler.bench.tasks import BenchTask, scenario_task
from envscaler.engine import Progress
from envscaler.env import Shelf
from envscaler.errors import UsageError
from envscaler.evidence import Proof
from envscaler.proof import is_stale
from envscaler.roles.role import Prompts
from envscaler.rollout.report import RolloutReport
from envscaler.rollout.run import run_rollout
from envscaler.rollout.settings import STEP_LIMITS, RolloutSettings
from envscaler.state import digest
from envscaler.store import LibraryStore, held_out, splits_of
from envscaler.trajectory import Mode

if TYPE_CHECKING:
    from envscaler.models import Models

_MODES: dict[str, Mode] = {"non-conversation": "non-conversation", "conversation": "conversation"}


def held_out_of(library: LibraryStore) -> tuple[Benchmark, Installed]:
    """What a library holds out, in the form of an installed benchmark; floors and ceilings are those of its proofs.

    Tasks of a part stand in such an order that the first few are of as many environments as possible.

    Raises:
        UsageError: if nothing is held out.
    """
    splits = splits_of(library)
    tasks: list[tuple[int, BenchTask]] = []
    recorded: dict[str, Recorded] = {}
    for env_id in sorted(held_out(library) & set(library.env_ids())):
        skeleton = library.read_environment(env_id)
        proofs = {proof.scenario_id: proof for proof in library.proofs(env_id)}
        for index, scenario in enumerate(library.scenarios(env_id)):
            name = scenario_task(env_id, scenario.id)
            told = BenchTask(
                id=name,
                split=splits[env_id],
                group=env_id,
                digest=digest([skeleton.digest, scenario.digest]),
                gold=None if scenario.solution is None else (scenario.solution,),
            )
            tasks.append((index, told))
            proof = proofs.get(scenario.id)
            if proof is not None and not is_stale(proof, skeleton, scenario):
                recorded[name] = _recorded(proof)
    if not tasks:
        raise UsageError(
            f"{library.path} holds out no scenarios; envscaler library split puts environments into other splits than "
            "train"
        )
    ordered = tuple(task for _, task in sorted(tasks, key=lambda pair: (pair[1].split, pair[0], pair[1].group)))
    names = tuple(dict.fromkeys(task.split for task in ordered))
    benchmark = replace(
        HELD_OUT, splits=names, tasks={name: sum(task.split == name for task in ordered) for name in names}
    )
    installed = Installed(
        benchmark=HELD_OUT.name, packages=(), version="", python="", worker="", tasks=ordered, recorded=recorded
    )
    return benchmark, installed


async def run_held_out(
    library: Shelf,
    settings: RolloutSettings,
    models: Models | None = None,
    prompts: Prompts | None = None,
    *,
    options: Mapping[str, str] | None = None,
    names: tuple[str, ...] = (),
    progress: Progress | None = None,
    runs: Path | None = None,
) -> RolloutReport:
    """Play the held-out scenarios of a library. Killed at any moment, the same call plays what is missing.

    Args:
        settings: as of rollouts; `env_ids` are splits of the library, `scenarios_per_env` scenarios of each.
        models: needed by the model agent and in conversation.
        options: `mode`.
        names: scenarios to play, as ENV/SCENARIO; empty: all.
        runs: where runs lie that name no folder; None: in the working folder.

    Raises:
        UsageError: for unknown splits, scenarios or options, a library that holds out nothing, or a run folder of
            something else.
        BudgetExhausted: a limit was reached; what is finished is kept and the same call goes on.
        EndpointUnavailable: the endpoint stayed down; likewise.
    """
    benchmark, installed = held_out_of(library.store)
    chosen = benchmark.chosen(options or {})
    mode = _MODES[chosen["mode"]]
    settings = rollout_settings(replace(benchmark, step_limit=STEP_LIMITS[mode]), settings)
    tasks = tasks_asked_for(benchmark, installed, settings, names)
    places = [(task.group, task.id.removeprefix(scenario_task(task.group, ""))) for task in tasks]
    settings = settings.model_copy(
        update={
            "mode": mode,
            "env_ids": tuple(sorted({env_id for env_id, _ in places})),
            "scenarios_per_env": None,
        }
    )
    return await run_rollout(
        library,
        settings,
        models,
        prompts,
        progress,
        only=frozenset(places),
        played=played_of(benchmark, installed, chosen),
        runs=(runs if runs is not None else Path(RUNS)) / benchmark.name,
    )


def _recorded(proof: Proof) -> Recorded:
    reason = None if proof.solved else "; ".join(proof.unproved) or "not all of its checks hold after it"
    return Recorded(
        passes=proof.solved,
        reason=reason,
        noop=any(not probe.failed for probe in proof.of("noop")),
    )
