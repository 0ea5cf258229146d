"""Writes an audit as one HTML page that needs nothing beside itself."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from envscaler.evidence import AuditFinding, AuditReport
from envscaler.report.page import rendered, write_page

MAX_FINDINGS = 100
"""Findings of one kind shown on the page."""
MEANINGS = {
    "false_positive": "the check accepts a state that contradicts its sentence",
    "true_at_reset": "the check holds before anything is done",
    "always_true": "the check holds of every state tried",
    "never_true": "the check holds of no state tried, the solved one included",
    "tautology": "the check does not look at the state",
    "raises": "the check raises",
    "not_bool": "the check gives no bool",
    "nondeterministic": "the check does not say the same twice",
    "mutates": "the check changes the state that it looks at",
    "vacuous": "the check holds because what it speaks of is not there",
    "substring": "the check looks for part of a text and takes a near miss for right",
    "created_ids": "the check asks for an id that is made during the episode",
    "whole_state": "the check compares whole states",
    "hidden_requirement": "the check demands a value that nobody can know",
    "solution_fails": "the recorded solution does not run, or does not satisfy the checks",
    "solved_at_reset": "all checks hold before anything is done",
    "weak_checks": "wrong final states pass all checks",
    "missing_guard": "edits that nobody asked for pass all guards",
    "variant_fails": "an equally right way is refused",
    "order_or_clock": "order or clock change the verdict",
    "leaks_tool_name": "the task names a tool",
    "leaks_id": "the task names an id that a query would give",
    "state_type": "a value of the state has another type than the schema says",
    "state_enum": "a value of the state is none of those that the schema allows",
    "state_reference": "the state refers to a record that is not there",
    "state_rule": "the initial state breaks a rule",
    "state_not_json": "a state or a result is no JSON",
    "does_not_build": "the program cannot be loaded, or built from the state",
    "tool_without_effect": "an update tool succeeds and changes nothing",
    "unreachable_tool": "no call of the tool succeeds",
    "rule_not_enforced": "a call breaks a rule and succeeds",
    "schema_differs": "the tool's schema is not that of the method",
    "query_writes": "a query tool changes the state",
    "failure_writes": "a call that fails leaves a change behind",
    "program_nondeterministic": "the same call from the same state gives something else",
    "reset_incomplete": "an episode does not start from the state given",
    "unbounded": "a call does not come back",
}
"""What each kind of finding says."""


@dataclass(frozen=True)
class _Group:
    kind: str
    suspected: bool
    meaning: str
    findings: tuple[AuditFinding, ...]


def audit_page(report: AuditReport, title: str) -> str:
    """The page: counts, then the findings by kind in their order."""
    whole = report.summary
    groups = [
        _Group(kind, suspected, MEANINGS[kind], tuple(findings))
        for (suspected, kind), findings in groupby(report.findings, key=lambda one: (one.suspected, one.kind))
    ]
    tiles = [
        (f"{whole.environments:,}", "environments"),
        (f"{whole.scenarios:,}", "scenarios"),
        (f"{whole.checks:,}", "checks"),
        (f"{whole.proved:,}", "scenarios proved"),
        (f"{whole.true_at_reset:,}", "hold at reset"),
        (f"{whole.false_positive:,}", "accept a wrong state"),
        (f"{whole.never_true:,}", "never true"),
        (f"{whole.raises + whole.not_bool:,}", "raise or give no bool"),
    ]
    subtitle = "What is wrong with its environments, scenarios and checks, each with an example that shows it."
    return rendered(
        "audit.html.j2", title=f"Audit of {title}", subtitle=subtitle, tiles=tiles, groups=groups, most=MAX_FINDINGS
    )


def write_audit_page(report: AuditReport, path: Path, *, title: str) -> None:
    """Write the page.

    Raises:
        StoreError: if it cannot be written.
    """
    write_page(path, audit_page(report, title))
