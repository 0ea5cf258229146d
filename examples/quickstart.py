"""The whole way once: task texts → environments → episodes → training rows → a page to look at, with no account.

It runs the same commands that a user would type, and prints each of them. A second run resumes: what is there is kept.

    python examples/quickstart.py --library quickstart
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

TASKS = Path(__file__).with_name("tasks.jsonl")
AGENTS = {
    "oracle": "plays the recorded solutions: every scenario can be solved",
    "noop": "does nothing: no scenario is solved by itself",
    "random": "makes valid calls at random: what luck is worth",
}

console = Console(markup=False, highlight=False)


def envscaler(*arguments: str) -> dict[str, Any]:
    """Run one command, with its progress in view, and return its result."""
    console.print(f"$ envscaler {shlex.join(arguments)}", style="bold cyan", soft_wrap=True)
    done = subprocess.run(
        [sys.executable, "-m", "envscaler", *arguments, "--json"], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        console.print(f"The command ended with exit code {done.returncode}; the quickstart stops here.", style="red")
        raise SystemExit(done.returncode)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    """Run the chain and say what was made."""
    parser = argparse.ArgumentParser(description="Make a small library from 200 task texts and play in it.")
    parser.add_argument("--library", type=Path, default=Path("quickstart"), help="folder to make (default: quickstart)")
    parser.add_argument("--tasks", type=Path, default=TASKS, help="task file to begin from")
    parser.add_argument("--limit", type=int, help="read so many tasks at most")
    options = parser.parse_args()
    library = options.library
    started = time.monotonic()

    limit = ["--limit", str(options.limit)] if options.limit else []
    # The paper tests each environment with 100 calls, which is also the command's default; 10 show the same way sooner.
    size = ["--scenarios", "2", "--rounds", "10", "--seed", "0"]
    synth = envscaler("synth", str(options.tasks), "--library", str(library), *size, *limit)
    with ThreadPoolExecutor() as side_by_side:
        played = {agent: side_by_side.submit(envscaler, "rollout", str(library), "--agent", agent) for agent in AGENTS}
    runs = {agent: run.result() for agent, run in played.items()}
    rows = library / "sft.jsonl"
    export = envscaler("export", "sft", runs["oracle"]["run"], "--out", str(rows), "--solved")
    page = library / "library.html"
    envscaler("show", str(library), "--html", str(page))

    funnel = synth["funnel"]
    resumed = synth["resumed"] + sum(run["resumed"] for run in runs.values())
    console.print()
    if resumed and not any(run["played"] for run in runs.values()):
        console.print("Everything was there already: this run resumed it and changed nothing.", style="green")
    made = Table(title="What was made", title_justify="left", title_style="bold", box=None, pad_edge=False)
    made.add_column("", justify="right")
    made.add_column("")
    made.add_column("where", style="cyan", overflow="fold")
    made.add_row(f"{funnel['tasks']}", "task texts read", str(options.tasks))
    made.add_row(f"{len(synth['environments'])}", "environments, checked", str(library / "environments"))
    made.add_row(f"{funnel['scenarios']}", f"scenarios, {funnel['solved']} with an executed solution", "")
    for agent, words in AGENTS.items():
        total = runs[agent]["record"]["scores"]["total"]
        solved = total["solved_rate"]
        share = "none could be judged" if solved is None else f"{solved:.0%} solved"
        made.add_row(f"{total['episodes']}", f"episodes of {agent}, {share} ({words})", runs[agent]["run"])
    made.add_row(f"{export['kept']}", "training rows", str(rows))
    made.add_row("1", "page", str(page))
    console.print(made)
    console.print(
        "\nAll of it was made by `offline`: a procedural generator, not a language model. "
        f"It took {time.monotonic() - started:.0f} s."
    )

    # A name that any keyboard can type.
    shown = next((name for name in synth["environments"] if name.isascii()), synth["environments"][0])
    program = (
        "envscaler" if Path(sys.executable).parent in _path() else str(Path(sys.executable).with_name("envscaler"))
    )
    console.print("\nTry next", style="bold")
    for words, command in (
        ("the library", f"show {library}"),
        ("an episode, step by step", f"show {runs['oracle']['run']} 0"),
        ("call tools by hand", f"play {library}/{shown}"),
        (
            "with your own model",
            f"rollout {library} --agent model --model NAME --base-url http://localhost:8000/v1 --max-calls 200",
        ),
    ):
        console.print(f"  {words:<26}{program} {command}", soft_wrap=True)
    console.print(f"  {'the page':<26}open {page} in a browser", soft_wrap=True)


def _path() -> list[Path]:
    return [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]


if __name__ == "__main__":
    main()
