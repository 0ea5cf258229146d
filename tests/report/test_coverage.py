"""Tests of the data of the coverage map: the same for the same library, in the same direction, whatever its size."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path

import anyio
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.errors import StoreError, UsageError
from envscaler.llm.embedding import NgramEmbedder
from envscaler.report.coverage import Coverage, Measured, as_csv, as_json, coverage_of, projected
from envscaler.report.coverage_map import write_map
from envscaler.skeleton import EnvDescription

LENT = ("bicycle", "kayak", "canoe", "umbrella", "tent", "$book_1")


def coverage(count: int) -> Coverage:
    environments = [
        Measured(
            env_id=f"{LENT[index]}-desk",
            description=EnvDescription(
                summary=f"{LENT[index].capitalize()} lending desk", introduction=f"It lends every {LENT[index]}."
            ),
            tools=index + 1,
            attributes=5,
            rules=0,
            scenarios=2 * index,
        )
        for index in range(count)
    ]

    async def made() -> Coverage:
        return await coverage_of("desks", environments, NgramEmbedder())

    return anyio.run(made)


@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_any_number_of_environments_has_a_place_each(count: int) -> None:
    told = coverage(count)
    assert [one.env_id for one in told.environments] == [f"{thing}-desk" for thing in LENT[:count]]
    assert told == coverage(count)
    assert [extent.name for extent in told.extents] == ["tools", "state attributes", "rules", "scenarios"]
    assert told.extents[0].values == tuple(range(1, count + 1))
    ids = {one.env_id for one in told.environments}
    assert all(one.group in ids for one in told.environments)
    assert all((one.nearest is None) == (count == 1) and one.nearest != one.env_id for one in told.environments)


def test_what_is_alike_lies_near() -> None:
    same = EnvDescription(summary="Kayak lending desk", introduction="It lends kayaks.")
    other = EnvDescription(summary="Tax returns", introduction="An office that assesses income.")
    environments = [
        Measured(env_id=name, description=text, tools=1, attributes=1, rules=1, scenarios=1)
        for name, text in (("a", same), ("b", other), ("c", same.model_copy(update={"summary": "Kayak lending"})))
    ]

    async def made() -> Coverage:
        return await coverage_of("three", environments, NgramEmbedder())

    a, b, c = anyio.run(made).environments
    assert (a.nearest, c.nearest) == ("c", "a")
    assert abs(a.x - c.x) < abs(a.x - b.x) / 2


@settings(deadline=None, max_examples=40)
@given(st.integers(2, 8), st.integers(2, 12), st.integers(0, 1000))
def test_a_projection_keeps_what_varies_most_and_points_one_way(count: int, dimension: int, seed: int) -> None:
    vectors = np.random.default_rng(seed).normal(size=(count, dimension))
    points, (first, second) = projected(vectors)
    assert points.shape == (count, 2)
    assert first + second <= 1.0 + 1e-3
    assert first >= second >= 0.0
    for axis in range(2):
        along = points[:, axis]
        assert along[np.argmax(np.abs(along))] >= 0
        assert abs(along.sum()) < 1e-2
    # Turning everything round does not turn the picture round, save where two places are equally far out.
    turned, shares = projected(-vectors[:, ::-1])
    assert shares == pytest.approx((first, second), abs=1e-3)
    assert np.allclose(np.abs(turned), np.abs(points), atol=1e-2)


def test_the_data_is_the_same_as_json_and_as_table() -> None:
    told = coverage(6)
    assert Coverage.model_validate(json.loads(as_json(told))["coverage"]) == told
    rows = list(csv.DictReader(io.StringIO(as_csv(told))))
    assert [(row["env_id"], float(row["x"]), row["tools"]) for row in rows] == [
        (one.env_id, one.x, str(index + 1)) for index, one in enumerate(told.environments)
    ]


@pytest.mark.parametrize("count", [1, 6])
def test_the_map_is_a_picture_that_replaces_its_like_only(count: int, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="drawing needs the extra `plots`")
    path = tmp_path / "map.png"
    write_map(path, coverage(count))
    first = path.read_bytes()
    assert first.startswith(b"\x89PNG")
    write_map(path, coverage(count))
    assert path.read_bytes() == first
    path.write_bytes(b"\x89PNG of somebody else")
    with pytest.raises(StoreError, match="not written by this command"):
        write_map(path, coverage(count))


def test_without_matplotlib_it_is_said_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"envscaler\[plots\]"):
        write_map(tmp_path / "map.png", coverage(1))
