"""`EndpointEmbedder`: embeddings from an OpenAI-compatible endpoint, in batches, with the same retries as chat."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np

from envscaler.errors import EndpointRejected, RequestFailed
from envscaler.llm.embedding import Vectors
from envscaler.llm.endpoint import Endpoint, RequestRefused, Unreadable
from envscaler.llm.transport import Fault
from envscaler.state import JsonValue

PATH = "/embeddings"


class EndpointEmbedder:
    """An embedding model at an endpoint; its tokens are not metered."""

    def __init__(self, endpoint: Endpoint, model: str, *, batch_size: int = 64) -> None:
        self._endpoint = endpoint
        self._model = model
        self._batch_size = batch_size

    @property
    def name(self) -> str:
        return self._model

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (len(texts), dimension).

        Raises:
            EndpointUnavailable: it did not answer for longer than the patience.
            EndpointRejected: it refuses for good.
            RequestFailed: it answers others, but not this batch.
        """
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        # Endpoints refuse an empty text, and a run must not end over one.
        filled = [text if text.strip() else "-" for text in texts]
        batches = [filled[start : start + self._batch_size] for start in range(0, len(filled), self._batch_size)]
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._batch(batch)) for batch in batches]
        except ExceptionGroup as errors:
            # Callers know the errors of a single call; the other batches failed for the same reason or were cancelled.
            raise errors.exceptions[0] from errors
        return np.concatenate([task.result() for task in tasks])

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    async def _batch(self, texts: list[str]) -> Vectors:
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        try:
            return await self._endpoint.post(PATH, body, lambda reply: _vectors(reply, len(texts)), tiny=self._answers)
        except RequestRefused as refusal:
            where = f"{self._endpoint.public_url} refuses"
            if await self._answers():
                raise RequestFailed(f"{where} a batch of {len(texts)} texts: {refusal}") from refusal
            raise EndpointRejected(
                f"{where} embeddings of {self._model}: {refusal}; check the model's name"
            ) from refusal

    async def _answers(self) -> bool:
        body = {"model": self._model, "input": ["ok"], "encoding_format": "float"}
        try:
            reply = await self._endpoint.post_once(PATH, body, lambda reply: _vectors(reply, 1))
        except RequestRefused:
            return False
        return not isinstance(reply, Fault)


def _vectors(reply: JsonValue, count: int) -> Vectors:
    rows = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(rows, list) or len(rows) != count:
        raise Unreadable(f"a reply without the {count} vectors asked for")
    try:
        ordered = sorted(rows, key=lambda row: row["index"])
        vectors = np.asarray([row["embedding"] for row in ordered], dtype=np.float32)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"vectors of another form: {error}") from error
    if vectors.ndim != 2 or vectors.shape[1] == 0 or not np.isfinite(vectors).all():
        raise Unreadable("vectors that are empty, of different lengths, or no finite numbers")
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = vectors / np.maximum(norms, 1e-12)
    return unit
