"""A small synthesis whose replies are a function of the question: what the offline model says, recorded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path

from servers.chat_server import Body

from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.synth import SynthSettings, run_synth
from perf.recorded import Recorder, question_key

TASKS = (
    "Book a dental cleaning for Maria Lopez next Tuesday and cancel her old appointment.",
    "What is the capital of France?",
    "Lend the book 'Salt Roads' to Tom Baker for two weeks.",
    "Approve the travel expense claim of Jana Novak and reject the second one.",
)
ROUNDS, SCENARIOS = 6, 2
FLAGS: tuple[object, ...] = (
    *("--rounds", ROUNDS, "--scenarios", SCENARIOS),
    # The server knows no agent: it answers with what the offline model said, which plays no tasks.
    *("--solver-runs", 0),
    # What is asked for again after a reply to several questions depends on what it held; one alone is the same.
    *("--checks-per-call", 1, "--methods-per-call", 1),
)


def write_tasks(path: Path) -> None:
    """Write the tasks to a file."""
    path.write_text("".join(json.dumps({"task": text}) + "\n" for text in TASKS), encoding="utf-8")


def replies_to(task_file: Path, library: Path) -> Mapping[str, str]:
    """What the offline model says in the synthesis of a file, by question."""
    recorder = Recorder()

    async def run() -> None:
        settings = SynthSettings(
            tasks=task_file,
            library=library,
            rounds=ROUNDS,
            scenarios=SCENARIOS,
            solver_runs=0,
            checks_per_call=1,
            methods_per_call=1,
        )
        async with open_models(ModelSettings(), offline=recorder) as models:
            await run_synth(settings, models, Prompts())

    asyncio.run(run())
    return recorder.replies


def answer_to(replies: Mapping[str, str], body: Body) -> str:
    """The reply to a request; a question that was not recorded is the test's own mistake."""
    return replies[question_key(body["messages"])]
