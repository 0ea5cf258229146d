"""Tasks of our own writing in ACEBench's form, and a small package that plays them, as `bench install` leaves it."""

from __future__ import annotations

import json
import shutil
import sys
import venv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from envscaler.bench.catalogue import benchmark_named
from envscaler.bench.installation import Installation, folder_of
from envscaler.bench.installing import install

PACKAGE = Path(__file__).parent / "small" / "evalscope"
TOOLS = {"plug_in": (), "pour": ("guest", "kind"), "smash": (), "play": ("song",)}
LONG = "[pour(guest='Aunt O'Hara', kind='Earl's green')]"
"""A milestone whose apostrophes stand inside of single quotes."""


def entry(
    name: str, question: str, end: dict[str, Any], milestones: Any, *, tools: Sequence[str] = tuple(TOOLS), **start: Any
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task with what is recorded of it; the end state names what a class holds."""
    functions = [
        {
            "name": tool,
            "description": f"{tool} it",
            "parameters": {
                "type": "dict",
                "required": list(TOOLS[tool]),
                "properties": {key: {"type": "string"} for key in TOOLS[tool]},
            },
        }
        for tool in tools
    ]
    task = {
        "id": name,
        "question": question,
        "initial_config": start,
        "function": functions,
        "involved_classes": ["BaseApi", "Kettle", "Radio"],
    }
    return task, {"id": name, "ground_truth": [{key: value} for key, value in end.items()], "mile_stone": milestones}


def tea(guest: str, kind: str) -> dict[str, Any]:
    return {"Kettle": {"power": True, "cups": {guest: kind}}}


PLUG, MINT = "[plug_in()]", "[pour(guest='Ada', kind='mint')]"
TASKS = {
    "multi_step": [
        entry("agent_multi_step_0", "Mint tea for Ada.", tea("Ada", "mint"), [PLUG, MINT]),
        entry("agent_multi_step_1", "Tea for Aunt O'Hara.", tea("Aunt O'Hara", "Earl's green"), [PLUG, LONG]),
        # The first way does not lead there.
        entry("agent_multi_step_2", "Mint tea for Ada, please.", tea("Ada", "mint"), [[MINT], [PLUG, MINT]]),
        entry("agent_multi_step_3", "Nothing, really.", {"Kettle": {"power": False, "cups": {}}}, [PLUG, "[:-)]"]),
    ],
    "multi_turn": [
        entry("agent_multi_turn_0", "You want mint tea, and are Ada.", tea("Ada", "mint"), [PLUG, MINT]),
        entry(
            "agent_multi_turn_1",
            "You want two cups, for Ada and for Bo.",
            {"Kettle": {"power": True, "cups": {"Ada": "mint", "Bo": "mint"}}, "Radioo": {}},
            ["[plug_in()]", "[pour(guest='Ada', kind='mint'), pour(guest='Bo', kind='mint')]", "[play(song='La mer')]"],
            tools=("plug_in", "pour", "smash"),
        ),
    ],
}


def write_checkout(folder: Path) -> Path:
    """A folder like a checkout of the benchmark; Chinese differs in what is asked."""
    for language in ("en", "zh"):
        place = folder / "data_all" / f"data_{language}"
        (place / "possible_answer").mkdir(parents=True)
        for split, entries in TASKS.items():
            name = f"data_agent_{split}.json"
            tasks = [
                {**task, "question": task["question"] if language == "en" else f"请：{task['question']}"}
                for task, _ in entries
            ]
            for path, lines in ((place / name, tasks), (place / "possible_answer" / name, [one for _, one in entries])):
                path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return folder


async def small_ace(data: Path) -> Installation:
    """The benchmark, installed and checked."""
    benchmark = benchmark_named("ace")
    folder = folder_of(benchmark)
    venv.create(folder, clear=True, symlinks=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    shutil.copytree(PACKAGE, packages / "evalscope", ignore=shutil.ignore_patterns("__pycache__"))
    (packages / "evalscope-0.1.dist-info").mkdir()
    (packages / "evalscope-0.1.dist-info" / "METADATA").write_text("Name: evalscope\nVersion: 0.1\n", encoding="utf-8")
    (folder / ".made-of").write_text("\n".join((*benchmark.packages, sys.version.split()[0])), encoding="utf-8")
    return await install(benchmark, data=write_checkout(data))
