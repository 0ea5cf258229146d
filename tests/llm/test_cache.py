"""The same request is asked once, whatever happens to tasks and processes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from envscaler.errors import EndpointUnavailable, SchemaVersionError, StoreError, UsageError
from envscaler.llm import CachedModel, CacheOnlyModel, Completion, ModelRequest, ReplyCache, ScriptedModel
from envscaler.messages import AssistantMessage, SystemMessage, UserMessage
from envscaler.skeleton import ToolSpec
from envscaler.trajectory import Sampling, Usage

TOOL = ToolSpec(name="look", description="Looks.", parameters={"type": "object"}, effect="query")


def asking(text: str = "hello", **fields: Any) -> ModelRequest:
    return ModelRequest(**{"role": "judge_call", "messages": (UserMessage(content=text),), **fields})


def counting(name: str = "m") -> ScriptedModel:
    """Answers with the number of times that it was asked."""

    def answer(request: ModelRequest) -> Completion:
        return Completion(
            message=AssistantMessage(content=str(len(model.requests)), reasoning="because"),
            usage=Usage(input_tokens=5, output_tokens=2),
            model="m-1",
            cost_usd=0.25,
            latency_s=1.5,
        )

    model = ScriptedModel(answer, name=name)
    return model


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[ReplyCache]:
    opened = ReplyCache(tmp_path / "deep" / "replies.sqlite")
    yield opened
    opened.close()


@pytest.mark.anyio
async def test_a_reply_is_kept_although_whoever_asked_is_cancelled_before_it_was_written(cache: ReplyCache) -> None:
    busy = threading.Event()
    answered = asyncio.Event()

    def answer(request: ModelRequest) -> Completion:
        # From here on the file is busy, and the reply has to wait until it can be written.
        cache._thread.submit(busy.wait, 60)
        answered.set()
        return Completion(message=AssistantMessage(content="paid for"), model="m")

    model = CachedModel(ScriptedModel(answer, name="m"), cache, scope={})
    asked = asyncio.create_task(model.complete(asking()))
    await answered.wait()
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    assert asked.cancelled()
    busy.set()
    again = counting()
    completion = await CachedModel(again, cache, scope={}).complete(asking())
    assert (completion.message.content, len(again.requests)) == ("paid for", 0)


@pytest.mark.anyio
async def test_a_reply_comes_back_whole_and_says_that_it_was_cached(cache: ReplyCache) -> None:
    reused: list[tuple[str, Completion]] = []
    model = CachedModel(counting(), cache, scope={}, on_reuse=lambda role, reply: reused.append((role, reply)))
    first, second = await model.complete(asking()), await model.complete(asking())
    assert not first.cached
    assert second == first.model_copy(update={"cached": True})
    assert second.cost_usd == 0.25
    assert reused == [("judge_call", second)]


@pytest.mark.anyio
async def test_replies_outlive_the_process_that_got_them(tmp_path: Path) -> None:
    for expected in (False, True):
        cache = ReplyCache(tmp_path / "replies.sqlite")
        completion = await CachedModel(counting(), cache, scope={}).complete(asking())
        assert completion.cached is expected
        cache.close()
        cache.close()


@pytest.mark.anyio
@pytest.mark.parametrize(
    "other",
    [
        asking("other"),
        asking(messages=(SystemMessage(content="hello"),)),
        asking(tools=(TOOL,)),
        asking(response_schema={"type": "object"}),
        asking(sampling=Sampling(temperature=0.1)),
        asking(sampling=Sampling(extra={"top_k": 1})),
        asking(sample=(1, 0)),
        asking(sample=(0, 1)),
    ],
)
async def test_whatever_changes_the_reply_changes_the_key(other: ModelRequest, cache: ReplyCache) -> None:
    model = CachedModel(counting(), cache, scope={})
    await model.complete(asking())
    assert not (await model.complete(other)).cached


@pytest.mark.anyio
async def test_role_and_inputs_are_no_part_of_the_key(cache: ReplyCache) -> None:
    model = CachedModel(counting(), cache, scope={})
    await model.complete(asking())
    assert (await model.complete(asking(role="user_turn", inputs=Usage()))).cached


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "scope"), [("other", {"endpoint": "a"}), ("m", {"endpoint": "b"})])
async def test_models_and_endpoints_do_not_share_replies(name: str, scope: Any, cache: ReplyCache) -> None:
    await CachedModel(counting(), cache, scope={"endpoint": "a"}).complete(asking())
    assert not (await CachedModel(counting(name), cache, scope=scope).complete(asking())).cached


@pytest.mark.anyio
async def test_equal_requests_side_by_side_are_asked_once(cache: ReplyCache) -> None:
    async def answer(request: ModelRequest) -> str:
        await asyncio.sleep(0.02)
        return request.messages[0].content

    inner = ScriptedModel(answer)
    model = CachedModel(inner, cache, scope={})
    completions = await asyncio.gather(*(model.complete(asking(f"q{index % 3}")) for index in range(30)))
    assert len(inner.requests) == 3
    assert sum(not completion.cached for completion in completions) == 3
    assert [completion.message.content for completion in completions] == [f"q{index % 3}" for index in range(30)]
    assert not model._asking


@pytest.mark.anyio
async def test_a_failure_is_not_kept_and_the_next_in_line_asks(cache: ReplyCache) -> None:
    inner = ScriptedModel([EndpointUnavailable("down"), "up"])
    model = CachedModel(inner, cache, scope={})
    outcomes = await asyncio.gather(*(model.complete(asking()) for _ in range(3)), return_exceptions=True)
    assert isinstance(outcomes[0], EndpointUnavailable)
    assert [outcome.message.content for outcome in outcomes[1:] if isinstance(outcome, Completion)] == ["up", "up"]


@pytest.mark.anyio
async def test_whoever_waits_goes_on_when_the_asking_task_is_cancelled(cache: ReplyCache) -> None:
    started = asyncio.Event()

    async def answer(request: ModelRequest) -> str:
        if len(inner.requests) == 1:
            started.set()
            await asyncio.sleep(60)
        return "mine"

    inner = ScriptedModel(answer)
    model = CachedModel(inner, cache, scope={})
    asker = asyncio.create_task(model.complete(asking()))
    await started.wait()
    waiter = asyncio.create_task(model.complete(asking()))
    await asyncio.sleep(0.01)
    asker.cancel()
    assert (await waiter).message.content == "mine"
    assert not model._asking


@pytest.mark.anyio
async def test_two_processes_can_write_at_once(tmp_path: Path) -> None:
    first, second = ReplyCache(tmp_path / "r.sqlite"), ReplyCache(tmp_path / "r.sqlite")
    models = [CachedModel(counting(), cache, scope={}) for cache in (first, second)]
    await asyncio.gather(*(models[index % 2].complete(asking(str(index))) for index in range(80)))
    assert all([(await models[1].complete(asking(str(index)))).cached for index in range(80)])
    first.close()
    second.close()


KILLED = """
    import asyncio, os, sys
    from pathlib import Path
    from envscaler.llm import CachedModel, ModelRequest, ReplyCache, ScriptedModel
    from envscaler.messages import UserMessage

    async def main():
        model = CachedModel(ScriptedModel("x" * 500), ReplyCache(Path(sys.argv[1])), scope={})
        for number in range(100000):
            await model.complete(ModelRequest(role="r", messages=(UserMessage(content=str(number)),)))
            os.write(1, b"%d\\n" % number)

    asyncio.run(main())
"""


@pytest.mark.parametrize("lines", [1, 40, 200])
def test_a_killed_process_loses_no_reply_that_it_had(lines: int, tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for _ in range(lines):
        last = int(process.stdout.readline())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    last = int(([str(last), *process.stdout.read().split()])[-1])
    process.stdout.close()
    cache = ReplyCache(path)
    model = CachedModel(ScriptedModel("new"), cache, scope={})

    async def all_cached() -> bool:
        requests = (ModelRequest(role="r", messages=(UserMessage(content=str(n)),)) for n in range(last + 1))
        return all([(await model.complete(request)).cached for request in requests])

    assert asyncio.run(all_cached())
    cache.close()


@pytest.mark.anyio
async def test_replies_of_another_version_are_asked_for_again(cache: ReplyCache) -> None:
    model = CachedModel(counting(), cache, scope={})
    await model.complete(asking())
    with sqlite3.connect(cache.path) as other:
        other.execute("UPDATE replies SET completion = ?", (json.dumps({"strange": 1}),))
    other.close()
    assert not (await model.complete(asking())).cached


def test_a_file_that_is_no_cache_is_named(tmp_path: Path) -> None:
    path = tmp_path / "replies.sqlite"
    path.write_text("this is no database, whatever its name says" * 100)
    with pytest.raises(StoreError, match=r"replies.sqlite: the reply cache cannot be opened"):
        ReplyCache(path)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be opened"):
        ReplyCache(tmp_path / "file" / "replies.sqlite")


def test_a_cache_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "r.sqlite") as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(SchemaVersionError, match="newer version"):
        ReplyCache(tmp_path / "r.sqlite")


# -- cached only --------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_cached_only_answers_what_was_asked_before_and_nothing_else(cache: ReplyCache) -> None:
    asked = await CachedModel(counting("big"), cache, scope={"endpoint": "x"}).complete(asking())
    replay = CacheOnlyModel(cache)
    assert await replay.complete(asking()) == asked.model_copy(update={"cached": True})
    with pytest.raises(UsageError, match=r"holds no reply to this request of role judge_call; make it with a model"):
        await replay.complete(asking("new"))


@pytest.mark.anyio
async def test_cached_only_asks_which_model_when_there_are_several(cache: ReplyCache) -> None:
    for name in ("big", "small"):
        await CachedModel(ScriptedModel(f"from {name}", name=name), cache, scope={}).complete(asking())
    with pytest.raises(UsageError, match="replies of big, small; name one: --model cached:big"):
        await CacheOnlyModel(cache).complete(asking())
    completion = await CacheOnlyModel(cache, model="small").complete(asking())
    assert completion.message.content == "from small"


def test_cached_only_without_a_cache_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no reply cache"):
        ReplyCache(tmp_path / "none.sqlite", create=False)
    assert not list(tmp_path.iterdir())
