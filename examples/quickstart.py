"""The whole way once: from task texts to a library, episodes and training rows, with no account and no network.

It runs the same commands that a user would type, prints each before it runs, and ends with what to try next. What
the commands do is not its business.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

import envscaler as es

TASKS = Path(__file__).with_name("tasks.jsonl")


def run(*words: str | Path) -> None:
    """Print one command and run it; the script ends when it fails."""
    arguments = [str(word) for word in words]
    print(f"\n$ envscaler {' '.join(arguments)}", flush=True)
    code = subprocess.run([sys.executable, "-m", "envscaler", *arguments], check=False).returncode
    if code:
        sys.exit(code)


def main() -> None:
    """Make the library, play it, export it, and say what is there."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--library", type=Path, default=Path("quickstart"), help="folder to make")
    options.add_argument("--tasks", type=Path, default=TASKS, help="task texts to begin from")
    chosen = options.parse_args()
    library: Path = chosen.library
    began = time.monotonic()

    print(
        "Everything is made by `offline`, the embedded procedural generator. It is not a language model:\n"
        "it shows the way that a model of your own goes with --model NAME."
    )
    run("synth", chosen.tasks, "--library", library, "--rounds", "30", "--scenarios", "3")
    run("rollout", library, "--agent", "oracle", "--out", library / "rollouts" / "oracle")
    run("rollout", library, "--agent", "noop", "--out", library / "rollouts" / "noop")
    run(
        *("rollout", library, "--agent", "model", "--mode", "conversation", "--per-env", "1"),
        *("--out", library / "rollouts" / "conversation"),
    )
    rows = library / "train.jsonl"
    run("export", "sft", library / "rollouts" / "conversation", "--out", rows)

    with es.open(library) as opened:
        env_ids = opened.env_ids
        scenarios = sum(len(opened.scenarios(env_id)) for env_id in env_ids)
        shown = next((env_id for env_id in env_ids if opened.scenarios(env_id)), env_ids[0])
    print(
        f"\nDone in {time.monotonic() - began:.0f} s: {len(env_ids)} environments with {scenarios} scenarios and three "
        f"runs in {library}/, training rows in {rows}.\n\n"
        f"Try next (after: source .venv/bin/activate)\n"
        f"  envscaler show {library}\n"
        f"  envscaler show {library}/{shown}\n"
        f"  envscaler show {library}/rollouts/conversation 0     an agent's episode, step by step\n"
        f"  envscaler play {library}/{shown}\n"
        f"  envscaler show {library} --html {library}.html\n"
        f"  envscaler synth YOUR-TASKS.jsonl --library my-library --model NAME --base-url URL"
    )


if __name__ == "__main__":
    main()
