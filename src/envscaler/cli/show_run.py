"""Shows a run and an episode of it in a terminal, step by step. Replaying is the business of `report.replay`."""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.rule import Rule as Line
from rich.table import Table
from rich.text import Text

from envscaler.cli.output import Indented, text_of
from envscaler.messages import ToolMessage
from envscaler.report.views import EpisodeView, RunView, StepView
from envscaler.report.wording import arguments_text, compact, count, decimal, percent, shortened, visible
from envscaler.state import Change
from envscaler.trajectory import Verdict

_MARKS = {"added": ("+ ", "green"), "removed": ("- ", "red"), "changed": ("~ ", "yellow")}


def show_run(view: RunView, out: Console, *, limit: int = 60) -> None:
    """Scores, stop reasons and the table of episodes of one run."""
    summary = view.summary
    who = ", ".join([*summary.agents, *summary.models]) or "nobody yet"
    out.print(Text.assemble(("Run ", "bold"), (visible(summary.path), "bold cyan"), f"  played by {visible(who)}"))
    if summary.note:
        out.print(text_of(summary.note, "yellow"))
    if not view.episodes:
        out.print("It holds no episode.")
        return
    if view.missing:
        asked = view.record.planned if view.record is not None else view.missing
        out.print(
            Text(
                f"Partial: {asked - view.missing:,} of {count(asked, 'episode')} asked for; "
                "the command that began it plays the rest",
                style="yellow",
            )
        )
    total = summary.scores
    solved = percent(total.solved_rate)
    out.print(f"{count(total.episodes, 'episode')}, {total.judged} with a verdict, {solved} of these solved")
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("mean reward")
    for mode in total.rewards:
        table.add_column(mode, justify="right")
    table.add_row("", *(decimal(mean.value) for mean in total.rewards.values()))
    out.print(table)
    out.print("Ended: " + ", ".join(f"{stop} {number}" for stop, number in total.stops.items()))
    out.print()
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("#", justify="right", style="cyan")
    table.add_column("scenario", overflow="fold")
    for name in ("sample", "steps", "calls"):
        table.add_column(name, justify="right")
    table.add_column("ended")
    table.add_column("reward", justify="right")
    table.add_column("")
    for episode in view.episodes[:limit]:
        mark = {True: Text("solved", "green"), False: Text("not solved", "red"), None: Text("no verdict", "yellow")}
        table.add_row(
            str(episode.index),
            text_of(episode.scenario_id),
            str(episode.sample),
            str(episode.steps),
            str(episode.calls),
            str(episode.stop),
            decimal(episode.rewards["fraction"]),
            mark[episode.solved],
        )
    out.print(table)
    if len(view.episodes) > limit:
        out.print(f"… {len(view.episodes) - limit} more; --json lists them all")
    out.print(Text(f"Look at one: envscaler show {visible(summary.path)} 0", style="dim"))


def show_episode(view: EpisodeView, out: Console) -> None:
    """One episode: task, every step with what it changed, and the verdict check by check."""
    trajectory = view.trajectory
    who = trajectory.agent + (f" ({trajectory.model})" if trajectory.model else "")
    out.print(Line(text_of(f"{trajectory.scenario_id}, played by {who}", "bold"), align="left", style="dim"))
    if view.task is not None:
        out.print(Indented(text_of(view.task), 2))
    if view.replay is not None:
        out.print(text_of(f"No state changes are shown: {view.replay}.", "yellow"))
    if view.agrees is False:
        out.print(Text("Played again, the calls led to another state than recorded.", style="red"))
    for number, step in enumerate(view.steps, start=1):
        _show_step(number, step, view.task, out)
    out.print()
    out.print(Text.assemble(("Ended: ", "bold"), str(trajectory.stop)))
    if trajectory.error:
        out.print(text_of(trajectory.error, "red"))
    if trajectory.verdict is None:
        out.print(Text("There is no verdict; the episode counts in no mean.", style="yellow"))
    else:
        _show_verdict(trajectory.verdict, out)


def _show_step(number: int, view: StepView, task: str | None, out: Console) -> None:
    step = view.step
    out.print()
    out.print(Text(f"Step {number}", style="bold cyan"))
    if step.user is not None and not (number == 1 and step.user.content == task):
        out.print(_labelled("user", step.user.content))
    if step.assistant.reasoning:
        out.print(_labelled("reasoning", shortened(step.assistant.reasoning, 1200), "dim"))
    if step.assistant.content:
        out.print(_labelled("agent", step.assistant.content))
    for index, call in enumerate(step.assistant.tool_calls):
        arguments = call.malformed if call.malformed is not None else arguments_text(call.arguments)
        out.print(Indented(Text.assemble("→ ", (visible(call.name), "bold"), f"({visible(arguments)})"), 2))
        if index < len(step.observations):
            out.print(_observation(step.observations[index]))
        if view.changes is not None and index < len(view.changes):
            for change in view.changes[index]:
                out.print(Indented(change_text(change), 6))


def _show_verdict(verdict: Verdict, out: Console) -> None:
    rewards = {mode: verdict.reward(mode) for mode in ("fraction", "gained", "gained_soft", "solved")}
    out.print(
        Text.assemble(("Reward: ", "bold"), ", ".join(f"{mode} {decimal(value)}" for mode, value in rewards.items()))
    )
    for check in verdict.checks:
        mark = ("✓ ", "green") if check.passed else ("✗ ", "red")
        notes = ["guard"] if check.is_guard else ["held before the first step"] if check.held_at_reset else []
        if check.error:
            notes.append(check.error)
        note = f"  ({'; '.join(notes)})" if notes else ""
        out.print(Indented(Text.assemble(mark, visible(check.description), (visible(note), "dim")), 2))


def _labelled(label: str, text: str, style: str = "") -> RenderableType:
    return Indented(Text.assemble((f"{label}: ", "dim"), (visible(text), style)), 2)


def _observation(message: ToolMessage) -> RenderableType:
    style = "red" if message.is_error else "dim"
    return Indented(Text.assemble("← ", (visible(shortened(message.content, 1200)), style)), 2)


def change_text(change: Change) -> Text:
    """One difference of two states on one line."""
    mark = _MARKS[change.kind]
    if change.kind == "added":
        rest = compact(change.after)
    elif change.kind == "removed":
        rest = compact(change.before)
    else:
        rest = f"{compact(change.before)} → {compact(change.after)}"
    return Text.assemble(mark, (visible(change.pointer), "bold"), f" {visible(rest)}")
