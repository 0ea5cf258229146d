"""What an embedding model is, and the built-in one: hashed character n-grams, any language, no downloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Unit vectors, one a row."""


class EmbeddingModel(Protocol):
    """Anything that maps texts to unit vectors."""

    @property
    def name(self) -> str: ...

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit vectors of shape (len(texts), dimension)."""
        ...

    async def aclose(self) -> None: ...


class NgramEmbedder:
    """Hashed character n-grams (2 to 4, within words) with sublinear counts, of unit length.

    Source: stands in for the sentence encoder of paper 3.1, where no endpoint is at hand.
    """

    def __init__(self, dimension: int = 4096) -> None:
        self.dimension = dimension
        self._vectorizer: Any = None

    @property
    def name(self) -> str:
        return f"ngram-{self.dimension}"

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self._vectorizer is None:
            # scikit-learn takes a second to import; commands that embed nothing must not wait for it.
            from sklearn.feature_extraction.text import HashingVectorizer

            self._vectorizer = HashingVectorizer(
                analyzer="char_wb", ngram_range=(2, 4), n_features=self.dimension, alternate_sign=False, norm=None
            )
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        counts = self._vectorizer.transform([text.lower() for text in texts])
        counts.data = 1.0 + np.log(counts.data)
        dense = counts.toarray().astype(np.float32)
        norms = np.linalg.norm(dense, axis=1, keepdims=True)
        vectors: Vectors = dense / np.maximum(norms, 1e-12)
        return vectors

    async def aclose(self) -> None:
        return None
