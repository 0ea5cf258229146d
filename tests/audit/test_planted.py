"""How many planted faults the audit finds, and how often it cries wolf over what is sound.

A fault counts as found when its kind, or one that describes it as well, is reported at its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable

import pytest

from envscaler.audit.environments import audit_environment
from envscaler.audit.scenarios import audit_scenario
from envscaler.evidence import AuditFinding
from envscaler.sandbox import Judge, Sandbox

from .planting import FORMS, Bench, Planted, clean, plant, plant_kind, sound

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as opened:
        yield opened


async def audited(planted: Planted, sandbox: Sandbox, judge: Judge) -> list[AuditFinding]:
    if planted.scenario is not None:
        return list((await audit_scenario(planted.skeleton, planted.scenario, sandbox, judge)).findings)
    return await audit_environment(planted.skeleton, planted.beside, sandbox, judge)


def is_found(planted: Planted, findings: Iterable[AuditFinding]) -> bool:
    """Whether one of the findings tells the fault; that a call cannot succeed takes a judgement, and is suspected."""
    kinds = {planted.kind, *planted.also}
    return any(
        finding.kind in kinds
        and (not finding.suspected or finding.kind == "unreachable_tool")
        and (planted.place in ("", finding.check, finding.place) or not (finding.check or finding.place))
        for finding in findings
    )


async def test_one_fault_of_each_kind_is_found(sandbox: Sandbox) -> None:
    with Bench() as bench:
        faults = [fault for kind in FORMS for fault in plant_kind(kind, 5, 1, bench)]
    async with sandbox.judge() as judge:
        missed = [fault.note for fault in faults if not is_found(fault, await audited(fault, sandbox, judge))]
    assert len(faults) >= 20
    assert len(missed) <= len(faults) * 0.1, missed


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_of_all_planted_faults_nineteen_in_twenty_are_found(sandbox: Sandbox) -> None:
    found: Counter[str] = Counter()
    missed: list[str] = []
    async with sandbox.judge() as judge:
        for fault in plant(seed=1):
            if is_found(fault, await audited(fault, sandbox, judge)):
                found[fault.kind] += 1
            else:
                missed.append(f"{fault.kind}: {fault.note} ({fault.place})")
    total = found.total() + len(missed)
    print(f"found {found.total()} of {total}", *missed, sep="\n")
    assert len(FORMS) >= 20
    assert total >= 10 * len(FORMS)
    assert found.total() >= 0.95 * total


@pytest.mark.slow
@pytest.mark.timeout(1800)
async def test_of_what_is_sound_at_most_one_in_fifty_is_complained_about(sandbox: Sandbox) -> None:
    alarms: list[str] = []
    looked_at = 0
    async with sandbox.judge() as judge:
        for skeleton, scenarios in clean():
            looked_at += 1 + len(scenarios)
            findings = await audit_environment(skeleton, scenarios, sandbox, judge)
            alarms += {f"{skeleton.id}: {finding.kind}" for finding in findings if not finding.suspected}
            for scenario in scenarios:
                findings = list((await audit_scenario(skeleton, scenario, sandbox, judge)).findings)
                alarms += {f"{scenario.id}: {finding.kind}" for finding in findings if not finding.suspected}
        for hard in sound():
            looked_at += 1
            findings = list((await audit_scenario(hard.skeleton, hard.scenario, sandbox, judge)).findings)
            alarms += {f"{hard.place}: {finding.kind}" for finding in findings if not finding.suspected}
    print(f"{len(alarms)} alarms over {looked_at}", *alarms, sep="\n")
    assert len(alarms) <= 0.02 * looked_at
