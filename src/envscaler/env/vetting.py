"""`shared_faults`: everything that speaks against running sessions of a program in one process, remembered.

What follows from it is `homes`' business. The trial takes bounded time: it ends at the first call that does not come
back, and altogether after `TRIAL_S`.
"""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path
from random import Random

from envscaler.cores import usable_cores
from envscaler.env.conformance import examine_env, probe_calls, schema_findings
from envscaler.env.oracles import did_not_return
from envscaler.errors import ProgramError, StoreError, WorkerLost
from envscaler.messages import ToolCall
from envscaler.program import ways_out
from envscaler.record import Record
from envscaler.sandbox import Home, Outcome, Program, Sandbox, Session
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import JsonValue, State, digest
from envscaler.store import write_atomic
from envscaler.store.atomic import json_text, versioned
from envscaler.store.reading import read_record

VETTING = 1
"""Raised whenever what is tried changes: verdicts of another number are not looked at."""
TRIAL_S = 60.0
"""Seconds that the trial of one program may take."""
_FOLDER = "shared"


class SharingVerdict(Record):
    """What the trial of one program found."""

    env_id: str
    program: str
    """Digest of program and interface."""
    faults: tuple[str, ...]


async def shared_faults(
    skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox, cache: Path | None = None
) -> tuple[str, ...]:
    """Why sessions of an environment may not share a process; empty when they may.

    What its text shows is told by reading it, each time. Only a text that shows nothing is tried: on the contract of
    `check_env`, and whether it does in one process with others what it does in one of its own.

    Args:
        scenario: one of its scenarios, to try it on.
        cache: folder of a library in which verdicts of trials are remembered. One from it counts only for the same
            program, interface, kind of trial and isolation; and since it may come from whoever gave the library away,
            it decides no more than the trial would: never that a text with a way out, or one outside a `hardened`
            worker, may share.

    Raises:
        SandboxError: if the machinery fails.
    """
    isolation = sandbox.isolation
    if isolation.level != "hardened":
        return ("workers are not hardened on this machine",)
    outside = ways_out(skeleton.source)
    if outside:
        met = [f"its sessions could meet there: {way}" for way in outside]
        return (*met, *(f"{finding.oracle}: {finding.detail}" for finding in schema_findings(skeleton)))
    key: JsonValue = [VETTING, skeleton.digest, isolation.level, list(isolation.missing)]
    path = cache / _FOLDER / f"{digest(key)}.json" if cache is not None else None
    faults = _remembered(path, skeleton)
    if faults is None:
        faults = await _tried(skeleton, scenario, sandbox)
        if path is not None:
            verdict = SharingVerdict(env_id=skeleton.id, program=skeleton.digest, faults=faults)
            # A library that cannot be written can still be played.
            with contextlib.suppress(StoreError):
                write_atomic(path, json_text(versioned(verdict)))
    return faults


def _remembered(path: Path | None, skeleton: EnvSkeleton) -> tuple[str, ...] | None:
    if path is None or not path.is_file():
        return None
    try:
        verdict = read_record(path, SharingVerdict)
    except StoreError:
        return None
    return verdict.faults if verdict.program == skeleton.digest else None


async def _tried(skeleton: EnvSkeleton, scenario: Scenario, sandbox: Sandbox) -> tuple[str, ...]:
    try:
        async with asyncio.timeout(TRIAL_S):
            findings = await examine_env(skeleton, scenario, sandbox, patient=False)
            if findings:
                return tuple(f"it does not keep the contract: {found.oracle}: {found.detail}" for found in findings)
            reason = await compared(skeleton, scenario, sandbox, "shared")
            return (reason,) if reason is not None else ()
    except TimeoutError:
        return (f"trying it took longer than {TRIAL_S:.0f} s",)
    except WorkerLost as fault:
        return (f"it does not do again what it did: {fault}",)
    except ProgramError as fault:
        return (f"it cannot be built from every state that it leads to: {fault}",)


async def compared(
    skeleton: EnvSkeleton,
    scenario: Scenario,
    sandbox: Sandbox,
    home: Home,
    *,
    calls_per_tool: int = 4,
    seed: int = 0,
) -> str | None:
    """Why sessions of an environment cannot live in `home`; None when they tell there what they tell elsewhere.

    Calls are made in processes of its own, from the scenario's state and from the one that they lead to; then the same
    in `home`, where sessions from either state are open side by side and none is where another is. It ends at the
    first difference, and at the first call that does not come back.

    Raises:
        ProgramError: if the program cannot be loaded or built.
        SandboxError: if the machinery fails.
    """
    calls = [call for _, call in probe_calls(skeleton, scenario.initial_state, calls_per_tool, Random(seed))]
    program = Program(source=skeleton.source, class_name=skeleton.class_name)
    # Under a digest of its own: what is only tried must settle nobody else.
    tried = Program(source=f"{skeleton.source}\n\n", class_name=skeleton.class_name)
    sandbox.settle(tried, home)
    states: list[State] = [scenario.initial_state]
    trails: list[list[object]] = []
    for number in range(2):
        alone = await sandbox.open(program, states[number], seed=seed + number, clock=scenario.clock)
        try:
            trail: list[object] = [alone.digest]
            for call in calls:
                outcome = await alone.call(call.name, call.arguments)
                if did_not_return(outcome):
                    return f"{call.name} does not come back: {outcome.fault}"
                trail.append(_told(outcome))
            trails.append(trail)
            states.append(await alone.state())
        finally:
            await alone.close()
    return await _among_others(tried, scenario, sandbox, calls, states, trails, seed)


async def _among_others(
    tried: Program,
    scenario: Scenario,
    sandbox: Sandbox,
    calls: list[ToolCall],
    states: list[State],
    trails: list[list[object]],
    seed: int,
) -> str | None:
    sessions: list[Session] = []
    try:
        # As many as it takes for one process to hold one of each.
        while len(sessions) < 4 * usable_cores():
            number = len(sessions) // 2 % 2
            session = await sandbox.open(tried, states[number], seed=seed + number, clock=scenario.clock)
            sessions.append(session)
            if session.digest != trails[number][0]:
                return "among others it does not start as it does alone"
        for turn in range(len(calls) + len(sessions)):
            for place, session in enumerate(sessions):
                index = turn - place
                if 0 <= index < len(calls):
                    call = calls[index]
                    if _told(await session.call(call.name, call.arguments)) != trails[place // 2 % 2][index + 1]:
                        return f"among others it goes another way than alone in call {index} ({call.name})"
    except ProgramError as error:
        return f"it cannot be built there: {error}"
    finally:
        for session in sessions:
            await session.close()
    return None


def _told(outcome: Outcome) -> object:
    return repr(outcome.result), outcome.fault, outcome.digest
