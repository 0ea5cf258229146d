"""Words what `synth`, `assess` and `scenarios` did, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.assessment import Counts
from envscaler.cli.output import money, text_of
from envscaler.cli.spending import show_spent
from envscaler.report.wording import count, interval_text, percent, rate_text, visible
from envscaler.synth import AssessReport, ScenariosReport, SynthReport
from envscaler.synth.report import Target, Testing

_STAGES = (
    ("tasks", "tasks or descriptions read"),
    ("stateful", "live in a stateful environment"),
    ("described", "environments inferred"),
    ("useful", "useful and modelable enough"),
    ("distinct", "different from one another"),
    ("designed", "designed"),
    ("loads", "have a program that loads"),
    ("programmed", "of them with tools that stand their first calls"),
    ("assessed", "put to the test"),
    ("accepted", "passed the assessment"),
    ("written", "scenarios written"),
    ("scenarios", "scenarios kept"),
    ("solved", "of them with an executed solution"),
    ("proved", "of them with a proof that is good enough"),
)

_USING = ("discover", "design", "program", "state", "assess", "scenarios", "solve")
"""Stages in the order in which tokens are shown."""
_MOST_KINDS = 5


def show_synth(report: SynthReport, out: Console) -> None:
    """The funnel, what was dropped and merged, what it cost, and where to look."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(justify="right", style="bold")
    table.add_column()
    for name, words in _STAGES:
        table.add_row(f"{getattr(report.funnel, name):,}", words)
    out.print(table)
    _show_testing(report.testing, out)
    if report.scaffold == "staged":
        out.print(text_of(f"Asked for in small questions (staged): {report.scaffold_reason}"))
    if report.target is not None:
        out.print(text_of(*_told(report.target)))
    if report.resumed:
        out.print(f"{count(report.resumed, 'environment')} had been finished by an earlier run.")
    for problem in report.problems[:5]:
        out.print(text_of(f"Left out: {problem}", "yellow"))
    if len(report.problems) > 5:
        out.print(f"… {len(report.problems) - 5} more lines could not be read")
    copies = sum(row.by_structure for row in report.merged)
    merged = sum(row.count for row in report.merged) - copies
    into = sum(row.count > row.by_structure for row in report.merged)
    if merged:
        out.print(f"{count(merged, 'description')} merged into {count(into, 'environment')} there before.")
    if copies:
        out.print(
            f"{count(copies, 'environment')} merged into an earlier one of the same structure "
            "(--keep-equal-structures keeps them)."
        )
    for row in report.dropped:
        out.print(text_of(f"Dropped at {row.stage}: {row.count:,} {row.reason}"))
        for example in row.examples[:2]:
            out.print(text_of(f"    such as: {' '.join(example.split())[:200]}", "dim"))
    _show_unusable(report, out)
    _show_mended(report, out)
    _show_use(report, out)
    show_spent(report.spent, report.faults, out)
    if report.output is not None:
        out.print(Text(f"Written: {visible(str(report.output))}"))
    out.print(Text.assemble(("Library: ", "bold"), visible(str(report.library))))
    if report.record is not None:
        out.print(Text(f"Record:     {visible(str(report.record))}", style="dim"))
    if report.environments:
        out.print(Text(f"Look at it: envscaler show {visible(str(report.library))}", style="dim"))
    if report.funnel.scenarios:
        out.print(Text(f"Play it:    envscaler rollout {visible(str(report.library))} --agent oracle", style="dim"))


def _show_testing(testing: Testing, out: Console) -> None:
    counts = testing.counts
    if not counts.calls:
        return
    kinds = f"meant to succeed {_passed(testing.positive)}, wrong on purpose {_passed(testing.negative)}"
    out.print(f"{count(counts.calls, 'test call')}: {_passed(counts)} passed; {kinds}.")
    saved = f"; {count(testing.saved, 'round')} saved" if testing.saved else ""
    out.print(f"Verdicts: {percent(counts.oracle_share)} by oracles, the rest by the model{saved}.")
    if testing.repaired or testing.dropped:
        gone = f", {count(testing.dropped, 'tool')} given up" if testing.dropped else ""
        out.print(f"Repaired after the assessment: {count(testing.repaired, 'method')}{gone}.")


def _passed(counts: Counts) -> str:
    return rate_text(counts.rate("pass"), counts.interval("pass"))


def _told(target: Target) -> tuple[str, str]:
    """How far a run came that was to make so many environments, and the style to say it in."""
    made = f"{target.accepted:,} of {count(target.environments, 'environment')} wanted"
    if target.reached:
        left = f"; {count(target.tasks_left, 'task')} not looked at" if target.tasks_left else ""
        return f"{made} accepted{left}.", "green"
    if target.waiting:
        return f"{made} accepted; infrastructure failed {target.waiting:,}, which the same command makes.", "yellow"
    return f"The tasks are used up with {made} accepted; the same command goes on when the file has more.", "yellow"


def _show_unusable(report: SynthReport, out: Console) -> None:
    """The most frequent kinds of replies that could not be used, over all runs."""
    for row in report.unusable[:_MOST_KINDS]:
        out.print(text_of(f"Replies not used: {row.count:,} {row.kind}, {row.role}"))
        for example in row.examples[:1]:
            out.print(text_of(f"    such as: {example}", "dim"))
    if len(report.unusable) > _MOST_KINDS:
        out.print(f"… and {count(len(report.unusable) - _MOST_KINDS, 'kind')} more; --json lists them all")


def _show_mended(report: SynthReport, out: Console) -> None:
    """The most frequent kinds of replies that were used after something was made good, over all runs."""
    for row in report.mended[:_MOST_KINDS]:
        out.print(text_of(f"Replies mended: {row.count:,} {row.mending}, {row.role}"))
    if len(report.mended) > _MOST_KINDS:
        out.print(f"… and {count(len(report.mended) - _MOST_KINDS, 'kind')} more; --json lists them all")


def _show_use(report: SynthReport, out: Console) -> None:
    """What each stage took over all runs; nothing where no tokens were counted."""
    if not any(use.input_tokens + use.output_tokens for use in report.use.values()):
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("stage", style="cyan")
    for name in ("calls", "tokens in", "of them cached", "tokens out", "cost", "tokens an accepted environment"):
        table.add_column(name, justify="right")
    for stage, use in sorted(report.use.items(), key=lambda entry: _place(entry[0])):
        average = report.per_accepted.get(stage)
        numbers = (use.calls, use.input_tokens, use.cached_input_tokens, use.output_tokens)
        table.add_row(
            stage,
            *(f"{number:,}" for number in numbers),
            money(use.cost_usd),
            f"{average.tokens:,.0f}" if average is not None else "–",
        )
    out.print(table)


def _place(stage: str) -> int:
    return _USING.index(stage) if stage in _USING else len(_USING)


def show_assess(report: AssessReport, out: Console) -> None:
    """One line an environment."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("environment", overflow="fold")
    for name in ("calls", "passed", "did not fail", "95% interval", "by oracles"):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in report.assessed:
        verdict = Text("kept", "green") if row.accepted else Text("below the threshold", "red")
        if row.error is not None:
            verdict = text_of(row.error, "red")
        elif not row.fresh:
            verdict.append(" (still valid)", "dim")
        calls = str(row.rounds) if row.made is None else f"{row.made} of {row.rounds}"
        rates = (percent(row.pass_rate), percent(row.not_fail_rate), interval_text(row.interval))
        table.add_row(text_of(row.env_id), calls, *rates, percent(row.oracle_share), verdict)
    out.print(table)
    for row in report.assessed:
        for detail in row.at_fault.values():
            out.print(text_of(f"{row.env_id}: {detail}", "yellow"))
    kept = sum(row.accepted for row in report.assessed)
    out.print(f"{kept} of {len(report.assessed)} reach {percent(report.threshold)} by {report.by.replace('_', '-')}.")
    show_spent(report.spent, report.faults, out)


def show_scenarios(report: ScenariosReport, out: Console) -> None:
    """One line an environment."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("environment", overflow="fold")
    for name in ("asked", "there", "made now", "with solution", "proved"):
        table.add_column(name, justify="right")
    for row in report.environments:
        numbers = (row.asked, row.present, row.made, row.solved, row.proved)
        table.add_row(text_of(row.env_id), *map(str, numbers))
    out.print(table)
    renewed = sum(row.renewed for row in report.environments)
    if renewed:
        out.print(f"{count(renewed, 'scenario')} of another version of a program do the same in this one.")
    stale = sum(row.stale for row in report.environments)
    if stale:
        hint = (
            "" if report.renewing else f"; renew them with: envscaler scenarios {visible(str(report.library))} --renew"
        )
        made = f"{count(stale, 'scenario')} made for another version of a program, which no rollout plays"
        out.print(Text(f"{made}{hint}", style="yellow"))
    for row in report.environments:
        for sentence in row.dropped[:2]:
            out.print(text_of(f"{row.env_id}: {sentence}", "dim"))
    for sentence in report.skipped:
        out.print(text_of(f"Skipped: {sentence}", "yellow"))
    show_spent(report.spent, report.faults, out)
