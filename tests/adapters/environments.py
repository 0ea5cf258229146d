"""`make test-adapters`: each trainer in a virtual environment of its own, and there the tests of what it is given.

    python tests/adapters/environments.py            all of them
    python tests/adapters/environments.py gem        only this one

Where environments lie, and how they are made, is the business of tests/trainers/environments.py; that of TRL is shared.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "trainers"))

from environments import PLACE, ROOT, TRAINERS, Trainer, make, python_of

EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
CONTRACTS = {
    "gem": ("test_gem.py", "test_gymnasium.py"),
    "trl": ("test_trl.py", "test_example.py"),
}


def main(names: list[str]) -> int:
    """Make the environments and run the tests; 1 if any failed or could not be run."""
    unknown = sorted(set(names) - CONTRACTS.keys())
    if unknown:
        print(f"no such environment: {', '.join(unknown)}; there are {', '.join(CONTRACTS)}")
        return 2
    TRAINERS["gem"] = Trainer(packages=(*EXTRAS["gem"], *EXTRAS["gymnasium"]), tests=())
    PLACE.mkdir(parents=True, exist_ok=True)
    outcomes: dict[str, str] = {}
    for name in names or CONTRACTS:
        print(f"\n== {name}", flush=True)
        reason = make(name)
        if reason is not None:
            outcomes[name] = f"could not be installed: {reason}"
            continue
        tests = [str(Path(__file__).parent / "contract" / test) for test in CONTRACTS[name]]
        settings = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_WAIT_POLICY": "PASSIVE", "TRL_EXPERIMENTAL_SILENCE": "1"}
        command = [str(python_of(name)), "-m", "pytest", "-m", "slow or not slow", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(command, cwd=ROOT, env=settings, check=False)
        outcomes[name] = "passed" if done.returncode == 0 else f"failed: pytest ended with {done.returncode}"
    print()
    for name, outcome in outcomes.items():
        print(f"{name:14} {outcome}")
    return int(any(outcome != "passed" for outcome in outcomes.values()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
