"""What rollouts cost, how busy they keep an endpoint, and what a whole collection takes.

Collection: every scenario of an offline library, four samples each, played by the oracle in the hardened sandbox and
exported; then every reward is played again. Endpoint: the rate of model calls at a server of constant latency, from
the moment in which all episodes are in play that may be until there is none left to begin; ideal would be their number
divided by the latency. Step: CPU of this process, everything but the workers, with a model that answers at once.
Each is measured in an interpreter of its own: `python -m perf.rollouts collection|endpoint|step SIZE…`.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from envscaler.cli import collect_rarely
from envscaler.cores import usable_cores
from envscaler.env import open_library
from envscaler.export import export_sft
from envscaler.llm import Completion, ModelRequest
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.models import Models, ModelSettings, open_models
from envscaler.program import tool_schemas
from envscaler.roles.role import Prompts
from envscaler.rollout import RolloutReport, RolloutSettings, run_replay, run_rollout
from envscaler.scenario import Check, Scenario
from envscaler.skeleton import EnvDescription, EnvSkeleton, Origin, ToolSpec
from envscaler.store import LibraryStore
from envscaler.synth import SynthSettings, run_synth
from envscaler.trajectory import Usage
from perf.latency_server import replies_of, running
from perf.synthesis import TASKS, MemoryWatch
from perf.targets import Target
from perf.usage import Spent, measured
from perf.workloads import desk

_SAMPLES = 4
_EPISODES = 2000 * _SAMPLES
"""Episodes for which the time of a collection is to be told."""
_TASKS, _SCENARIOS = 160, 50
"""Tasks of the examples and scenarios for each environment: something over 2,000 scenarios."""
_LATENCY_S, _IN_FLIGHT = 4.0, 512
_STEPS = (10, 30)
_LAG_EVERY_S = 0.01
_CHECKS = (
    (
        "Is the thing lent?",
        "goal",
        "return any(loan['thing_id'] == 'T00000' for loan in final_state['loans'].values())",
    ),
    ("Are all members there?", "guard", "return final_state['members'] == initial_state['members']"),
)
_USAGE = Usage(input_tokens=500, output_tokens=20)

Figures = dict[str, Any]


def report(console: Console, *, quick: bool = False) -> list[Target]:
    """Measure and print.

    Args:
        quick: a tenth of the size, for trials; no target is told then.
    """
    collected = _measured("collection", *((12, 5) if quick else (_TASKS, _SCENARIOS)))
    table = Table(
        "oracle, hardened, with export", "episodes", "s", "CPU, all, s", "replay, s", "rewards equal", box=None
    )
    table.add_row(
        f"{collected['environments']} environments × {_SAMPLES} samples",
        f"{collected['episodes']:,}",
        f"{collected['wall_s']:.0f}",
        f"{collected['cpu_s']:.0f}",
        f"{collected['replay_s']:.0f}",
        f"{collected['rewards_equal']:,}",
    )
    console.print(table)
    in_flight = 64 if quick else _IN_FLIGHT
    served = _measured("endpoint", _LATENCY_S, in_flight, 3 * in_flight)
    table = Table(
        f"endpoint, {_LATENCY_S:g} s latency",
        "calls a second",
        "of the ideal",
        "whole run",
        "CPU, ms a call",
        "lag, ms",
        "MB",
        box=None,
    )
    table.add_row(
        f"{in_flight} in flight",
        f"{served['rate']:.1f}",
        f"{served['share']:.2f}",
        f"{served['mean_rate']:.1f}",
        f"{served['parent_s'] / served['calls'] * 1e3:.1f}",
        f"{served['lag_s'] * 1e3:.0f} (99 of 100: {served['lag_99_s'] * 1e3:.0f})",
        _memory(served),
    )
    console.print(table)
    stepped = [_measured("step", steps, 40 if quick else 400) for steps in _STEPS]
    table = Table("scripted model, steps an episode", "CPU, µs a step", "CPU, ms an episode", "MB", box=None)
    for steps, figures in zip(_STEPS, stepped, strict=True):
        cpu_s = figures["parent_s"]
        table.add_row(
            str(steps),
            f"{cpu_s / figures['steps'] * 1e6:.0f}",
            f"{cpu_s / figures['episodes'] * 1e3:.1f}",
            _memory(figures),
        )
    # What an episode costs whatever its length (a process, checks, a line of the run) is no part of a step.
    few, many = stepped
    step_s = (many["parent_s"] / many["episodes"] - few["parent_s"] / few["episodes"]) / (_STEPS[1] - _STEPS[0])
    table.add_row("each further step", f"{step_s * 1e6:.0f}", "", "")
    console.print(table)
    if quick:
        return []
    return [
        Target(
            "2,000 scenarios × 4 by the oracle, with export",
            collected["wall_s"] * _EPISODES / collected["episodes"],
            300,
            "s",
        ),
        Target(
            "of these, rewards that replay gives again",
            collected["rewards_equal"] / collected["episodes"],
            1.0,
            "",
            True,
        ),
        Target("calls a second with 512 in flight, of the ideal", served["share"], 0.9, "", True),
        Target("own CPU of a further step, scripted model", step_s * 1e6, 150, "µs CPU"),
        Target("memory with 512 episodes in flight", served["peak_mb"] or served["own_mb"], 2000, "MB"),
    ]


def _memory(figures: Figures) -> str:
    everything = f", {figures['peak_mb']:.0f} with all below" if figures["peak_mb"] is not None else ""
    return f"{figures['own_mb']:.0f}{everything}"


def _measured(what: str, *sizes: float) -> Figures:
    command = [sys.executable, "-m", "perf.rollouts", what, *map(str, sizes)]
    output = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]
    ).stdout
    figures: Figures = json.loads(output.splitlines()[-1])
    return figures


# -- what is measured, in an interpreter of its own ---------------------------------------------------------


def collection(tasks: int, scenarios: int) -> Figures:
    """Play a library four times over, export it, and play the run again."""
    library = open_library(offline_library(tasks, scenarios))
    with tempfile.TemporaryDirectory() as folder:
        settings = RolloutSettings(agent="oracle", samples=_SAMPLES, out=Path(folder) / "run")
        with measured() as playing:
            played = asyncio.run(run_rollout(library, settings))
            export_sft(played.run, Path(folder) / "rows.jsonl")
        with measured() as replaying:
            replayed = asyncio.run(run_replay(library, played.run))
    return {
        "environments": len(library.env_ids),
        "episodes": played.played,
        "wall_s": playing.wall_s,
        "cpu_s": playing.cpu_s,
        "replay_s": replaying.wall_s,
        "rewards_equal": replayed.summary.reward_equal,
    }


def offline_library(tasks: int, scenarios: int) -> Path:
    """A library of the embedded model, kept for the next time; making it is no part of any figure."""
    folder = Path(tempfile.gettempdir()) / f"envscaler-perf-{tasks}x{scenarios}"
    settings = SynthSettings(
        tasks=TASKS, library=folder, limit=tasks, scenarios=scenarios, rounds=10, workers=usable_cores()
    )

    async def make() -> None:
        async with open_models(ModelSettings()) as models:
            await run_synth(settings, models, Prompts())

    asyncio.run(make())
    return folder


def endpoint(latency_s: float, in_flight: int, episodes: int) -> Figures:
    """Play against a server that takes the same time for every answer."""
    lags: list[float] = []

    async def play(library: Path, url: str, out: Path) -> RolloutReport:
        settings = RolloutSettings(concurrency=in_flight, out=out)
        watching = asyncio.create_task(_watch_lag(lags))
        try:
            async with open_models(ModelSettings(model="scripted", base_url=url, max_in_flight=in_flight)) as models:
                return await run_rollout(open_library(library), settings, models)
        finally:
            watching.cancel()

    with tempfile.TemporaryDirectory() as folder, running(latency_s) as url:
        library = desk_library(Path(folder) / "library", episodes)
        with MemoryWatch() as memory, measured() as spent:
            played = asyncio.run(play(library, url, Path(folder) / "run"))
        with urllib.request.urlopen(url) as reply:
            full_rate = _full_rate(json.load(reply), in_flight)
    calls = sum(map(replies_of, range(episodes)))
    _require_finished(played, episodes)
    lags.sort()
    return {
        "calls": calls,
        "rate": full_rate,
        "mean_rate": calls / spent.wall_s,
        "share": full_rate / (in_flight / latency_s),
        "lag_s": lags[-1],
        "lag_99_s": lags[len(lags) * 99 // 100],
        **_resources(spent, memory),
    }


def _full_rate(moments: dict[str, list[float]], in_flight: int) -> float:
    """Replies a second while as many episodes were in play as may be."""
    start, end = sorted(moments["begun"])[in_flight - 1], max(moments["begun"])
    return sum(start < moment <= end for moment in moments["sent"]) / (end - start)


async def _watch_lag(lags: list[float]) -> None:
    while True:
        due = time.perf_counter() + _LAG_EVERY_S
        await asyncio.sleep(_LAG_EVERY_S)
        lags.append(max(0.0, time.perf_counter() - due))


def step(steps: int, episodes: int) -> Figures:
    """Play with a model in this process that answers at once."""

    async def play(models: Models, library: Path, out: Path) -> RolloutReport:
        return await run_rollout(open_library(library), RolloutSettings(out=out), models)

    with tempfile.TemporaryDirectory() as folder:
        library = desk_library(Path(folder) / "library", episodes)
        models = open_models(ModelSettings(), offline=calling(steps - 1))
        with MemoryWatch() as memory, measured() as spent:
            played = asyncio.run(play(models, library, Path(folder) / "run"))
    _require_finished(played, episodes)
    return {"episodes": episodes, "steps": episodes * steps, **_resources(spent, memory)}


def _require_finished(played: RolloutReport, episodes: int) -> None:
    if played.scores.stops != {"finished": episodes}:
        raise RuntimeError(f"not all episodes came to their end: {played.scores.stops}")


def _resources(spent: Spent, memory: MemoryWatch) -> Figures:
    return {
        "wall_s": spent.wall_s,
        "parent_s": spent.parent_s,
        "cpu_s": spent.cpu_s,
        "own_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "peak_mb": memory.peak_mb,
    }


# -- what is played -----------------------------------------------------------------------------------------


def desk_library(folder: Path, scenarios: int) -> Path:
    """A library of one environment with so many scenarios."""
    workload = desk()
    schemas = tool_schemas(workload.program.source, workload.program.class_name)
    environment = EnvSkeleton(
        id="desk",
        description=EnvDescription(summary="Lending desk", introduction="Members borrow things."),
        tools=tuple(
            ToolSpec(name=name, description=f"{name} of the desk", parameters=schemas[name], effect=effect)
            for name, effect in (("get_member", "query"), ("lend", "update"), ("give_back", "update"))
        ),
        class_name=workload.program.class_name,
        source=workload.program.source,
        origin=Origin(),
    )
    checks = tuple(
        Check(description=text, kind=kind, source=f"def check_func(final_state):\n    {source}\n")
        for text, kind, source in _CHECKS
    )
    store = LibraryStore.create(folder)
    store.write_environment(
        environment,
        None,
        [
            Scenario(
                id=f"desk-s{number:04d}",
                env_id="desk",
                env_digest=environment.digest,
                initial_state=workload.state,
                task=f"Lend thing T00000, please; I am visitor {number}.",
                checks=checks,
            )
            for number in range(scenarios)
        ],
    )
    store.write_index({})
    return folder


def calling(calls: int) -> ScriptedModel:
    """A model that makes so many calls and then says that it is done."""
    made = desk().calls[:calls]

    def answer(request: ModelRequest) -> Scripted:
        seen = len(request.messages) // 2 - 1  # behind prompt and task, a call and its observation each
        if seen >= calls:
            return Completion(message=AssistantMessage(content="Done."), usage=_USAGE, model="scripted", cost_usd=0.0)
        name, arguments = made[seen]
        call = ToolCall(name=name, arguments=dict(arguments), id=f"c{seen}")
        message = AssistantMessage(tool_calls=(call,))
        return Completion(message=message, finish_reason="tool_calls", usage=_USAGE, model="scripted", cost_usd=0.0)

    return ScriptedModel(answer, name="scripted")


def main() -> None:
    """Print the figures of one measurement as JSON."""
    what, *sizes = sys.argv[1:]
    collect_rarely()  # as the command does
    if what == "collection":
        figures = collection(int(sizes[0]), int(sizes[1]))
    elif what == "endpoint":
        figures = endpoint(float(sizes[0]), int(sizes[1]), int(sizes[2]))
    else:
        figures = step(int(sizes[0]), int(sizes[1]))
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
