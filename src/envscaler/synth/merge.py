"""Finds, for a description, the environment that it already is; keeps one of each group of near-duplicates.

What happens to the texts that are merged is the pipeline's business.

Source: paper 3.1, Dedup. The greedy way in input order is ours, because it streams and does not need to know how
many environments there will be; `cluster` is the released code's k-means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from envscaler.llm.embedding import EmbeddingModel, Vectors
from envscaler.record import Record
from envscaler.skeleton import EnvDescription

_BATCH = 256


class Match(Record):
    """The environment that a description already is."""

    env_id: str
    how: Literal["summary", "similar", "cluster"]
    similarity: float


class DescriptionIndex:
    """The environments so far. Vectors are made when the first comparison needs them."""

    def __init__(self, embedder: EmbeddingModel, threshold: float) -> None:
        self._embedder = embedder
        self._threshold = threshold
        self._summaries: dict[str, str] = {}
        self._ids: list[str] = []
        self._rows: Vectors | None = None
        self._used = 0
        self._waiting: list[EnvDescription | Vectors] = []

    def add(self, env_id: str, description: EnvDescription, vector: Vectors | None = None) -> None:
        """Add an environment; an earlier one keeps its summary."""
        self._summaries.setdefault(summary_key(description), env_id)
        self._ids.append(env_id)
        self._waiting.append(description if vector is None else vector)

    async def find(self, description: EnvDescription, vector: Vectors) -> Match | None:
        """The environment with the same summary, else the first among the most similar ones above the threshold."""
        same = self._summaries.get(summary_key(description))
        if same is not None:
            return Match(env_id=same, how="summary", similarity=1.0)
        await self._embed_waiting()
        if self._rows is None:
            return None
        similarities = self._rows[: self._used] @ vector
        best = int(np.argmax(similarities))
        similarity = round(float(similarities[best]), 4)
        if similarity < self._threshold:
            return None
        return Match(env_id=self._ids[best], how="similar", similarity=similarity)

    async def _embed_waiting(self) -> None:
        while self._waiting:
            batch = self._waiting[:_BATCH]
            described = [entry for entry in batch if isinstance(entry, EnvDescription)]
            made = iter(await embedded(self._embedder, described))
            for entry in batch:
                self._append(next(made) if isinstance(entry, EnvDescription) else entry)
            del self._waiting[: len(batch)]

    def _append(self, vector: Vectors) -> None:
        if self._rows is None:
            self._rows = np.zeros((64, vector.shape[-1]), dtype=np.float32)
        if self._used == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._rows[self._used] = vector
        self._used += 1


def summary_key(description: EnvDescription) -> str:
    """Summaries with an equal key name the same environment."""
    return " ".join(description.summary.casefold().split())


async def embedded(embedder: EmbeddingModel, descriptions: Sequence[EnvDescription]) -> Vectors:
    """The unit vectors by which descriptions are compared, one a row.

    The summary counts as much as the introduction: introductions of the same kind of environment share most of their
    words whatever it is about, and what it is about stands in the summary.
    """
    texts = [text for description in descriptions for text in (description.summary, description.introduction)]
    if not texts:
        return np.zeros((0, 0), dtype=np.float32)
    vectors = await embedder.embed(texts)
    sums = vectors[0::2] + vectors[1::2]
    unit: Vectors = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return unit


def cluster(vectors: Vectors, clusters: int, seed: int) -> tuple[tuple[int, float], ...]:
    """Group descriptions by k-means and let the one nearest to each centre stand for its group.

    Returns:
        For each vector the index of its representative and the similarity to it.
    """
    count = len(vectors)
    if count <= clusters:
        return tuple((index, 1.0) for index in range(count))
    # scikit-learn takes a second to import; a greedy run must not wait for it here.
    from sklearn.cluster import KMeans

    fitted = KMeans(n_clusters=clusters, random_state=seed % 2**32, n_init=4).fit(vectors)
    labels: Sequence[int] = [int(label) for label in fitted.labels_]
    distances = np.linalg.norm(vectors - fitted.cluster_centers_[labels], axis=1)
    nearest: dict[int, int] = {}
    for index, label in enumerate(labels):
        if label not in nearest or distances[index] < distances[nearest[label]]:
            nearest[label] = index
    return tuple(
        (nearest[label], round(float(vectors[index] @ vectors[nearest[label]]), 4))
        for index, label in enumerate(labels)
    )
