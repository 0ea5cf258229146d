"""`envscaler export sft` and `export rl`: rows that trainers read, from episodes and from scenarios."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from envscaler.cli.command import EXIT_NO_RESULT, EXIT_OK, OutputFlags, command, complain, show_report
from envscaler.cli.run import ModeName, RewardName
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from envscaler.export.card import DataCard
    from envscaler.export.templates import ChatTemplate
    from envscaler.store import LibraryStore, RunStore


class SftFormatName(StrEnum):
    """What a trainer reads; `export.formats` has the same names."""

    TRL = "trl"
    TRL_PROMPT_COMPLETION = "trl-prompt-completion"
    LLAMAFACTORY_SHAREGPT = "llamafactory-sharegpt"
    LLAMAFACTORY_ALPACA = "llamafactory-alpaca"
    SWIFT = "swift"
    AXOLOTL = "axolotl"
    VERL = "verl"
    TOKENS = "tokens"
    RELEASED = "released"


class RlFormatName(StrEnum):
    """What a trainer reads; `export.rl_formats` has the same names."""

    TRL = "trl"
    VERL = "verl"
    NEMO_GYM = "nemo-gym"
    SKYRL = "skyrl"


_HELD_OUT = "test"
"""The split that `--hold-out` makes beside `train`."""


@dataclass(frozen=True)
class RowFlags:
    """Which environments' rows are written, and in what kind of file."""

    parquet: Annotated[bool, typer.Option("--parquet", help="Also write a Parquet file beside it.")] = False
    seed: Annotated[int, typer.Option("--seed", help="Seed of what is drawn.")] = 0
    split: Annotated[
        str | None,
        typer.Option("--split", metavar="NAME", help="Only this split of the library; else what is not held out."),
    ] = None
    hold_out: Annotated[
        float | None,
        typer.Option(
            "--hold-out",
            metavar="RATIO",
            help="First hold this share of the environments out from training, if none is yet.",
        ),
    ] = None


def _print_sft_formats(wanted: bool) -> None:
    if wanted:
        from envscaler.export import SFT_FORMATS

        _print_formats({entry.name: entry.summary for entry in SFT_FORMATS.values()})


def _print_rl_formats(wanted: bool) -> None:
    if wanted:
        from envscaler.export import RL_FORMATS

        _print_formats({entry.name: entry.summary for entry in RL_FORMATS.values()})


def _print_formats(summaries: dict[str, str]) -> None:
    from envscaler.cli.export_reports import show_formats
    from envscaler.cli.output import console

    show_formats(summaries, console())
    raise typer.Exit


def register(export_app: typer.Typer) -> None:
    """Add the commands to the tree."""

    @command(export_app, "sft", panel="Formats")
    def sft(
        run: Annotated[list[str], typer.Argument(metavar="RUN…", help="Folders of runs.")],
        out: Annotated[
            Path, typer.Option("--out", "-o", metavar="FILE", help="File to write; Parquet if it ends in .parquet.")
        ],
        format_name: Annotated[
            SftFormatName, typer.Option("--format", "-f", help="Whose rows; --formats tells what each is.")
        ] = SftFormatName.TRL,
        formats: Annotated[
            bool,
            typer.Option("--formats", callback=_print_sft_formats, is_eager=True, help="Tell what each format is."),
        ] = False,
        min_reward: Annotated[
            float | None,
            typer.Option("--min-reward", min=0.0, max=1.0, help="Keep episodes with at least this reward."),
        ] = None,
        reward: Annotated[RewardName, typer.Option("--reward", help="Reward that is compared.")] = RewardName.FRACTION,
        solved: Annotated[
            bool, typer.Option("--solved", help="Keep only episodes in which every check holds.")
        ] = False,
        finished: Annotated[
            bool, typer.Option("--finished/--unfinished", help="Keep only episodes that the agent ended itself.")
        ] = True,
        any_format: Annotated[
            bool, typer.Option("--any-format", help="Keep also conversations that are not well formed.")
        ] = False,
        masked: Annotated[
            bool, typer.Option("--masked", help="Keep also episodes that say nothing about the agent.")
        ] = False,
        without_slips: Annotated[
            bool, typer.Option("--without-slips", help="Drop episodes with replies whose form was not put right.")
        ] = False,
        without_user_slips: Annotated[
            bool, typer.Option("--without-user-slips", help="Drop episodes in which the simulated user slipped.")
        ] = False,
        min_steps: Annotated[
            int | None, typer.Option("--min-steps", min=0, help="Drop episodes of fewer steps.")
        ] = None,
        max_steps: Annotated[
            int | None, typer.Option("--max-steps", min=1, help="Drop episodes of more steps.")
        ] = None,
        distinct: Annotated[
            bool,
            typer.Option("--distinct", help="Of episodes of a scenario with the same calls keep the first."),
        ] = False,
        best: Annotated[
            int | None, typer.Option("--best", min=1, metavar="N", help="Keep the N best episodes of each scenario.")
        ] = None,
        per_env: Annotated[
            int | None,
            typer.Option("--per-env", min=1, metavar="N", help="Keep N episodes of each environment, drawn."),
        ] = None,
        max_tokens_row: Annotated[
            int | None, typer.Option("--max-tokens-row", min=1, metavar="N", help="Drop rows of more tokens.")
        ] = None,
        template: Annotated[
            str | None,
            typer.Option(
                "--template",
                metavar="FILE|NAME",
                help="Chat template: cut conversations into samples that train on what serving shows.",
            ),
        ] = None,
        template_args: Annotated[
            str | None,
            typer.Option("--template-args", metavar="JSON", help="Variables of the template (enable_thinking …)."),
        ] = None,
        tokenizer: Annotated[
            Path | None,
            typer.Option("--tokenizer", metavar="DIR", help="Tokenizer to count with; else characters / 4."),
        ] = None,
        rows: RowFlags = RowFlags(),
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Write the rows of episodes that are worth learning from, with a data card beside them."""
        from envscaler.cli.export_reports import show_export
        from envscaler.cli.places import locate_run
        from envscaler.export import SftFilters, export_sft
        from envscaler.export.tokens import load_tokenizer
        from envscaler.store import RunStore

        if min_steps is not None and max_steps is not None and min_steps > max_steps:
            raise UsageError(f"no episode has at least {min_steps} and at most {max_steps} steps")
        filters = SftFilters(
            well_formed=not any_format,
            finished=finished,
            masked=masked,
            slips=not without_slips,
            user_slips=not without_user_slips,
            min_steps=min_steps,
            max_steps=max_steps,
            reward_at_least=min_reward,
            reward_mode=reward.value,
            solved=solved,
            distinct=distinct,
            best=best,
            per_env=per_env,
            seed=rows.seed,
            max_tokens_row=max_tokens_row,
        )
        runs = [locate_run(name) for name in run]
        if rows.hold_out is not None:
            _hold_out(_libraries_of([RunStore.open(path) for path in runs]), rows.hold_out, rows.seed)
        report = export_sft(
            runs,
            out,
            filters,
            format=format_name.value,
            split=rows.split,
            template=_template(template, template_args, tokenizer),
            encode=load_tokenizer(tokenizer) if tokenizer is not None else None,
            parquet=rows.parquet,
        )
        _write_page(report.card, out, report.files)
        for lack in report.partial:
            complain(f"warning: {lack}")
        show_report(report, output, show_export)
        return EXIT_OK if report.kept else EXIT_NO_RESULT

    @command(export_app, "rl", panel="Formats")
    def rl(
        source: Annotated[
            list[str],
            typer.Argument(metavar="LIBRARY[/ENV]|RUN…", help="Whose scenarios: a library's, or those of runs."),
        ],
        out: Annotated[
            Path, typer.Option("--out", "-o", metavar="FILE", help="File to write; Parquet if it ends in .parquet.")
        ],
        format_name: Annotated[
            RlFormatName, typer.Option("--format", "-f", help="Whose rows; --formats tells what each is.")
        ] = RlFormatName.TRL,
        formats: Annotated[
            bool, typer.Option("--formats", callback=_print_rl_formats, is_eager=True, help="Tell what each is.")
        ] = False,
        mode: Annotated[ModeName, typer.Option("--mode", help="How the task is told.")] = ModeName.NON_CONVERSATION,
        per_env: Annotated[
            int | None,
            typer.Option("--per-env", min=1, metavar="N", help="Keep N scenarios of each environment, drawn."),
        ] = None,
        system_prompt: Annotated[
            Path | None,
            typer.Option(
                "--system-prompt",
                metavar="FILE",
                help="The file that episodes are collected with; else that of the runs, else the built-in one.",
            ),
        ] = None,
        library_path: Annotated[
            str | None,
            typer.Option(
                "--library-path",
                metavar="DIR",
                help="Where the machine that trains has the library; else as it is here.",
            ),
        ] = None,
        rows: RowFlags = RowFlags(),
        output: OutputFlags = OutputFlags(),  # noqa: B008 - a frozen value
    ) -> int:
        """Write the rows of scenarios: a prompt, and by what an adapter opens the scenario."""
        from envscaler.cli.export_reports import show_rl_export
        from envscaler.export import RlFilters, export_rl
        from envscaler.store import LibraryStore

        opened, env_id = _scenario_source(source)
        if rows.hold_out is not None:
            libraries = [opened] if isinstance(opened, LibraryStore) else _libraries_of(opened)
            _hold_out(libraries, rows.hold_out, rows.seed)
        report = export_rl(
            opened,
            out,
            RlFilters(mode=mode.value, per_env=per_env, seed=rows.seed),
            format=format_name.value,
            env_ids=(env_id,) if env_id is not None else None,
            split=rows.split,
            parquet=rows.parquet,
            library_path=library_path,
            system_prompt=system_prompt,
        )
        _write_page(report.card, out, report.files)
        show_report(report, output, show_rl_export)
        return EXIT_OK if report.kept else EXIT_NO_RESULT


def _scenario_source(names: list[str]) -> tuple[LibraryStore | list[RunStore], str | None]:
    from envscaler.cli.places import locate
    from envscaler.store import LibraryStore, RunStore

    places = [locate(name) for name in names]
    runs = [RunStore.open(place.run) for place in places if place.run is not None]
    if len(runs) == len(places):
        return runs, None
    if len(places) > 1:
        raise UsageError("give one library, or runs only")
    (place,) = places
    if place.scenario is not None:
        raise UsageError(f"{names[0]} names a scenario; give LIBRARY or LIBRARY/ENV")
    assert place.library is not None
    return LibraryStore.open(place.library), place.env_id


def _libraries_of(runs: Sequence[RunStore]) -> list[LibraryStore]:
    from envscaler.export.sources import library_of

    found = {library.path.resolve(): library for run in runs if (library := library_of(run)) is not None}
    if not found:
        raise UsageError("nothing can be held out: no library of these runs is at hand")
    return list(found.values())


def _hold_out(libraries: Sequence[LibraryStore], ratio: float, seed: int) -> None:
    from envscaler.curate import split_library
    from envscaler.store import splits_of
    from envscaler.store.splits import TRAIN

    if not 0.0 < ratio < 1.0:
        raise UsageError(f"--hold-out {ratio}: give a share between 0 and 1")
    for library in libraries:
        if splits_of(library):
            complain(f"{library.path} is split already, and stays as it is")
            continue
        report = split_library(library.path, {TRAIN: 1.0 - ratio, _HELD_OUT: ratio}, seed=seed)
        complain(f"held out from training in {library.path}: {', '.join(report.splits[_HELD_OUT])}")


def _template(name: str | None, variables: str | None, tokenizer: Path | None) -> ChatTemplate | None:
    import json

    from envscaler.export.templates import ChatTemplate

    if name is None:
        if variables is not None:
            raise UsageError("--template-args are variables of a template; name it with --template")
        return None
    try:
        given = json.loads(variables) if variables is not None else {}
    except ValueError as error:
        raise UsageError(f"--template-args is no JSON: {error}") from error
    if not isinstance(given, dict):
        raise UsageError('--template-args is no JSON object; give, say, {"enable_thinking": false}')
    return ChatTemplate.load(name, tokenizer=tokenizer, variables=given)


def _write_page(card: DataCard, out: Path, written: tuple[Path, ...]) -> None:
    from envscaler.export.card import card_path
    from envscaler.report.data_card import card_markdown
    from envscaler.store import write_atomic

    # Where there is no card in JSON there is no place for one: rows were written to a pipe.
    if card_path(out, ".json") in written:
        write_atomic(card_path(out, ".md"), card_markdown(card))
