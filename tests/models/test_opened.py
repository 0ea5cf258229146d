"""Opening models: every spec, one endpoint for all families, the cache, the budget, the sentences for bad settings."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from servers.chat_server import EVERY_FAULT, ChatServer, at_random, slow

from envscaler.errors import BudgetExhausted, EndpointRejected, UsageError
from envscaler.llm import Budget, ModelRequest, NgramEmbedder, RetryPolicy, ScriptedModel
from envscaler.messages import UserMessage
from envscaler.models import Models, ModelSettings, open_models
from envscaler.roles.role import FAMILIES

pytestmark = pytest.mark.anyio

QUICK = RetryPolicy(base_s=0.001, cap_s=0.01, attempts=30)


def asking(text: str = "hello", **fields: Any) -> ModelRequest:
    return ModelRequest(role="judge_call", messages=(UserMessage(content=text),), **fields)


def opened(settings: dict[str, Any], **options: Any) -> Models:
    options.setdefault("offline", ScriptedModel("made offline", name="offline"))
    return open_models(ModelSettings.model_validate(settings), retry=QUICK, **options)


async def test_the_default_asks_nobody_and_is_free(tmp_path: Path) -> None:
    async with opened({}, cache_path=tmp_path / "c.sqlite") as models:
        completion = await models.chat("builder").complete(asking())
        assert models.names == dict.fromkeys(FAMILIES, "offline")
        assert models.endpoints == {}
        assert isinstance(models.embedder, NgramEmbedder)
        assert completion.message.content == "made offline"
        assert models.meter.report().spent.cost_usd == 0.0
    assert not (tmp_path / "c.sqlite").exists()


async def test_the_embedded_model_is_used_when_none_is_given() -> None:
    async with open_models(ModelSettings()) as models:
        assert models.names["builder"] == "offline"


async def test_each_family_can_have_a_model_of_its_own() -> None:
    with ChatServer("from small", model="small") as small, ChatServer("from big", model="big") as big:
        settings = {
            "model": "big",
            "base_url": big.base_url,
            "models": {"tester": {"model": "small", "base_url": small.base_url}, "user": {"model": "offline"}},
        }
        async with opened(settings) as models:
            replies = {
                family: (await models.chat(family).complete(asking())).message.content
                for family in ("builder", "tester", "user")
            }
            assert models.names["tester"] == "small"
            assert models.endpoints["tester"] == small.base_url
            assert "user" not in models.endpoints
    assert replies == {"builder": "from big", "tester": "from small", "user": "made offline"}


async def test_families_of_one_endpoint_share_its_bound_and_its_counts() -> None:
    with ChatServer(faults=lambda index, body: slow(0.02)) as server:
        async with opened({"model": "test-model", "base_url": server.base_url, "max_in_flight": 2}) as models:
            await asyncio.gather(*(models.chat(family).complete(asking(family)) for family in FAMILIES))
            (stats,) = models.transport.values()
    assert server.most_at_once == 2
    assert stats.answered == len(FAMILIES)


async def test_the_same_command_costs_nothing_twice(tmp_path: Path) -> None:
    with ChatServer() as server:
        settings = {
            "model": "test-model",
            "base_url": server.base_url,
            "prices": {"test-model": {"input": 1.0, "output": 1.0}},
        }
        for run in range(2):
            async with opened(settings, cache_path=tmp_path / "c.sqlite", budget=Budget(max_cost=1.0)) as models:
                for sample in range(3):
                    await models.chat("builder").complete(asking(sample=(sample, 0)))
                report = models.meter.report()
            assert (report.spent.calls, report.reused.calls) == ((3, 0) if run == 0 else (0, 3))
    assert len(server.requests) == 3
    assert report.reused.cost_usd == pytest.approx(
        3 * 1e-6 * (report.reused.input_tokens + report.reused.output_tokens) / 3
    )


async def test_a_budget_ends_a_run_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async def run(budget: Budget) -> int:
        async with opened(settings, cache_path=tmp_path / "c.sqlite", budget=budget) as models:
            for number in range(5):
                try:
                    await models.chat("builder").complete(asking(str(number)))
                except BudgetExhausted:
                    return number
        return 5

    with ChatServer() as server:
        settings = {"model": "test-model", "base_url": server.base_url}
        assert [await run(Budget(max_calls=2)) for _ in range(3)] == [2, 4, 5]
    assert len(server.requests) == 5


async def test_agents_are_not_answered_from_the_cache_unless_asked(tmp_path: Path) -> None:
    with ChatServer() as server:
        settings = {"model": "test-model", "base_url": server.base_url}
        async with opened(settings, cache_path=tmp_path / "c.sqlite") as models:
            assert not (await models.chat("agent", cache=True).complete(asking())).cached
            assert not (await models.chat("agent").complete(asking())).cached
            assert (await models.chat("agent", cache=True).complete(asking())).cached


async def test_what_was_sent_differently_is_not_answered_from_the_cache(tmp_path: Path) -> None:
    with ChatServer() as server:
        for settings in ({}, {"sampling": {"temperature": 0.3}}, {"body": {"service_tier": "flex"}}):
            settings = {"model": "test-model", "base_url": server.base_url, **settings}
            async with opened(settings, cache_path=tmp_path / "c.sqlite") as models:
                assert not (await models.chat("builder").complete(asking())).cached


async def test_cached_replays_what_another_run_was_told(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with pytest.raises(UsageError, match="there is no reply cache"):
        opened({"model": "cached"}, cache_path=path)
    with ChatServer("told once", api_key="k") as server:
        async with opened(
            {"model": "test-model", "base_url": server.base_url, "api_key": "k"}, cache_path=path
        ) as models:
            await models.chat("builder").complete(asking())
    for spec in ("cached", "cached:test-model"):
        async with opened({"model": spec}, cache_path=path, budget=Budget(max_calls=0)) as models:
            completion = await models.chat("checker").complete(asking())
            assert completion.message.content == "told once"
            with pytest.raises(UsageError, match="holds no reply"):
                await models.chat("checker").complete(asking("unheard"))


async def test_no_secret_reaches_the_disk_or_a_message(tmp_path: Path) -> None:
    with ChatServer(api_key="another") as locked, ChatServer() as server:
        for base_url in (locked.base_url, server.base_url):
            settings = {
                "model": "test-model",
                "base_url": base_url.replace("http://", "http://me:hidden-pass@"),
                "api_key": "sk-secret-0123456789",
                "headers": {"X-Pass": "open-sesame"},
            }
            async with opened(settings, cache_path=tmp_path / "c.sqlite") as models:
                shown = f"{models.endpoints} {models.transport}"
                try:
                    await models.chat("builder").complete(asking())
                except EndpointRejected as error:
                    # The server repeats the header that it got, as some do.
                    shown += str(error)
                assert not [secret for secret in SECRETS if secret in shown]
    assert server.served == 1
    kept = _bytes_in(tmp_path)
    assert b"hello" not in kept
    assert b'"content":"ok"' in kept
    assert not [secret for secret in SECRETS if secret.encode() in kept]


SECRETS = ("sk-secret", "hidden-pass", "bWU6aGlkZGVuLXBhc3M", "open-sesame")
"""The third is the second and its user in the base64 of basic authentication."""


def _bytes_in(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())


async def test_credentials_in_the_url_stand_for_a_key() -> None:
    models = opened({"model": "m", "base_url": "https://me:pass@models.example/v1"})
    assert models.endpoints["builder"] == "https://models.example/v1"
    await models.aclose()


async def test_headers_go_to_the_common_endpoint_only() -> None:
    with ChatServer() as common, ChatServer() as other:
        settings = {
            "model": "test-model",
            "base_url": common.base_url,
            "headers": {"X-Pass": "open-sesame"},
            "body": {"service_tier": "flex"},
            "models": {"user": {"base_url": other.base_url}},
        }
        async with opened(settings) as models:
            await models.chat("builder").complete(asking())
            await models.chat("user").complete(asking())
    assert common.headers[0]["x-pass"] == "open-sesame"
    assert common.requests[0]["service_tier"] == "flex"
    assert "x-pass" not in other.headers[0]
    assert "service_tier" not in other.requests[0]


async def test_an_embedding_model_of_an_endpoint_is_used() -> None:
    with ChatServer(model="embedder") as server:
        async with opened({"embedding_model": "embedder", "embedding_base_url": server.base_url}) as models:
            vectors = await models.embedder.embed(["a", "b"])
    assert (models.embedder.name, vectors.shape) == ("embedder", (2, 3))


@pytest.mark.parametrize(
    ("settings", "options", "says"),
    [
        ({"model": "gpt-9"}, {}, r"--model gpt-9: say where it is, with --base-url URL or OPENAI_BASE_URL"),
        (
            {"model": "m", "base_url": "https://models.example/v1"},
            {},
            r"https://models\.example/v1 needs a key: set OPENAI_API_KEY",
        ),
        (
            {"model": "m", "base_url": "http://localhost:1/v1"},
            {"budget": Budget(max_cost=1.0)},
            r'--max-cost: the price of m at .* is not known; give it in envscaler\.toml \(\[prices\."m"\]',
        ),
        ({"model": "cached"}, {}, "this command keeps no reply cache"),
        ({"embedding_model": "e"}, {}, "embedding_model e: say where it is"),
        ({"models": {"user": {"model": "m"}}}, {}, "--model m: say where it is"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_any_work(
    settings: dict[str, Any], options: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        opened(settings, **options)


async def test_a_run_under_every_fault_gets_every_answer(tmp_path: Path) -> None:
    def answer(body: dict[str, Any]) -> str:
        return "answer to " + body["messages"][0]["content"]

    with ChatServer(answer, faults=at_random(0.3, seed=5)) as server:
        settings = {"model": "test-model", "base_url": server.base_url}
        async with opened(settings, cache_path=tmp_path / "c.sqlite") as models:
            model = models.chat("builder")

            async def ask(number: int) -> str:
                for attempt in range(50):
                    completion = await model.complete(asking(str(number), sample=(0, attempt)))
                    if completion.message.content:
                        return completion.message.content
                raise AssertionError("only empty replies")

            answers = await asyncio.gather(*(ask(number) for number in range(80)))
            (stats,) = models.transport.values()
    assert answers == [f"answer to {number}" for number in range(80)]
    transport = sum(server.injected[fault.name] for fault in EVERY_FAULT[:9])
    assert sum(stats.faults.values()) == transport > 0
