"""What is exported for the trainers' own loaders: played episodes, and some made by hand that loaders stumble over."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from env.lending import scenario, skeleton
from export.episodes import PARALLEL, PLAIN, TALK, stored, trajectory, turn

from envscaler.env import open_library
from envscaler.export.messages import chat_of
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import LibraryStore, RunStore
from envscaler.trajectory import Trajectory

Row = dict[str, Any]

SILENT = (
    turn(("find_books", {"title": "Emma"}), told="出借《Emma》。", number=0, sees='{"书": ["B1"], "found": 1}'),
    turn(("lend_book", {"book_id": "B1", "member": "图"}), number=1),
    turn(says="已完成。"),
)
"""Chinese, and no reasoning anywhere."""

LONG_TALK = (
    *TALK,
    turn(("find_books", {"title": "<b>"}), told="And another?", thinks="Look again.", number=4),
    turn(says="There is none.", thinks="Nothing."),
)
"""Three messages of the user."""

SHAPES = {
    "plain": trajectory(id="plain", steps=PLAIN),
    "talk": trajectory(id="talk", steps=TALK, mode="conversation"),
    "long-talk": trajectory(id="long-talk", steps=LONG_TALK, mode="conversation"),
    "silent": trajectory(id="silent", steps=SILENT),
    "parallel": trajectory(id="parallel", steps=PARALLEL),
}
SINGLE_CALLS = tuple(name for name in SHAPES if name != "parallel")


def library_and_run(folder: Path) -> tuple[LibraryStore, Path]:
    """A library, and a run of it: the oracle's episodes and those made by hand."""
    store = LibraryStore.create(folder / "L")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment, number) for number in range(1, 4)])
    store.write_index({})
    with open_library(store.path) as opened:
        played = asyncio.run(run_rollout(opened, RolloutSettings(agent="oracle", out=folder / "played")))
    episodes: list[Trajectory] = [*RunStore(played.run).trajectories(), *SHAPES.values()]
    return store, stored(folder / "run", *episodes)


def chats_of(run: Path) -> list[Row]:
    """Messages and tools of each episode of a run, to compare with what a loader makes of its rows."""
    chats = [chat_of(episode) for episode in RunStore(run).trajectories()]
    return [{"messages": list(chat.messages), "tools": list(chat.tools)} for chat in chats]


def rows_in(path: Path) -> list[Row]:
    """The rows of a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def calls_of(messages: list[Row]) -> list[Row]:
    """Name and arguments of each call in its order."""
    return [call["function"] for message in messages for call in message.get("tool_calls", ())]
