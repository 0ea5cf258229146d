"""`check_env`: whether an environment keeps the contract that every one must keep, whatever it is about.

The contract: it resets completely, is deterministic, its state is JSON, its schemas match its methods, query tools do
not write, calls that raise leave the state as it was. Whether tools do the *right* thing is `synth.assess`'s business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import Random

from envscaler.assessment import Finding
from envscaler.env.oracles import try_call
from envscaler.errors import EnvScalerError, ProgramError
from envscaler.messages import ToolCall
from envscaler.probe import valid_arguments, wrong_arguments
from envscaler.program import schemas_agree, tool_schemas
from envscaler.record import JsonSchema
from envscaler.sandbox import Program, Sandbox, Session
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.state import State, digest


def check_env(
    skeleton: EnvSkeleton, state: State | Scenario, *, calls_per_tool: int = 4, seed: int = 0
) -> tuple[Finding, ...]:
    """`examine_env` without an event loop of the caller's, in a sandbox of its own.

    Raises:
        SandboxError: if the machinery fails.
    """

    async def examine() -> tuple[Finding, ...]:
        async with Sandbox() as sandbox:
            return await examine_env(skeleton, state, sandbox, calls_per_tool=calls_per_tool, seed=seed)

    # A thread of its own, so that it also works where a loop is running already.
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(lambda: asyncio.run(examine())).result()


async def examine_env(
    skeleton: EnvSkeleton,
    state: State | Scenario,
    sandbox: Sandbox,
    *,
    calls_per_tool: int = 4,
    seed: int = 0,
    patient: bool = True,
) -> tuple[Finding, ...]:
    """What an environment does that none may do; empty when it keeps the contract.

    Args:
        state: the state to start from, or the scenario that has one.
        calls_per_tool: calls made of each tool, half of them wrong on purpose.
        seed: seed of the session and of the arguments.
        patient: go on after a call that did not come back; else that is the last finding.
    """
    initial, clock = (state.initial_state, state.clock) if isinstance(state, Scenario) else (state, None)
    findings = list(schema_findings(skeleton))
    program = Program(source=skeleton.source, class_name=skeleton.class_name)

    async def opened() -> Session:
        if clock is None:
            return await sandbox.open(program, initial, seed=seed)
        return await sandbox.open(program, initial, seed=seed, clock=clock)

    try:
        session = await opened()
    except ProgramError as error:
        return (*findings, Finding(oracle="not_loadable", detail=str(error)))
    try:
        reset_digest = session.digest
        findings += _reset_findings(initial, await session.state(), skeleton)
        calls = probe_calls(skeleton, initial, calls_per_tool, Random(seed))
        trail: list[tuple[ToolCall, str, str]] = []
        for tool, call in calls:
            examined = await try_call(session, tool, call)
            findings += examined.findings
            if examined.hung and not patient:
                return _distinct(findings)
            trail.append((call, repr(examined.outcome.result), examined.outcome.digest))
    finally:
        await session.close()
    session = await opened()
    try:
        if session.digest != reset_digest:
            findings.append(
                Finding(oracle="reset_incomplete", detail="a second episode starts from another state than the first")
            )
        for index, (call, result, after) in enumerate(trail):
            outcome = await session.call(call.name, call.arguments)
            if (repr(outcome.result), outcome.digest) != (result, after):
                findings.append(
                    Finding(
                        oracle="nondeterministic",
                        detail=f"played again from reset, call {index} ({call.name}) went another way",
                    )
                )
                break
    finally:
        await session.close()
    return _distinct(findings)


def schema_findings(skeleton: EnvSkeleton) -> list[Finding]:
    """Where the tools are not what the methods say; nothing is run."""
    try:
        derived: Mapping[str, JsonSchema] = tool_schemas(skeleton.source, skeleton.class_name)
    except EnvScalerError as error:
        return [Finding(oracle="not_loadable", detail=str(error))]
    findings = []
    for tool in skeleton.tools:
        if tool.name not in derived:
            findings.append(
                Finding(oracle="schema", detail=f"the tool {tool.name} has no method in {skeleton.class_name}")
            )
            continue
        findings += [
            Finding(oracle="schema", detail=f"{tool.name}: {difference}")
            for difference in schemas_agree(tool.parameters, derived[tool.name])
        ]
    return findings


def _reset_findings(initial: State, state: State, skeleton: EnvSkeleton) -> list[Finding]:
    changed = sorted(key for key, part in initial.items() if key not in state or digest(state[key]) != digest(part))
    if not changed:
        return []
    return [
        Finding(
            oracle="reset_incomplete",
            detail=f"{skeleton.class_name} does not start from the state given: {', '.join(changed)} differ",
        )
    ]


def probe_calls(
    skeleton: EnvSkeleton, state: State, calls_per_tool: int, rng: Random
) -> Sequence[tuple[ToolSpec, ToolCall]]:
    """The calls that an environment is tried with, half of them wrong on purpose; the same for the same `rng`."""
    calls = []
    for number in range(calls_per_tool):
        for tool in skeleton.tools:
            if number % 2 == 0:
                arguments = valid_arguments(tool, state, skeleton.entities, rng)
            else:
                _, arguments = wrong_arguments(tool, state, skeleton.entities, rng)
            calls.append((tool, ToolCall(name=tool.name, arguments=arguments)))
    return calls


def _distinct(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple({(finding.oracle, finding.detail): finding for finding in findings}.values())
