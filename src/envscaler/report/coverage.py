"""Where the environments of a library lie beside one another, and how large they are: the data of the coverage map.

How the map is drawn is `coverage_map`'s business.

Source: the paper's figures of its 191 environments (projection of the embedded descriptions; tools, states, rules and
scenarios of an environment). That groups are found by k-means, and named after the environment in their middle, is
ours.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from envscaler.llm.embedding import EmbeddingModel
from envscaler.record import SCHEMA_VERSION, Record
from envscaler.skeleton import EnvDescription, EnvSkeleton
from envscaler.store import json_text
from envscaler.synth.merge import cluster, embedded

_MOST_GROUPS = 10
"""More colours than that are not told apart."""


class Extent(Record):
    """What is counted in every environment."""

    name: str
    paper_mean: float | None
    """What the paper says of its 191 environments; None where it says nothing."""
    values: tuple[int, ...]
    """One for each environment, in their order."""


class Placed(Record):
    """One environment on the map."""

    env_id: str
    summary: str
    x: float
    y: float
    group: str
    """Id of the environment in the middle of its group."""
    nearest: str | None
    """The environment whose description is most like its own; None where it is alone."""
    similarity: float | None
    """Cosine of the two descriptions."""


class Coverage(Record):
    """The map of one library. Equal libraries give equal numbers."""

    library: str
    embedding: str
    """Name of the embedding model."""
    explained: tuple[float, float]
    """Shares of the differences between descriptions that the two axes show."""
    environments: tuple[Placed, ...]
    extents: tuple[Extent, ...]


@dataclass(frozen=True)
class Measured:
    """What is kept of an environment."""

    env_id: str
    description: EnvDescription
    tools: int
    attributes: int
    rules: int
    scenarios: int


def measured(skeleton: EnvSkeleton, scenarios: int) -> Measured:
    """One environment with so many scenarios."""
    attributes = {(entity.name, part.name) for entity in skeleton.entities for part in entity.attributes}
    return Measured(
        env_id=skeleton.id,
        description=skeleton.description,
        tools=len(skeleton.tools),
        attributes=len(attributes),
        rules=len(skeleton.rules),
        scenarios=scenarios,
    )


async def coverage_of(library: str, environments: Iterable[Measured], embedder: EmbeddingModel) -> Coverage:
    """The map of a library.

    Args:
        library: what it is called.
        environments: in the order in which they are to be told.
    """
    found = list(environments)
    vectors = np.asarray(await embedded(embedder, [one.description for one in found]), dtype=np.float64)
    points, explained = projected(vectors)
    groups = cluster(vectors.astype(np.float32), _groups(len(found)), seed=0) if found else ()
    nearest = _nearest(vectors)
    return Coverage(
        library=library,
        embedding=embedder.name,
        explained=explained,
        environments=tuple(
            Placed(
                env_id=one.env_id,
                summary=one.description.summary,
                x=float(point[0]),
                y=float(point[1]),
                group=found[middle].env_id,
                nearest=None if near is None else found[near[0]].env_id,
                similarity=None if near is None else near[1],
            )
            for one, point, (middle, _), near in zip(found, points, groups, nearest, strict=True)
        ),
        extents=(
            Extent(name="tools", paper_mean=18.58, values=tuple(one.tools for one in found)),
            Extent(name="state attributes", paper_mean=21.38, values=tuple(one.attributes for one in found)),
            Extent(name="rules", paper_mean=4.6, values=tuple(one.rules for one in found)),
            Extent(name="scenarios", paper_mean=37.28, values=tuple(one.scenarios for one in found)),
        ),
    )


def projected(vectors: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], tuple[float, float]]:
    """The first two principal components of vectors, and the shares of the variance that they hold.

    The direction of a component is a matter of chance; here the place farthest out on it has a positive coordinate.
    """
    count = len(vectors)
    points = np.zeros((count, 2))
    if count < 2:
        return points, (0.0, 0.0)
    centred = vectors - vectors.mean(axis=0)
    # The smaller of the two matrices of products gives the same components.
    values, sides = np.linalg.eigh(centred @ centred.T if count <= vectors.shape[1] else centred.T @ centred)
    whole = float(np.sum(np.maximum(values, 0.0)))
    shares = [0.0, 0.0]
    for axis in range(min(2, len(values))):
        value, side = max(float(values[-1 - axis]), 0.0), sides[:, -1 - axis]
        if whole <= 0.0 or value <= whole * 1e-9:
            continue
        along = side * math.sqrt(value) if count <= vectors.shape[1] else centred @ side
        # Which of two places is farther out must not hang on the last digit.
        along = np.round(along, 6)
        if along[int(np.argmax(np.abs(along)))] < 0:
            along = -along
        points[:, axis] = np.round(along, 4) + 0.0
        shares[axis] = round(value / whole, 4)
    return points, (shares[0], shares[1])


def _groups(count: int) -> int:
    return max(1, min(_MOST_GROUPS, round(math.sqrt(count / 2))))


def _nearest(vectors: npt.NDArray[np.float64]) -> list[tuple[int, float] | None]:
    if len(vectors) < 2:
        return [None] * len(vectors)
    found: list[tuple[int, float] | None] = []
    for index, vector in enumerate(vectors):
        similarities = np.round(vectors @ vector, 4)
        similarities[index] = -np.inf
        best = int(np.argmax(similarities))
        found.append((best, float(similarities[best])))
    return found


MARK = '"coverage": {'
"""Stands near the beginning of every JSON file of coverage."""


def as_json(coverage: Coverage) -> str:
    """The data as a JSON file."""
    return json_text({"schema_version": SCHEMA_VERSION, "coverage": coverage.model_dump(mode="json")})


HEADINGS = ("env_id", "summary", "x", "y", "group", "nearest", "similarity")


def as_csv(coverage: Coverage) -> str:
    """The data as a table, one environment a line."""
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    rows.writerow([*HEADINGS, *(extent.name for extent in coverage.extents)])
    for index, one in enumerate(coverage.environments):
        own: Sequence[object] = [getattr(one, name) for name in HEADINGS]
        rows.writerow([*own, *(extent.values[index] for extent in coverage.extents)])
    return out.getvalue()
