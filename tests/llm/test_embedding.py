"""Unit vectors, from character n-grams and from an endpoint."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers.chat_server import TRANSPORT_FAULTS, ChatServer, no_choices, refused

from envscaler.errors import EndpointRejected, RequestFailed
from envscaler.llm import EndpointEmbedder, NgramEmbedder

pytestmark = pytest.mark.anyio


async def test_texts_that_are_alike_lie_closer_than_others_in_any_language() -> None:
    for near, far in (
        (("Library lending desk", "A lending desk of a library"), "Hospital pharmacy stock"),
        (("图书馆借阅管理系统", "图书馆借阅系统"), "医院药房库存"),
        (("Ausleihe einer Bücherei", "Bücherei mit Ausleihe"), "Vorrat einer Apotheke"),
        (("نظام إعارة الكتب", "إعارة الكتب"), "مخزون الصيدلية"),
    ):
        one, two, three = await NgramEmbedder().embed([*near, far])
        assert one @ two > one @ three + 0.1


async def test_no_texts_give_no_vectors() -> None:
    assert (await NgramEmbedder(64).embed([])).shape == (0, 64)


async def test_vectors_do_not_depend_on_the_hash_seed_of_the_process() -> None:
    code = (
        "import asyncio, sys; from envscaler.llm import NgramEmbedder;"
        "sys.stdout.write(asyncio.run(NgramEmbedder(256).embed(['Städtische Bücherei'])).tobytes().hex())"
    )
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env={**os.environ, "PYTHONHASHSEED": "7"}, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await other.communicate()
    assert output.decode() == (await NgramEmbedder(256).embed(["Städtische Bücherei"])).tobytes().hex()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.text(), min_size=1, max_size=8))
def test_every_text_with_a_letter_has_a_vector_of_unit_length(texts: list[str]) -> None:
    vectors = asyncio.run(NgramEmbedder(512).embed(texts))
    assert vectors.shape == (len(texts), 512)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    for text, length in zip(texts, lengths, strict=True):
        assert length == pytest.approx(1.0 if text.split() else 0.0, abs=1e-5)


async def test_batches_come_back_in_the_order_of_the_texts(open_endpoint: Any) -> None:
    with ChatServer(embed=lambda text: [float(len(text)), 0.0, 1.0]) as server:
        embedder = EndpointEmbedder(open_endpoint(server.base_url), "test-model", batch_size=4)
        vectors = await embedder.embed(["x" * length for length in range(1, 11)])
    assert len(server.requests) == 3
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0)
    assert np.allclose(vectors[:, 0] / vectors[:, 2], np.arange(1, 11))


async def test_an_endpoint_is_not_asked_for_nothing_and_gets_no_empty_text(open_endpoint: Any) -> None:
    with ChatServer() as server:
        embedder = EndpointEmbedder(open_endpoint(server.base_url), "test-model")
        assert len(await embedder.embed([])) == 0
        assert not server.requests
        assert len(await embedder.embed(["", " "])) == 2
    assert all(text.strip() for text in server.requests[0]["input"])


async def test_embeddings_survive_every_transport_fault(open_endpoint: Any) -> None:
    faults = [fault for fault in TRANSPORT_FAULTS if fault.name != no_choices().name]
    with ChatServer(faults=faults) as server:
        endpoint = open_endpoint(server.base_url, attempts=20)
        vectors = await EndpointEmbedder(endpoint, "test-model").embed(["a"])
    assert vectors.shape == (1, 3)
    assert sum(endpoint.stats.faults.values()) == len(faults)


async def test_vectors_that_cannot_be_used_are_asked_for_again(open_endpoint: Any) -> None:
    given_vectors = iter([[float("nan")], [], [1.0, 2.0]])
    with ChatServer(embed=lambda text: next(given_vectors)) as server:
        vectors = await EndpointEmbedder(open_endpoint(server.base_url), "test-model").embed(["a"])
    assert vectors.shape == (1, 2)


@pytest.mark.parametrize(
    ("faults", "error", "says"),
    [
        ([refused(400, "too many")], RequestFailed, "a batch of 1 texts: HTTP 400: too many"),
        (lambda index, body: refused(400, "none here"), EndpointRejected, "none here; check the model's name"),
    ],
)
async def test_a_refusal_of_one_batch_and_of_all_is_told_apart(
    faults: Any, error: type[Exception], says: str, open_endpoint: Any
) -> None:
    with ChatServer(faults=faults) as server, pytest.raises(error, match=says):
        await EndpointEmbedder(open_endpoint(server.base_url), "test-model").embed(["a"])
