"""What it costs to judge a final state with the check functions of a scenario: in a checker that is up, in a process
of its own, and in this process, as the baseline does."""

from __future__ import annotations

import asyncio
from statistics import fmean

from rich.console import Console
from rich.table import Table

from envscaler.canonical import from_json, to_json
from envscaler.sandbox import CheckOutcome, Judge, Sandbox
from envscaler.sandbox.inside.loader import check_value
from envscaler.state import State
from perf.targets import Target
from perf.usage import Spent, measured
from perf.workloads import RELEASE, Workload, released

_ROUNDS = 7
_SETTLING_S = 0.05


def report(console: Console) -> list[Target]:
    """Measure and print."""
    workloads = [workload for workload in released() if workload.checks]
    if not workloads:
        console.print(f"The released check functions are not in {RELEASE}: checks are not measured.")
        return _targets(None, None)
    spent, count = asyncio.run(_compare(workloads))
    checks = fmean(len(workload.checks) for workload in workloads)
    table = Table(f"checks of a scenario ({checks:.0f} on average)", "ms wall", "ms CPU, all", box=None)
    for name, used in spent.items():
        table.add_row(name, f"{used.wall_s / count * 1e3:.2f}", f"{used.cpu_s / count * 1e3:.2f}")
    console.print(table)
    return _targets(spent["warm checker"].wall_s / count * 1e3, spent["process of its own"].wall_s / count * 1e3)


def _targets(warm_ms: float | None, own_ms: float | None) -> list[Target]:
    return [
        Target("checks of a scenario, warm checker", warm_ms, 0.5, "ms"),
        Target("checks of a scenario, process of its own", own_ms, 6, "ms"),
    ]


async def _compare(workloads: list[Workload]) -> tuple[dict[str, Spent], int]:
    """The best of the rounds of what all the scenarios together took, and how many they are."""
    rounds: dict[str, list[Spent]] = {"in this process (baseline)": [], "warm checker": [], "process of its own": []}
    async with Sandbox() as sandbox:
        ends = [(workload, await _final_state(sandbox, workload)) for workload in workloads]
        async with sandbox.judge() as judge:
            # Checks that raise end the checker, so that none of those left would be warm.
            ends = [(workload, final) for workload, final in ends if _sound(await _judged(judge, workload, final))]
            for workload, final in ends[:1]:
                await _judged(judge, workload, final)
            for _ in range(_ROUNDS):
                here, warm, own = rounds.values()
                with measured() as spent:
                    for workload, final in ends:
                        _judged_here(workload, final)
                here.append(spent)
                with measured() as spent:
                    for workload, final in ends:
                        await _judged(judge, workload, final)
                warm.append(spent)
                with measured() as spent:
                    for workload, final in ends:
                        await _judged(sandbox, workload, final)
                await asyncio.sleep(_SETTLING_S)
                own.append(spent)
    return {name: _best(found) for name, found in rounds.items()}, max(1, len(ends))


async def _final_state(sandbox: Sandbox, workload: Workload) -> State:
    session = await sandbox.open(workload.program, workload.state)
    try:
        for name, arguments in workload.calls:
            await session.call(name, arguments)
        return await session.state()
    finally:
        await session.close()


async def _judged(judge: Judge | Sandbox, workload: Workload, final: State) -> tuple[CheckOutcome, ...]:
    return await judge.check(workload.checks, initial_state=workload.state, final_state=final)


def _sound(outcomes: tuple[CheckOutcome, ...]) -> bool:
    return all(outcome.error is None and not outcome.mutated for outcome in outcomes)


def _judged_here(workload: Workload, final: State) -> None:
    initial, end = to_json(workload.state), to_json(final)
    for source in workload.checks:
        check_value(source, from_json(initial), from_json(end))


def _best(spent: list[Spent]) -> Spent:
    return Spent(*(min(values) for values in zip(*(vars(one).values() for one in spent), strict=True)))
