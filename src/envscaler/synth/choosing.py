"""Decides, in input order, which descriptions are environments of their own, and gives those their ids.

Decisions are kept: once made they do not change when the same command is run again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from envscaler.llm.embedding import EmbeddingModel, Vectors
from envscaler.skeleton import EnvDescription, ModelUse
from envscaler.store import LibraryStore
from envscaler.synth.merge import DescriptionIndex, cluster, embedded, summary_key
from envscaler.synth.resume import Decision, Decisions, Keys, SynthJournal

_MAX_SLUG = 48
_BATCH = 256


@dataclass(frozen=True)
class Candidate:
    """A description that is good enough to become an environment."""

    unit: str
    """Key of the environment that would be made from it."""
    description: EnvDescription
    seed_tasks: tuple[str, ...]
    """The task it was inferred from; empty when it began from a description."""
    language: str
    score: int = 0
    """Usefulness and modelability together."""
    use: dict[str, ModelUse] = field(default_factory=dict)
    vector: Vectors | None = None


@dataclass(frozen=True)
class Chosen:
    """A candidate and what was decided on it."""

    candidate: Candidate
    decision: Decision


class Chooser:
    """Decides for one run on one library."""

    def __init__(
        self,
        store: LibraryStore,
        journal: SynthJournal,
        keys: Keys,
        embedder: EmbeddingModel,
        *,
        similarity: float,
    ) -> None:
        self._store = store
        self._journal = journal
        self._keys = keys
        self._embedder = embedder
        self._index = DescriptionIndex(embedder, similarity)
        self._in_play: set[str] = set()
        self._present = frozenset(store.env_ids())
        self._taken = {*self._present, *journal.ids()}
        self._library_read = False

    def needs_vector(self, unit: str) -> bool:
        """Whether a decision has yet to be made, so that the description's vector will be needed."""
        return self._settled(unit) is None

    async def choose(self, candidates: AsyncIterator[Candidate]) -> AsyncGenerator[Chosen, None]:
        """Decide greedily, one after the other.

        Source: paper 3.1, Dedup.
        """
        async for candidate in candidates:
            decision = self._settled(candidate.unit)
            if decision is None:
                decision = await self._decide(candidate)
                self._journal.put(self._keys.decision(candidate.unit), decision)
            self._note(candidate, decision)
            yield Chosen(candidate, decision)

    async def choose_clusters(
        self, candidates: Sequence[Candidate], clusters: int, seed: int
    ) -> AsyncGenerator[Chosen, None]:
        """Decide by k-means over all candidates.

        Source: released code: of equal summaries the best scored, then the one nearest to each centre.
        """
        key = self._keys.clustering(candidate.unit for candidate in candidates)
        known = self._journal.decisions(key)
        if known is None:
            known = Decisions(decisions=tuple(await self._clustered(candidates, clusters, seed)))
            self._journal.put(key, known)
        for candidate, decision in zip(candidates, known.decisions, strict=True):
            yield Chosen(candidate, decision)

    def _settled(self, unit: str) -> Decision | None:
        decision = self._journal.decision(self._keys.decision(unit))
        if decision is not None and (decision.how == "new" or self._exists(decision.env_id)):
            return decision
        # Built by a command with another threshold: it is an environment of its own all the same.
        built = self._journal.unit(unit)
        return Decision(env_id=built.env_id, how="new") if built is not None else None

    def _exists(self, env_id: str) -> bool:
        return env_id in self._in_play or env_id in self._present

    async def _decide(self, candidate: Candidate) -> Decision:
        self._read_library()
        vector = candidate.vector if candidate.vector is not None else await self._vector(candidate.description)
        match = await self._index.find(candidate.description, vector)
        if match is not None:
            return Decision(env_id=match.env_id, how=match.how, similarity=match.similarity)
        return Decision(env_id=self._new_id(candidate.description), how="new")

    def _note(self, candidate: Candidate, decision: Decision) -> None:
        if decision.how == "new" and decision.env_id not in self._in_play:
            self._in_play.add(decision.env_id)
            self._index.add(decision.env_id, candidate.description, candidate.vector)

    def _read_library(self) -> None:
        """Environments that are there count as well, from the first decision that is still open."""
        if not self._library_read:
            self._library_read = True
            for env_id in sorted(self._present - self._in_play):
                self._in_play.add(env_id)
                self._index.add(env_id, self._store.read_environment(env_id).description)

    async def _vector(self, description: EnvDescription) -> Vectors:
        vector: Vectors = (await embedded(self._embedder, [description]))[0]
        return vector

    async def _clustered(self, candidates: Sequence[Candidate], clusters: int, seed: int) -> list[Decision]:
        best: dict[str, int] = {}
        for index, candidate in enumerate(candidates):
            summary = summary_key(candidate.description)
            if summary not in best or candidate.score > candidates[best[summary]].score:
                best[summary] = index
        first = sorted(best.values())
        decisions: dict[int, Decision] = {}
        left: list[int] = []
        vectors: list[Vectors] = []
        self._read_library()
        for start in range(0, len(first), _BATCH):
            batch = first[start : start + _BATCH]
            rows = await embedded(self._embedder, [candidates[index].description for index in batch])
            for index, vector in zip(batch, rows, strict=True):
                match = await self._index.find(candidates[index].description, vector)
                if match is None:
                    left.append(index)
                    vectors.append(vector)
                else:
                    decisions[index] = Decision(env_id=match.env_id, how=match.how, similarity=match.similarity)
        groups = cluster(np.asarray(vectors, dtype=np.float32), clusters, seed) if left else ()
        for place, (representative, _) in enumerate(groups):
            if place == representative:
                env_id = self._new_id(candidates[left[place]].description)
                decisions[left[place]] = Decision(env_id=env_id, how="new")
        for place, (representative, similarity) in enumerate(groups):
            if place != representative:
                env_id = decisions[left[representative]].env_id
                decisions[left[place]] = Decision(env_id=env_id, how="cluster", similarity=similarity)
        for index, candidate in enumerate(candidates):
            if index not in decisions:
                env_id = decisions[best[summary_key(candidate.description)]].env_id
                decisions[index] = Decision(env_id=env_id, how="summary")
        return [decisions[index] for index in range(len(candidates))]

    def _new_id(self, description: EnvDescription) -> str:
        base = slug(description.summary)
        env_id, number = base, 1
        while env_id in self._taken:
            number += 1
            env_id = f"{base}-{number}"
        self._taken.add(env_id)
        return env_id


def slug(summary: str) -> str:
    """A readable name for a folder: words in lower case, letters of any script.

    Example:
        >>> slug("Café & Bakery: Order Desk")
        'cafe-bakery-order-desk'
    """
    plain = unicodedata.normalize("NFKD", summary)
    # Accents go where a plain letter remains; marks of other scripts stay.
    plain = "".join(part for part in plain if not ("\u0300" <= part <= "\u036f"))
    words = re.findall(r"\w+", unicodedata.normalize("NFC", plain).casefold().replace("_", " "))
    name = ""
    for word in words:
        longer = f"{name}-{word}" if name else word[:_MAX_SLUG]
        if len(longer) > _MAX_SLUG:
            break
        name = longer
    return name or "environment"
