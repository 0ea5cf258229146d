"""Calls every tool of a new program a few times and says which do not keep the contract of a tool.

A tool must answer as tools answer, and do what its kind and its parameters make certain; whatever else makes a result
right is the assessment's business.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

from envscaler.env.meaning import Known, findings_of
from envscaler.env.oracles import ExaminedCall, try_call
from envscaler.messages import ToolCall
from envscaler.probe import valid_arguments, wrong_arguments
from envscaler.sandbox import Program, Sandbox
from envscaler.skeleton import Entity, ToolSpec
from envscaler.state import JsonValue, State, encode
from envscaler.synth.assess import refusal
from envscaler.synth.seeds import derived_seed

_CALLS = 2
"""Valid and wrong calls of each tool, each."""


@dataclass(frozen=True)
class SmokeFault:
    """What one tool did wrong."""

    tool: str
    message: str
    grave: bool
    """False for what an agent never meets, because the interface refuses such arguments beforehand."""


async def smoke(
    program: Program, state: State, tools: Iterable[ToolSpec], entities: tuple[Entity, ...], seed: int, sandbox: Sandbox
) -> tuple[SmokeFault, ...]:
    """The first fault of each tool that has one, in the order of the tools.

    Raises:
        ProgramError: if the program cannot be loaded.
    """

    known = Known(entities)

    async def try_tool(tool: ToolSpec) -> SmokeFault | None:
        rng = random.Random(derived_seed(seed, "smoke", tool.name))
        valid = [valid_arguments(tool, state, entities, rng) for _ in range(_CALLS)]
        wrong = [wrong_arguments(tool, state, entities, rng)[1] for _ in range(_CALLS)]
        light: SmokeFault | None = None
        async with sandbox.trial(program, state) as session:
            for arguments, is_valid in [(one, True) for one in valid] + [(one, False) for one in wrong]:
                call = ToolCall(name=tool.name, arguments=arguments)
                if refusal(tool, call) is not None:
                    continue
                examined = await try_call(session, tool, call, repeat=False)
                fault = _fault(examined, tool, known)
                if fault is None:
                    continue
                grave = is_valid or examined.outcome.fault is None or bool(examined.findings)
                found = SmokeFault(tool.name, f"{_written(call)} {fault}", grave)
                if grave:
                    return found
                light = light or found
        return light

    # One after the other: they can then share a worker, which is what costs.
    faults = [await try_tool(tool) for tool in tools]
    return tuple(fault for fault in faults if fault is not None)


def _fault(examined: ExaminedCall, tool: ToolSpec, known: Known) -> str | None:
    if examined.findings:
        return "; ".join(finding.detail for finding in examined.findings)
    if examined.error is not None:
        return f"raised {examined.error}"
    fault = contract_fault(examined.outcome.result)
    if fault is not None:
        return fault
    meaning = findings_of(known, tool, examined.call, examined.outcome, examined.before, examined.after)
    return "; ".join(finding.detail for finding in meaning.findings) or None


def contract_fault(result: JsonValue) -> str | None:
    """Why a result is not what a tool returns, or None.

    Source: paper 3.2: success with data or a message, or failure with an error.
    """
    if not isinstance(result, dict) or not isinstance(result.get("success"), bool):
        return f"returned {_cut(encode(result).decode('utf-8', 'replace'))}, no object with a boolean `success`"
    if result["success"] is False and not isinstance(result.get("error"), str):
        return "returned a failure without a text `error`"
    return None


def _written(call: ToolCall) -> str:
    return f"{call.name}(**{_cut(encode(call.arguments).decode('utf-8', 'replace'))})"


def _cut(text: str, limit: int = 300) -> str:
    return text if len(text) <= limit else f"{text[:limit]}…"
