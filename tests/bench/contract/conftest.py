"""The benchmarks' own packages, installed once in the folder that ENVSCALER_BENCH names, else in .venvs/bench."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from envscaler.bench.catalogue import benchmark_named
from envscaler.bench.installation import VARIABLE, Installation
from envscaler.bench.installing import install
from envscaler.errors import UsageError

PLACE = Path(os.environ.get(VARIABLE) or Path(__file__).parents[3] / ".venvs" / "bench").resolve()


def installed(name: str, data: Path | None = None) -> Installation:
    """The benchmark, or skip where its packages cannot be had."""
    try:
        return asyncio.run(install(benchmark_named(name), data=data))
    except UsageError as error:
        if "failed" in str(error):
            pytest.skip(f"{name} cannot be installed here: {error}")
        raise


@pytest.fixture(scope="session")
def place() -> Iterator[Path]:
    """Where benchmarks lie."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(PLACE))
        yield PLACE


@pytest.fixture(scope="session")
def bfcl(place: Path) -> Installation:
    """BFCL v3, the paper's data."""
    return installed("bfcl")


@pytest.fixture(scope="session")
def bfcl_v4(place: Path) -> Installation:
    """BFCL v4."""
    return installed("bfcl-v4")
