"""Fixtures of the whole suite: the event loop that async tests use, and where external data are found."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# How long an example takes is a matter of what else the machine does.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

EXTERNAL = Path(os.environ.get("ENVSCALER_TEST_DATA") or Path(__file__).parents[1] / ".." / "shared").resolve()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of external test data (`ENVSCALER_TEST_DATA`, default `../shared`), or skip."""
    if not (EXTERNAL / "data").is_dir():
        pytest.skip(f"no external test data in {EXTERNAL}: set ENVSCALER_TEST_DATA to the folder that has them")
    return EXTERNAL
