"""Tests of de-duplication: what is merged into what, and which ids environments get."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from envscaler.llm.embedding import NgramEmbedder, Vectors
from envscaler.skeleton import EnvDescription
from envscaler.synth.choosing import slug
from envscaler.synth.merge import DescriptionIndex, cluster, embedded


class Pointing:
    """Embeds each text as the unit vector of an angle in degrees that it names."""

    def __init__(self) -> None:
        self.embedded: list[str] = []

    @property
    def name(self) -> str:
        return "pointing"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        angles = np.radians([float(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    async def aclose(self) -> None:
        return None


def desk(name: str, angle: float) -> EnvDescription:
    return EnvDescription(summary=f"{name} {angle}", introduction=f"at {angle}")


async def find(index: DescriptionIndex, embedder: Pointing, description: EnvDescription) -> str | None:
    match = await index.find(description, (await embedded(embedder, [description]))[0])
    return f"{match.env_id} {match.how}" if match is not None else None


@pytest.mark.anyio
async def test_equal_summaries_are_the_same_whatever_their_case_and_spaces() -> None:
    embedder = Pointing()
    index = DescriptionIndex(embedder, 0.99)
    index.add("a", EnvDescription(summary="Bike  Desk 7", introduction="at 0"))
    other = EnvDescription(summary="bike desk 7", introduction="at 90")
    assert await find(index, embedder, other) == "a summary"


@pytest.mark.anyio
async def test_summary_and_introduction_count_alike() -> None:
    description = EnvDescription(summary="at 20", introduction="at 80")
    vector = (await embedded(Pointing(), [description]))[0]
    assert np.degrees(np.arctan2(vector[1], vector[0])) == pytest.approx(50, abs=1e-3)


@pytest.mark.anyio
async def test_similar_descriptions_are_merged_into_the_most_similar_one_from_the_threshold_on() -> None:
    embedder = Pointing()
    index = DescriptionIndex(embedder, float(np.cos(np.radians(20))))
    for env_id, angle in (("a", 0), ("b", 30), ("c", 80)):
        index.add(env_id, desk(env_id, angle))
    assert await find(index, embedder, desk("x", 18)) == "b similar"
    assert await find(index, embedder, desk("y", 55)) is None


@pytest.mark.anyio
async def test_vectors_are_made_once_and_only_when_something_has_to_be_compared() -> None:
    embedder = Pointing()
    index = DescriptionIndex(embedder, 0.999)
    for number in range(300):
        index.add(f"e{number}", desk(f"e{number}", number))
    assert embedder.embedded == []
    assert await find(index, embedder, desk("x", 299.2)) == "e299 similar"
    assert len(embedder.embedded) == 2 * 301
    assert await find(index, embedder, desk("y", 150.3)) == "e150 similar"
    assert len(embedder.embedded) == 2 * 302


@pytest.mark.anyio
async def test_descriptions_of_one_thing_in_other_words_are_nearer_than_those_of_two_things() -> None:
    vectors = await NgramEmbedder().embed(
        [
            "Library lending desk\nIt keeps books, members and loans of a public library.",
            "Public library loans\nA public library keeps its members, books and their loans.",
            "Hospital ward\nIt keeps patients, beds and the medication that nurses hand out.",
        ]
    )
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2]


def angles(*degrees: float) -> Vectors:
    radians = np.radians(degrees)
    return np.stack([np.cos(radians), np.sin(radians)], axis=1).astype(np.float32)


def test_clusters_keep_the_one_nearest_to_each_centre() -> None:
    groups = cluster(angles(0, 2, 4, 90, 91, 95), 2, seed=0)
    assert [representative for representative, _ in groups] == [1, 1, 1, 4, 4, 4]
    assert all(similarity > 0.99 for _, similarity in groups)


def test_fewer_descriptions_than_clusters_all_stay() -> None:
    assert cluster(angles(0, 10), 5, seed=0) == ((0, 1.0), (1, 1.0))


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 359), min_size=1, max_size=30, unique=True), st.integers(1, 8), st.integers(0, 5))
def test_every_group_has_exactly_one_representative_which_stands_for_itself(
    degrees: list[float], clusters: int, seed: int
) -> None:
    groups = cluster(angles(*degrees), clusters, seed)
    representatives = {representative for representative, _ in groups}
    assert len(representatives) <= max(clusters, 1)
    assert all(groups[representative][0] == representative for representative in representatives)


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("Library Lending Desk", "library-lending-desk"),
        ("Café & Bakery: Order_Desk", "cafe-bakery-order-desk"),
        ("图书馆借阅台", "图书馆借阅台"),
        ("Straßenbahn-Depot", "strassenbahn-depot"),
        ("!!!", "environment"),
        ("a " * 100, "-".join("a" * 24)),
        ("x" * 500, "x" * 48),
    ],
)
def test_ids_are_readable(summary: str, expected: str) -> None:
    assert slug(summary) == expected


@given(st.text(max_size=100))
def test_any_summary_gives_a_usable_folder_name(summary: str) -> None:
    name = slug(summary)
    assert 0 < len(name) <= 48
    assert all(part.isalnum() or part == "-" or not part.isascii() for part in name)
    assert name[0] != "-"
