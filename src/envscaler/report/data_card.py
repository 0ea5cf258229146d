"""`card_markdown`: a data card as a page for people. What stands in it is the business of `export`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from envscaler.export.card import DataCard, EnvironmentOfCard

_SHOWN = 200
_OFF = (None, False, 0, "")


def card_markdown(card: DataCard) -> str:
    """The card, the same text for the same card."""
    what = "Supervised fine-tuning" if card.kind == "sft" else "Reinforcement learning"
    source = "episodes" if card.kind == "sft" else "scenarios"
    lines = [
        f"# {what}: {card.rows:,} rows in the format `{card.format}`",
        "",
        card.summary,
        "",
        f"{card.rows:,} rows from {card.episodes:,} {source} of {len(card.environments):,} environments, "
        f"written by envscaler {card.versions.get('envscaler', '?')}.",
    ]
    lines += _table("File", "SHA-256", ((f"`{name}`", f"`{digest}`") for name, digest in card.files.items()))
    lines += _list("What to know", card.notes)
    lines += _numbers("Played by", card.played_by, "rows")
    lines += _numbers("Mode", card.modes, source)
    lines += _numbers("Calls written as", card.dialects, source)
    lines += _numbers("Ended by", card.stops, source)
    lines += _numbers("Difficulty", card.difficulty, source)
    lines += _table("Reward", "mean", ((mode, f"{value:.3f}") for mode, value in card.rewards.items()))
    lines += _lengths(card)
    lines += ["", "## Where the rows come from", *_runs(card), *_origins(card)]
    lines += ["", "## What was kept", *_division(card), *_filters(card)]
    lines += _numbers("Dropped because", card.dropped, source)
    if card.rows_too_long:
        lines += ["", f"{card.rows_too_long:,} rows of kept episodes were left out because they are too long."]
    lines += _environments(card.environments)
    return "\n".join(lines) + "\n"


def _table(first: str, second: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    body = [f"| {_cell(left)} | {_cell(right)} |" for left, right in rows]
    return ["", f"| {first} | {second} |", "|---|---|", *body] if body else []


def _numbers(what: str, counts: Mapping[str, int], unit: str) -> list[str]:
    return _table(what, unit, ((name, f"{number:,}") for name, number in counts.items()))


def _list(title: str, sentences: Iterable[str]) -> list[str]:
    body = [f"- {_cell(sentence)}" for sentence in sentences]
    return ["", f"{title}:", *body] if body else []


def _lengths(card: DataCard) -> list[str]:
    if not card.lengths:
        return []
    rows = [
        f"| {name} | {part.smallest:,} | {part.median:,} | {part.p90:,} | {part.largest:,} | {part.total:,} |"
        for name, part in card.lengths.items()
    ]
    counted = [f"Tokens are {card.tokens}."] if card.tokens else []
    if card.template is not None:
        counted.append(
            f"Conversations were cut into samples by the chat template `{card.template}` "
            f"(digest `{card.template_digest}`)."
        )
    head = ["", "| length | smallest | median | 90% up to | largest | total |", "|---|---|---|---|---|---|"]
    return [*head, *rows, *(["", " ".join(counted)] if counted else [])]


def _runs(card: DataCard) -> list[str]:
    lines = []
    for run in card.runs:
        state = "" if run.complete else ", not played to its end"
        library = f"of the library `{run.library}`" if run.library is not None else "of a library that was not at hand"
        lines.append(
            f"- run `{run.id}` {library}: {run.kept:,} of {run.episodes:,} episodes{state}; trajectories.jsonl has "
            f"SHA-256 `{run.trajectories}`"
        )
    lines += [f"- library `{name}`, digest `{digest}`" for name, digest in card.libraries.items()]
    return ["", *lines] if lines else []


def _origins(card: DataCard) -> list[str]:
    lines = []
    for origin in card.origins:
        models = f", made with {', '.join(origin.models)}" if origin.models else ""
        licence = origin.licence or "the library does not say; look where the tasks come from"
        lines.append(f"- {origin.environments:,} environments from {_cell(origin.source)}{models}; licence: {licence}")
    if any(model not in ("oracle", "random", "noop") for model in card.played_by):
        lines.append("- Replies are those of the models named above, whose terms of use apply to them.")
    return ["", *lines] if lines else []


def _division(card: DataCard) -> list[str]:
    if card.split is not None:
        return ["", f"Only the split `{card.split}` of the library."]
    if card.held_out:
        return ["", f"{card.held_out:,} environments are held out from training, and left out."]
    return []


def _filters(card: DataCard) -> list[str]:
    chosen = {name: value for name, value in card.filters.items() if not (value in _OFF and value is not True)}
    return ["", "Filters: " + ", ".join(f"`{name}` {value}" for name, value in chosen.items()) + "."] if chosen else []


def _environments(environments: Mapping[str, EnvironmentOfCard]) -> list[str]:
    if not environments:
        return []
    shown = list(environments.items())[:_SHOWN]
    rows = [
        f"| {env_id} | {part.rows:,} | {part.split or ''} | {f'`{part.digest[:16]}`' if part.digest else ''} |"
        for env_id, part in shown
    ]
    more = len(environments) - len(shown)
    tail = ["", f"{more:,} more stand in the JSON card."] if more else []
    return ["", "## Environments", "", "| id | rows | split | digest |", "|---|---|---|---|", *rows, *tail]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
