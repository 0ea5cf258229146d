"""A benchmark of our own writing in BFCL's form, in an environment of its own, as `bench install` leaves it."""

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

PACKAGE = Path(__file__).parent / "small" / "bfcl_eval"
TOOLS = {
    "list_lamps": {},
    "dim": {"lamp": {"type": "string"}, "level": {"type": "integer"}},
    "note": {"text": {"type": "string"}, "tags": {"type": "any"}},
}
TEXT = "It said \"hm\", 'quoted' – äöü 電燈\nmore"
Turns = Sequence[tuple[str, Sequence[str]]]
"""What the user says in each turn, with the recorded calls; nothing said: functions are announced."""


def entry(name: str, turns: Turns, **more: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """A task with its recorded solution."""
    task = {
        "id": name,
        "question": [[{"role": "user", "content": said}] if said else [] for said, _ in turns],
        "initial_config": {"LampAPI": {"lamps": {"desk": 0, "hall": 5}}},
        "involved_classes": ["LampAPI"],
        **more,
    }
    return task, {"id": name, "ground_truth": [list(calls) for _, calls in turns]}


DIM = "dim(lamp='desk', level=7)"
TASKS = {
    "base": [
        entry("multi_turn_base_0", [("Desk to 7.", [DIM]), ("Hall to 1.", ["dim('hall', 1)"])]),
        entry("multi_turn_base_1", [("Write it down.", ["list_lamps()", f"note(text={TEXT!r})"])]),
    ],
    "miss_func": [
        entry(
            "multi_turn_miss_func_0",
            [("Note it: dark.", []), ("", ["note(text='dark')"]), ("Hall to 1.", ["dim('hall', 1)"])],
            missed_function={"1": ["note"]},
        )
    ],
    "miss_param": [
        entry(
            "multi_turn_miss_param_0",
            [("Dim the desk.", []), ("To 7.", [DIM]), ("Hall to 1.", ["dim('hall', 1)"])],
        )
    ],
    "long_context": [entry("multi_turn_long_context_0", [("Desk to 7.", [DIM]), ("Hall to 1.", ["dim('hall', 1)"])])],
}


def write_tasks(folder: Path) -> Path:
    """A folder with the tasks, as `--data` takes it."""
    (folder / "possible_answer").mkdir(parents=True)
    for split, entries in TASKS.items():
        name = f"BFCL_v3_multi_turn_{split}.json"
        for path, column in ((folder / name, 0), (folder / "possible_answer" / name, 1)):
            path.write_text("".join(json.dumps(pair[column]) + "\n" for pair in entries), encoding="utf-8")
    return folder


def make_environment(name: str) -> Path:
    """The virtual environment of a benchmark with our package in it."""
    benchmark = benchmark_named(name)
    folder = folder_of(benchmark)
    venv.create(folder, clear=True, symlinks=True)
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    shutil.copytree(PACKAGE, packages / "bfcl_eval", ignore=shutil.ignore_patterns("__pycache__"))
    documents = packages / "bfcl_eval" / "data" / "multi_turn_func_doc"
    documents.mkdir(parents=True)
    lines = (
        {"name": tool, "description": f"{tool} it", "parameters": {"type": "dict", "properties": properties}}
        for tool, properties in TOOLS.items()
    )
    (documents / "lamp_api.json").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    (packages / "bfcl_eval-0.1.dist-info").mkdir()
    (packages / "bfcl_eval-0.1.dist-info" / "METADATA").write_text("Name: bfcl-eval\nVersion: 0.1\n", encoding="utf-8")
    made_of = "\n".join((*benchmark.packages, sys.version.split()[0]))
    (folder / ".made-of").write_text(made_of, encoding="utf-8")
    return folder


async def small_bench(data: Path, name: str = "bfcl") -> Installation:
    """The benchmark, installed and checked."""
    make_environment(name)
    return await install(benchmark_named(name), data=write_tasks(data))
