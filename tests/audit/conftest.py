"""The release as the package itself reads and resets it, and a sandbox to judge states in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from envscaler.sandbox import BlockingSandbox

if TYPE_CHECKING:
    from .resets import Reset


@pytest.fixture(scope="session")
def release(shared_data: Path) -> Path:
    """The folder of the authors' release."""
    return shared_data / "data" / "envscaler_release"


@pytest.fixture(scope="session")
def released_resets(release: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Reset]:
    """Its scenarios with their states after reset, by id."""
    from .resets import resets

    return resets(release, tmp_path_factory.mktemp("release") / "library")


@pytest.fixture(scope="session")
def judging() -> Iterator[BlockingSandbox]:
    """A sandbox for checks."""
    with BlockingSandbox() as sandbox:
        yield sandbox
