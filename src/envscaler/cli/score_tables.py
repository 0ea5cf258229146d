"""Words scores, floors and comparisons for a terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.cli.output import money, text_of
from envscaler.report.wording import count, decimal, percent, visible
from envscaler.rollout.comparison import Comparison
from envscaler.rollout.estimates import Mean
from envscaler.rollout.floors import Floor
from envscaler.rollout.scorecard import Scorecard
from envscaler.rollout.scores import REWARD_MODES, Scores
from envscaler.trajectory import RewardMode

_ORDER: tuple[RewardMode, ...] = ("solved", *(mode for mode in REWARD_MODES if mode != "solved"))
_WORDS = {"noop": "doing nothing", "random": "calls at random"}


def show_scorecards(cards: Sequence[Scorecard], out: Console) -> None:
    """One table of rewards with a line for each run and its floors, one of pass@k, and what else is to be known."""
    named = _named(cards)
    for name, card in named.items():
        for sentence in (card.note, card.lack):
            if sentence:
                out.print(text_of(f"{name}: {sentence}" if len(cards) > 1 else sentence, "yellow"))
    table = _table("run", "episodes", *_headings())
    for name, card in named.items():
        total = card.table.total
        table.add_row(text_of(name, "cyan"), _episodes(total), *rewards_row(total))
        add_floors(table, card.floors, total.scenarios)
    out.print(table)
    totals = {name: card.table.total for name, card in named.items()}
    show_passes(totals, out)
    _show_use("run", totals, out)
    for name, total in totals.items():
        show_counts(total, out, name if len(cards) > 1 else None)
    drawn = "environments" if any(len(card.table.environments) > 1 for card in cards) else "scenarios"
    out.print(text_of(f"In brackets: 95% intervals, {drawn} drawn anew.", "dim"))


def show_groups(cards: Sequence[Scorecard], by: str, out: Console) -> None:
    """The scores of each environment, level of difficulty or stop reason."""
    for title, card in _named(cards).items():
        groups: Mapping[str, Scores] = {
            "environment": card.table.environments,
            "difficulty": card.table.difficulties,
            "stop": card.table.stops,
        }[by]
        out.print()
        if by == "difficulty" and not groups:
            out.print(text_of(f"{title}: its library is not there, so that no difficulty is known", "yellow"))
            continue
        table = _table(by, "episodes", *_headings())
        for name, scores in groups.items():
            table.add_row(text_of(name, "cyan"), _episodes(scores), *rewards_row(scores))
            if by == "environment" and scores.idle["fraction"].value is not None:
                table.add_row("  doing nothing", "", *_floor_cells(scores.idle), style="dim")
        if len(cards) > 1:
            out.print(text_of(title, "bold"))
        out.print(table)
        show_passes(groups, out)
        _show_use(by, groups, out)


def _named(cards: Sequence[Scorecard]) -> dict[str, Scorecard]:
    """The runs under the names of their folders; under their paths where these are not different."""
    names = [card.run.name for card in cards]
    return {str(card.run) if names.count(card.run.name) > 1 else card.run.name: card for card in cards}


def add_floors(table: Table, floors: Sequence[Floor], scenarios: int) -> None:
    """A dim line for each floor, with where it was read and for how many scenarios it is known."""
    before = [""] * [str(column.header) for column in table.columns[1:]].index(_reward(_ORDER[0]))
    for floor in floors:
        known = "" if floor.scenarios == scenarios else f", {floor.scenarios} of {scenarios} scenarios"
        label = f"  {_WORDS[floor.agent]} ({floor.source}{known})"
        table.add_row(text_of(label), *before, *_floor_cells(floor.rewards), style="dim")


def rewards_table(name: str, *others: str) -> Table:
    """A table with a column for each reward, the solved rate first."""
    return _table(name, *_headings(), *others)


def rewards_row(scores: Scores) -> list[str]:
    """The rewards in its order, with their intervals."""
    return [_bracketed(scores.rewards[mode]) if mode in scores.rewards else "–" for mode in _ORDER]


def steps_text(scores: Scores) -> str:
    """The mean number of steps."""
    return "–" if scores.mean_steps is None else f"{scores.mean_steps:.1f}"


def show_passes(groups: Mapping[str, Scores], out: Console) -> None:
    """pass@k and pass^k, where anything was played more than once."""
    ks = sorted({k for scores in groups.values() for k in scores.pass_at})
    if len(ks) < 2:
        return
    table = _table("", *(f"{name}{k}" for k in ks for name in ("pass@", "pass^")[: 2 if k > 1 else 1]))
    for name, scores in groups.items():
        cells = [
            means.get(k, Mean(value=None, count=0))
            for k in ks
            for means in (scores.pass_at, scores.pass_all)[: 2 if k > 1 else 1]
        ]
        table.add_row(text_of(name, "cyan"), *(_share(mean, scores.scenarios) for mean in cells))
    out.print(table)


def show_counts(scores: Scores, out: Console, name: str | None = None) -> None:
    """Stop reasons, what stands in no mean, and slips."""
    head = f"{name}: ended: " if name is not None else "Ended: "
    out.print(text_of(head + (_counts(scores.stops) or "nothing yet")))
    unjudged = scores.episodes - scores.judged
    if unjudged:
        masked = f", {scores.masked:,} of them masked as their user spoiled them" if scores.masked else ""
        out.print(text_of(f"    {count(unjudged, 'episode')} in no mean{masked}", "yellow"))
    for label, slips in (("Slips of form", scores.slips), ("Slips of the simulated user", scores.user_slips)):
        if slips:
            out.print(text_of(f"    {label}: {_counts(slips)}"))


def show_comparison(told: Comparison, folders: Sequence[Path], out: Console) -> None:
    """Difference, interval and p, and what they rest on."""
    table = _table("run", "episodes", f"mean {_reward(told.reward)}")
    for folder, mean in zip(folders, (told.first, told.second), strict=True):
        table.add_row(text_of(str(folder), "cyan"), f"{mean.count:,}", _bracketed(mean))
    out.print(table)
    difference = _bracketed(told.difference, sign=True)
    out.print(Text.assemble(("Second less first: ", "bold"), difference, f", p = {_probability(told.p)}"))
    pairs = f"{count(told.pairs, 'scenario')} of {count(told.environments, 'environment')} in both runs"
    out.print(f"{pairs}: {told.better:,} better, {told.worse:,} worse, {told.pairs - told.better - told.worse:,} equal")
    how = "all choices of signs" if told.exact else "drawn signs"
    out.print(text_of(f"p by {how}, each {told.unit} as one; 95% interval in brackets.", "dim"))
    if told.least_p > 0.05:
        out.print(text_of(f"So few differ that no p below {_probability(told.least_p)} is possible.", "yellow"))
    if told.mcnemar is not None:
        one = told.mcnemar
        out.print(
            f"Solved by the first only: {one.only_first:,}, by the second only: {one.only_second:,} "
            f"(McNemar, exact: p = {_probability(one.p)})"
        )
    for reason, number in told.left_out.items():
        out.print(text_of(f"Left out: {count(number, 'scenario')} {reason}", "yellow"))


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first, overflow="fold")
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _headings() -> list[str]:
    return [_reward(mode) for mode in _ORDER]


def _reward(mode: str) -> str:
    return mode if mode == "solved" else f"reward {mode}"


def _episodes(scores: Scores) -> str:
    """How many are judged, and of how many where that is not all."""
    return f"{scores.judged:,} of {scores.episodes:,}" if scores.judged < scores.episodes else f"{scores.judged:,}"


def _show_use(first: str, groups: Mapping[str, Scores], out: Console) -> None:
    """Steps, invalid calls, tokens and cost."""
    table = _table(first, "steps", "calls", "invalid calls", "tokens", "cost")
    for name, scores in groups.items():
        use = scores.use
        spent = (f"{use.input_tokens + use.output_tokens:,}", money(use.cost_usd)) if use.calls else ("–", "–")
        row = (steps_text(scores), f"{scores.calls:,}", percent(scores.invalid_call_rate), *spent)
        table.add_row(text_of(name, "cyan"), *row)
    out.print(table)


def _floor_cells(rewards: Mapping[RewardMode, Mean]) -> list[str]:
    return [decimal(rewards[mode].value) if mode in rewards else "–" for mode in _ORDER]


def _bracketed(mean: Mean, *, sign: bool = False) -> str:
    if mean.value is None or mean.low is None or mean.high is None:
        return decimal(mean.value)
    if sign:
        return f"{mean.value:+.3f} [{mean.low:+.3f}, {mean.high:+.3f}]"
    ends = (f"{end:.2f}".removeprefix("0") for end in (mean.low, mean.high))
    return f"{mean.value:.3f} [{', '.join(ends)}]"


def _share(mean: Mean, scenarios: int) -> str:
    """A pass rate; of how many scenarios, where they are not all."""
    return _bracketed(mean) + (f" of {mean.scenarios}" if 0 < mean.scenarios < scenarios else "")


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{visible(name)} {number:,}" for name, number in counts.items())


def _probability(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.1e}"
