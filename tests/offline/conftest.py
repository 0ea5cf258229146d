"""Blueprints that the tests of the offline model share."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.offline.blueprint import Blueprint
from envscaler.offline.domains import read_domain


@pytest.fixture(scope="session")
def tool_library() -> Blueprint:
    """A small domain with every kind of field, effect and query."""
    path = Path(__file__).with_name("tool_library.yaml")
    return read_domain(path.read_text(encoding="utf-8"), path.name)
