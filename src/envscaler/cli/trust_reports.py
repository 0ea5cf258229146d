"""Words what `prove` and `audit` found, for a terminal."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.audit.fix import FixedLibrary
from envscaler.cli.output import text_of
from envscaler.cli.spending import spent_text
from envscaler.evidence import AuditFinding, AuditReport, Solving
from envscaler.proof.run import ProveReport
from envscaler.report.wording import compact, count, percent, visible

_SHOWN = 12
_EXAMPLES = 2
_EVIDENCE_CHARS = 240


def show_prove(report: ProveReport, out: Console) -> None:
    """The means, and what falls short."""
    fresh = sum(row.fresh for row in report.scenarios)
    out.print(
        f"{count(len(report.scenarios), 'scenario')}, {fresh} proved now: {report.accepted} reach the thresholds."
    )
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("")
    table.add_column("mean", justify="right")
    table.add_column("asked for", justify="right")
    for name, words in (
        ("mutation_score", "wrong final states that a check notices"),
        ("over_edits_caught", "edits too many that a guard notices"),
        ("variants_passed", "equally right ways that pass"),
    ):
        table.add_row(words, percent(report.mean(name)), percent(getattr(report.thresholds, name)))
    out.print(table)
    short = [row for row in report.scenarios if row.shortfalls]
    for row in short[:_SHOWN]:
        out.print(text_of(f"{row.scenario_id}: {'; '.join(row.shortfalls)}", "yellow"))
    if len(short) > _SHOWN:
        out.print(f"… and {len(short) - _SHOWN} more; --json tells them all")


def show_audit(report: AuditReport, out: Console) -> None:
    """What was counted, then the findings by kind, the worst first, each with an example."""
    if report.solving is not None:
        _show_solving(report.solving, out)
    whole = report.summary
    out.print(
        f"{count(whole.environments, 'environment')}, {count(whole.scenarios, 'scenario')}, "
        f"{count(whole.checks, 'check')}; {whole.proved} scenarios proved, {whole.without_solution} without a solution"
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    for number, words in (
        (whole.true_at_reset, "checks hold before anything is done"),
        (whole.raises, "checks raise at reset"),
        (whole.not_bool, "checks give no bool at reset"),
        (whole.nondeterministic, "checks do not say the same twice"),
        (whole.never_true, "checks are never true"),
        (whole.false_positive, "checks accept a state that contradicts their sentence"),
    ):
        table.add_row(f"{number:,}", words)
    out.print(table)
    by_kind: dict[tuple[bool, str], list[AuditFinding]] = {}
    for finding in report.findings:
        by_kind.setdefault((finding.suspected, finding.kind), []).append(finding)
    for (suspected, kind), findings in by_kind.items():
        out.print()
        title = f"{kind.replace('_', ' ')} ({len(findings)}{', suspected' if suspected else ''})"
        out.print(Text(title, style="bold" if not suspected else "dim bold"))
        for finding in findings[:_EXAMPLES]:
            out.print(text_of(f"  {_where(finding)}"))
            out.print(text_of(f"    {_shown(finding)}", "dim"))
    if not report.findings:
        out.print(Text("Nothing was found.", style="green"))


def show_fixed(fixed: FixedLibrary, out: Console) -> None:
    """What was changed."""
    out.print()
    out.print(
        f"Cleaned: {count(fixed.environments, 'environment')}, {count(fixed.scenarios, 'scenario')}; "
        f"{fixed.guards_marked} guards marked, {fixed.checks_removed} checks taken out, "
        f"{fixed.solutions_removed} solutions taken out, {count(len(fixed.dropped), 'scenario')} left out"
    )
    reasons = Counter(reason.partition(": ")[2] for reason in fixed.dropped)
    for reason, number in reasons.most_common(5):
        out.print(text_of(f"  {number} left out: {reason}", "dim"))
    out.print(Text.assemble(("Library: ", "bold"), visible(str(fixed.library))))


def _show_solving(solving: Solving, out: Console) -> None:
    if not solving.scenarios:
        out.print("Every scenario came with a solution; no model was asked.")
        return
    came = count(solving.scenarios, "scenario")
    out.print(f"{came} came without a solution: {solving.solved:,} solved by episodes in the library.")
    out.print(text_of(f"{count(solving.played, 'episode')} played now by {solving.model}."))
    for sentence in solving.skipped:
        out.print(text_of(f"Not played: {sentence}", "yellow"))
    if solving.unfinished:
        cut = f"{count(solving.unfinished, 'episode')} cut short by the machinery; the same command plays them again"
        out.print(Text(cut, style="yellow"))
    if solving.spent.calls:
        spent = solving.spent
        out.print(f"Spent now: {spent_text(spent.calls, spent.input_tokens + spent.output_tokens, spent.cost_usd)}")
    if solving.run is not None:
        out.print(Text.assemble(("Run: ", "bold"), visible(solving.run)))
    out.print()


def _where(finding: AuditFinding) -> str:
    place = finding.scenario_id or finding.env_id
    about = finding.check or finding.place
    return f"{place}: {about}" if about else place


def _shown(finding: AuditFinding) -> str:
    says = str(finding.evidence.get("says", ""))
    rest = {name: value for name, value in finding.evidence.items() if name not in ("says", "probe")}
    text = f"{says}  {compact(rest)}" if rest else says
    return text if len(text) <= _EVIDENCE_CHARS else f"{text[:_EVIDENCE_CHARS]}…"
