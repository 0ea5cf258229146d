"""A small benchmark for tests that need no package of others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from bench.small_bench import small_bench

from envscaler.bench.installation import VARIABLE, Installation


@pytest.fixture(scope="session")
def lamps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """The small benchmark, installed under the name of BFCL in a folder of its own."""
    folder = tmp_path_factory.mktemp("bench")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "environments"))
        yield asyncio.run(small_bench(folder / "data"))
