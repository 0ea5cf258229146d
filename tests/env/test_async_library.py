from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from env.lending import scenario, skeleton

import envscaler as es
from envscaler.errors import NotHardened, SandboxError, UsageError
from envscaler.sandbox import Limits
from envscaler.store import LibraryStore

pytestmark = pytest.mark.anyio


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = LibraryStore.create(tmp_path / "library")
    environment = skeleton()
    store.write_environment(environment, None, [scenario(environment, number) for number in (1, 2)])
    store.write_index({})
    return store.path


async def play(env: es.AsyncToolEnv) -> float | None:
    await env.reset()
    await env.step(es.ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}))
    return (await env.step("Done."))[1]


async def test_environments_of_one_library_are_played_side_by_side(folder: Path) -> None:
    async with es.open_async(folder) as library:
        made = [await library.make("lending-desk", number, reward="solved") for number in (0, 1, "lending-desk-s002")]
        assert await asyncio.gather(*map(play, made)) == [1.0, 1.0, 1.0]
        assert len({id(env._sandbox) for env in made}) == 1


async def test_it_starts_with_what_is_made_first_also_when_much_is_made_at_once(folder: Path) -> None:
    library = es.open_async(folder)
    made = await asyncio.gather(*(library.make("lending-desk") for _ in range(8)))
    assert len({id(env._sandbox) for env in made}) == 1
    assert await play(made[0]) == 1.0
    await library.aclose()
    await library.aclose()


async def test_a_closed_one_stays_closed_and_says_so(folder: Path) -> None:
    async with es.open_async(folder) as library:
        env = await library.make("lending-desk")
    with pytest.raises(UsageError, match="was closed; open it again"):
        await library.make("lending-desk")
    with pytest.raises(UsageError, match="was closed"):
        await library.__aenter__()
    with pytest.raises(SandboxError, match="not open"):
        await env.reset()
    assert library.env_ids == ("lending-desk",)


async def test_it_is_for_one_event_loop(folder: Path) -> None:
    async with es.open_async(folder) as library:
        with pytest.raises(UsageError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, library.make("lending-desk"))


async def test_what_it_was_opened_with_counts(folder: Path) -> None:
    async with es.open_async(folder, isolation="in-process", limits=Limits(max_sessions=7)) as library:
        env = await library.make("lending-desk", coerce=True)
        assert env._sandbox.limits.max_sessions == 7
        assert library.kept_apart == {"lending-desk": "the offline model does not write this program"}
    with pytest.raises(UsageError, match="isolation is 'none'"):
        es.open_async(folder, isolation="none")  # type: ignore[arg-type]
    try:
        async with es.open_async(folder, isolation="required") as library:
            assert await play(await library.make("lending-desk")) == 1.0
    except NotHardened as refused:
        pytest.skip(str(refused))
