"""`write_fixed`: a cleaned copy of an audited library. Programs and states stay as they are; what was changed is noted.

Source: ours.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from envscaler.errors import StoreError
from envscaler.evidence import AuditFinding, AuditReport
from envscaler.record import Record
from envscaler.scenario import Check, Scenario
from envscaler.store import LibraryStore

BROKEN = frozenset(
    {"raises", "not_bool", "nondeterministic", "mutates", "tautology", "always_true", "never_true", "created_ids"}
)
"""Kinds of faults for which a check is taken out: it says nothing of what an agent did. One that accepts some wrong
state says something, and stays; that is noted."""


class FixedLibrary(Record):
    """What was changed."""

    library: Path
    environments: int = 0
    scenarios: int = 0
    """Scenarios kept."""
    dropped: tuple[str, ...] = ()
    """Scenarios that were left out, with the reason."""
    guards_marked: int = 0
    checks_removed: int = 0
    solutions_removed: int = 0


def require_new(library: Path, target: Path) -> None:
    """Make sure that a cleaned library can be written to a folder.

    Raises:
        StoreError: if the folder is the library itself, or holds anything.
    """
    if target.resolve() == library.resolve():
        raise StoreError(f"{target} is the library itself; name another folder for the cleaned one")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} is not empty; name a new folder for the cleaned library")


def write_fixed(library: Path, target: Path, report: AuditReport) -> FixedLibrary:
    """Write a cleaned copy of a library to a new folder.

    Raises:
        StoreError: as `require_new`, or if it cannot be written.
    """
    require_new(library, target)
    source, written = LibraryStore.open(library), LibraryStore.create(target)
    found: dict[tuple[str, str], list[AuditFinding]] = defaultdict(list)
    unusable = {finding.env_id for finding in report.findings if _breaks_environment(finding)}
    for finding in report.findings:
        if finding.scenario_id is not None and not finding.suspected:
            found[finding.env_id, finding.scenario_id].append(finding)
    counts = {"environments": 0, "scenarios": 0, "guards_marked": 0, "checks_removed": 0, "solutions_removed": 0}
    dropped: list[str] = []
    with written.writing():
        for name in source.env_ids():
            kept: list[Scenario] = []
            for scenario in source.scenarios(name):
                cleaned = _cleaned(scenario, found[name, scenario.id], counts)
                if name in unusable:
                    cleaned = f"{scenario.id}: its environment cannot be used"
                if isinstance(cleaned, str):
                    dropped.append(cleaned)
                else:
                    kept.append(cleaned)
            written.write_environment(source.read_environment(name), source.read_assessment(name), kept)
            counts["environments"] += 1
            counts["scenarios"] += len(kept)
        written.write_index({"cleaned_from": library.name, "method": "audit"})
    return FixedLibrary(library=target, dropped=tuple(dropped), **counts)


def _breaks_environment(finding: AuditFinding) -> bool:
    return finding.kind == "does_not_build" and finding.scenario_id is None and not finding.suspected


def _cleaned(scenario: Scenario, findings: list[AuditFinding], counts: dict[str, int]) -> Scenario | str:
    """The scenario without what is broken, or why it is left out."""
    notes: list[str] = []
    by_check: dict[str, list[AuditFinding]] = defaultdict(list)
    of_scenario = {finding.kind: finding for finding in findings if finding.check is None}
    for finding in findings:
        if finding.check is not None:
            by_check[finding.check].append(finding)
    for kind in ("does_not_build", "state_not_json"):
        if kind in of_scenario:
            return f"{scenario.id}: {kind}: {of_scenario[kind].evidence['says']}"
    checks: list[Check] = []
    for check in scenario.checks:
        kinds = {finding.kind: finding for finding in by_check[check.description]}
        broken = next((kind for kind in kinds if kind in BROKEN), None)
        if broken is not None:
            counts["checks_removed"] += 1
            notes.append(f"check {check.description!r} was taken out: {broken}: {kinds[broken].evidence['says']}")
            continue
        if "true_at_reset" in kinds and check.kind != "guard":
            counts["guards_marked"] += 1
            check = check.model_copy(update={"kind": "guard"})
        elif check.kind is None:
            check = check.model_copy(update={"kind": "goal"})
        if "false_positive" in kinds:
            notes.append(
                f"check {check.description!r} accepts a wrong state: {kinds['false_positive'].evidence['says']}"
            )
        checks.append(check)
    if scenario.checks and not any(check.kind == "goal" for check in checks):
        return f"{scenario.id}: no check is left that asks for a change"
    update: dict[str, object] = {"checks": tuple(checks)}
    if "solution_fails" in of_scenario:
        counts["solutions_removed"] += 1
        notes.append(f"solution: {of_scenario['solution_fails'].evidence['says']}")
        update |= {"solution": None, "alternatives": (), "difficulty": None}
    origin = scenario.origin.model_copy(update={"dropped": (*scenario.origin.dropped, *notes)})
    return scenario.model_copy(update={**update, "origin": origin})
