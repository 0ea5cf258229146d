"""A benchmark of our own writing in tau-bench's form, in an environment of its own, as `bench install` leaves it."""

from __future__ import annotations

import shutil
import sys
import venv
from pathlib import Path

from envscaler.bench.catalogue import benchmark_named
from envscaler.bench.installation import Installation, folder_of
from envscaler.bench.installing import install

PACKAGE = Path(__file__).parent / "small" / "tau_bench"


async def small_tau(checkout: Path) -> Installation:
    """The benchmark, installed and checked.

    Args:
        checkout: the folder that is made as if it were a checkout of tau-bench.
    """
    benchmark = benchmark_named("tau")
    folder = folder_of(benchmark)
    venv.create(folder, clear=True, symlinks=True)
    made_of = "\n".join((*benchmark.packages, sys.version.split()[0]))
    (folder / ".made-of").write_text(made_of, encoding="utf-8")
    shutil.copytree(PACKAGE, checkout / "tau_bench", ignore=shutil.ignore_patterns("__pycache__"))
    return await install(benchmark, data=checkout)
