"""The card as a page: it says what the record says, and a table stays a table."""

from __future__ import annotations

from pathlib import Path

from env.lending import scenario, skeleton
from export.episodes import TALK, stored, trajectory

from envscaler.export import SftFilters, export_rl, export_sft
from envscaler.export.card import DataCard, EnvironmentOfCard
from envscaler.report.data_card import card_markdown
from envscaler.store import LibraryStore


def test_the_page_tells_rows_sources_filters_and_what_was_dropped(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory(), trajectory(id="u", steps=TALK))
    page = card_markdown(export_sft(run, tmp_path / "rows.jsonl", SftFilters(max_steps=3)).card)
    assert page.startswith("# Supervised fine-tuning: 1 rows in the format `trl`\n")
    assert "| more than 3 steps | 1 |" in page
    assert "- run `run` of a library that was not at hand: 1 of 2 episodes" in page
    assert "`max_steps` 3" in page
    assert "Tokens are estimated: characters / 4." in page
    assert "| lending-desk | 1 |" in page
    assert "whose terms of use apply" in page


def test_the_page_of_scenarios_tells_library_difficulty_and_licence(tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment)])
    page = card_markdown(export_rl(store, tmp_path / "rows.jsonl", format="verl").card)
    assert page.startswith("# Reinforcement learning: 1 rows in the format `verl`\n")
    assert "- library `L`, digest `" in page
    assert "| not known | 1 |" in page
    assert "licence: the library does not say" in page
    assert "whose terms of use apply" not in page


def test_what_is_not_known_or_empty_has_no_heading() -> None:
    page = card_markdown(DataCard(kind="sft", format="trl", summary="S.", rows=0, episodes=0))
    assert "## Environments" not in page
    assert "| Reward" not in page
    assert "None" not in page


def test_many_environments_are_cut_and_bars_in_names_break_no_table() -> None:
    environments = {f"env-{number:04d}": EnvironmentOfCard(rows=1) for number in range(250)}
    card = DataCard(
        kind="sft",
        format="trl",
        summary="S.",
        rows=250,
        episodes=250,
        environments=environments,
        dropped={"format: a | b\nc": 2},
    )
    page = card_markdown(card)
    assert "50 more stand in the JSON card." in page
    assert "| format: a \\| b c | 2 |" in page
