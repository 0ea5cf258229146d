"""Shows a library, an environment and a scenario in a terminal. What they hold is gathered in `report.views`."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.rule import Rule as Line
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from envscaler.cli.output import Indented, text_of
from envscaler.report.views import EnvironmentView, LibraryView, RunSummary, size_of_state
from envscaler.report.wording import (
    arguments_text,
    count,
    decimal,
    examined_text,
    interval_text,
    percent,
    rate_text,
    repair_text,
    shortened,
    signature,
    visible,
)
from envscaler.scenario import Scenario
from envscaler.skeleton import Entity, ToolSpec


def show_library(view: LibraryView, out: Console) -> None:
    """The table of environments, then the runs, then what to do next."""
    rows = view.environments
    scenarios = sum(row.scenarios for row in rows)
    out.print(
        Text.assemble(
            ("Library ", "bold"),
            (visible(view.path), "bold cyan"),
            f"  {count(len(rows), 'environment')}, {count(scenarios, 'scenario')}",
        )
    )
    if not rows:
        out.print("It is empty; fill it with: envscaler synth TASKS --library " + visible(view.path))
        return
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("environment", style="cyan", overflow="fold", ratio=2)
    table.add_column("what it is", overflow="ellipsis", no_wrap=True, ratio=3)
    for name in ("queries", "updates", "rules", "scenarios", "passed"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        passed = Text(percent(row.pass_rate), style="" if row.accepted is not False else "red")
        if row.stale:
            passed = Text("out of date", style="yellow")
        cells = (row.queries, row.updates, row.rules, row.scenarios)
        table.add_row(text_of(row.id), text_of(row.summary), *(str(cell) for cell in cells), passed)
    out.print(table)
    stale = sum(row.stale for row in rows)
    if stale:
        out.print(
            Text(
                f"{count(stale, 'program')} changed after the assessment; test again with: envscaler assess "
                + visible(view.path),
                style="yellow",
            )
        )
    _tell_stale(sum(row.stale_scenarios for row in rows), view.path, out)
    for run in view.runs:
        out.print(Text.assemble(("Run ", "bold"), (visible(run.id), "cyan"), f"  {_run_line(run)}"))
    out.print(Text(f"Look into one: envscaler show {visible(view.path)}/{rows[0].id}", style="dim"))


def _tell_stale(scenarios: int, path: str, out: Console) -> None:
    if scenarios:
        told = f"{count(scenarios, 'scenario')} made for another version of a program, which no rollout plays; renew "
        out.print(Text(f"{told}them with: envscaler scenarios {visible(path)} --renew", style="yellow"))


def _run_line(run: RunSummary) -> str:
    who = ", ".join([*run.agents, *run.models])
    mean = run.scores.rewards.get("fraction")
    return (
        f"{who}: {count(run.scores.episodes, 'episode')}, {percent(run.scores.solved_rate)} solved, "
        f"mean reward {decimal(mean.value if mean is not None else None)} (fraction)"
    )


def show_environment(view: EnvironmentView, path: str, out: Console) -> None:
    """Description, rules, tools, state schema, assessment and scenarios of one environment."""
    skeleton = view.skeleton
    out.print(Line(text_of(skeleton.description.summary, "bold"), align="left", style="dim"))
    out.print(text_of(skeleton.description.introduction))
    if skeleton.rules:
        _heading(out, "Rules")
        for rule in skeleton.rules:
            mark = {True: "enforced", False: "not enforced", None: ""}[rule.enforced]
            out.print(_bullet(text_of(rule.text), f"  ({mark})" if mark else ""))
    _heading(out, f"Tools ({view.summary.queries} query, {view.summary.updates} update)")
    for tool in skeleton.tools:
        out.print(_tool(tool))
    if skeleton.entities:
        _heading(out, "State schema (never shown to the agent)")
        for entity in skeleton.entities:
            out.print(_entity(entity))
    summary = view.summary
    if summary.test_calls:
        _heading(out, "Assessment")
        verdict = "kept" if summary.accepted else "below the threshold"
        if summary.stale:
            stale = f"This is of another program, not of program.py as it is now: envscaler assess {visible(path)}"
            out.print(Text(stale, style="yellow"))
        out.print(
            f"{count(summary.test_calls, 'test call')}: {percent(summary.pass_rate)} passed, "
            f"{percent(summary.not_fail_rate)} did not fail; {verdict} "
            f"(95% interval of the rate: {interval_text(summary.interval)})"
        )
        kinds = (
            f"{rate.case} calls {rate_text(rate.counts.rate('pass'), rate.interval)}"
            for rate in view.cases
            if rate.counts.calls
        )
        saved = f"; {count(view.saved, 'round')} saved, the verdict being settled" if view.saved else ""
        out.print(f"Passed of {', of '.join(kinds)}. {percent(summary.oracle_share)} settled by oracles{saved}.")
        if view.examined:
            out.print(examined_text(view.examined))
        for one in view.examined:
            for finding in one.faults:
                out.print(_bullet(text_of(finding.detail)))
            for finding in one.remarks:
                out.print(_bullet(text_of(finding.detail, "dim")))
        for repair in view.repairs:
            out.print(_bullet(text_of(repair_text(repair))))
        for case in view.failing[:5]:
            out.print(_bullet(text_of(f"{case.call.name}({arguments_text(case.call.arguments)}): {case.reason}")))
        if len(view.failing) > 5:
            out.print(f"  … {len(view.failing) - 5} more failing calls in assessment.json")
    _heading(out, f"Scenarios ({len(view.scenarios)})")
    _tell_stale(summary.stale_scenarios, path, out)
    for index, scenario in enumerate(view.scenarios):
        known = f"{len(scenario.solution)} calls" if scenario.solution is not None else "no solution"
        text = f"{shortened(scenario.task, 220)}  ({count(len(scenario.checks), 'check')}, {known})"
        out.print(Text.assemble((f"{index:>3} ", "cyan"), visible(text)))
    if view.scenarios:
        out.print(Text(f"Look into one: envscaler show {visible(path)}/0", style="dim"))
    out.print(Text(f"Call its tools by hand: envscaler play {visible(path)}", style="dim"))


def show_scenario(scenario: Scenario, path: str, out: Console) -> None:
    """Task, initial state, checks with code, and the solution of one scenario."""
    out.print(Line(text_of(f"{scenario.env_id} / {scenario.id}", "bold"), align="left", style="dim"))
    out.print(Indented(text_of(scenario.task), 2))
    _heading(out, "Initial state")
    for key, size in size_of_state(scenario.initial_state).items():
        value = shortened(str(scenario.initial_state[key]), 80) if size is None else count(size, "record")
        out.print(_bullet(text_of(f"{key}: {value}")))
    out.print(f"  the clock starts at {visible(scenario.clock)}")
    _heading(out, f"Checks ({len(scenario.checks)})")
    for check in scenario.checks:
        out.print(_bullet(text_of(check.description), f"  ({check.kind})" if check.kind else ""))
        out.print(Indented(_code(check.source), 4))
    if scenario.solution is None:
        _heading(out, "Solution")
        out.print("  not known")
    else:
        _heading(out, f"Solution ({count(len(scenario.solution), 'call')}, executed)")
        for call in scenario.solution:
            out.print(_bullet(text_of(f"{call.name}({arguments_text(call.arguments)})")))
    out.print(Text(f"Play it by hand: envscaler play {visible(path)}", style="dim"))


def _heading(out: Console, text: str) -> None:
    out.print()
    out.print(Text(text, style="bold"))


def _bullet(text: Text, note: str = "") -> RenderableType:
    return Indented(Text.assemble("· ", text, (note, "dim")), 2)


def _tool(tool: ToolSpec) -> RenderableType:
    mark = ("U ", "yellow") if tool.effect == "update" else ("Q ", "green")
    head = Text.assemble(mark, (visible(tool.name), "bold"), f"({visible(signature(tool))})")
    lines: list[RenderableType] = [head, Indented(text_of(shortened(tool.description, 400), "dim"), 4)]
    properties = tool.parameters.get("properties", {})
    for name, schema in properties.items():
        description = schema.get("description") if isinstance(schema, dict) else None
        if description:
            lines.append(Indented(text_of(f"{name}: {shortened(description, 200)}", "dim"), 6))
    return Indented(Group(*lines), 2)


def _entity(entity: Entity) -> RenderableType:
    parts = []
    for attribute in entity.attributes:
        text = f"{attribute.name}: {attribute.type}"
        if attribute.references:
            text += f" → {attribute.references}"
        if attribute.enum:
            text += f" ({'|'.join(attribute.enum)})"
        parts.append(text)
    where = f" in {entity.container}" if entity.container else ""
    head = Text.assemble((visible(entity.name), "bold"), (visible(where), "dim"))
    return Indented(Group(head, Indented(text_of(", ".join(parts)), 4)), 2)


def _code(source: str) -> RenderableType:
    # `Syntax` itself would pad each line with blanks to the full width; it only colours the text here.
    source = visible(source.strip("\n"))
    text = Syntax(source, "python", theme="ansi_dark", background_color="default").highlight(source)
    text.rstrip()
    return text
