"""Which environments may share a process, or run in this one: those that hide things from nobody."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from env.lending import SOURCE, scenario, skeleton

from envscaler.canonical import from_json
from envscaler.env import Homes, open_library
from envscaler.env.vetting import VETTING, compared
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.sandbox import BlockingSandbox, Limits, Program, Sandbox
from envscaler.state import JsonValue, digest
from envscaler.store import LibraryStore
from envscaler.synth import SynthSettings, run_synth

pytestmark = pytest.mark.anyio

TASK = "Reserve a study room for my group on Friday afternoon and cancel the one on Monday."


@pytest.fixture
async def any_sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox(Limits()) as entered:
        yield entered


@pytest.fixture
def sandbox(any_sandbox: Sandbox) -> Sandbox:
    """One in which programs may share a process at all."""
    require_hardened(any_sandbox)
    return any_sandbox


def require_hardened(box: Sandbox | BlockingSandbox) -> None:
    """Skip where no program is vetted, since none may share."""
    if box.isolation.level != "hardened":
        pytest.skip(f"needs hardened workers; missing: {', '.join(box.isolation.missing)}")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of one environment that the embedded generator made."""
    folder = tmp_path_factory.mktemp("homes")
    (folder / "tasks.txt").write_text(TASK)

    async def make() -> None:
        async with open_models(ModelSettings()) as models:
            settings = SynthSettings(library=folder / "L", tasks=folder / "tasks.txt", rounds=5, scenarios=1)
            await run_synth(settings, models, Prompts())

    asyncio.run(make())
    return folder / "L"


async def test_a_program_that_hides_nothing_may_share(sandbox: Sandbox) -> None:
    homes = Homes(sandbox, "shared")
    desk = skeleton()
    await homes.settle(desk, scenario(desk))
    assert homes.apart == {}
    program = Program(source=desk.source, class_name=desk.class_name)
    first, second = [await sandbox.open(program, scenario(desk).initial_state) for _ in range(2)]
    third = await sandbox.open(program, scenario(desk).initial_state)
    assert third.worker in (first.worker, second.worker)


@pytest.mark.parametrize(
    "hidden",
    [
        "string.lent = getattr(string, 'lent', 0) + 1",
        "string.ascii_letters += 'x'",
    ],
)
async def test_a_program_whose_sessions_meet_in_the_standard_library_stays_apart(sandbox: Sandbox, hidden: str) -> None:
    source = SOURCE.replace("from typing", "import string\nfrom typing").replace(
        "        found = [book",
        f'        {hidden}\n        if getattr(string, "lent", len(string.ascii_letters)) % 52 > 3:\n'
        '            return {"success": True, "data": []}\n        found = [book',
    )
    desk = skeleton(source)
    homes = Homes(sandbox, "shared")
    await homes.settle(desk, scenario(desk))
    assert "lending-desk" in homes.apart


async def test_where_workers_are_not_hardened_every_program_stays_apart(any_sandbox: Sandbox) -> None:
    if any_sandbox.isolation.level == "hardened":
        pytest.skip("workers are hardened here")
    homes = Homes(any_sandbox, "shared")
    desk = skeleton()
    await homes.settle(desk, scenario(desk))
    assert homes.apart == {"lending-desk": "workers are not hardened on this machine"}


async def test_a_program_that_breaks_the_contract_stays_apart_and_is_told_why(sandbox: Sandbox) -> None:
    desk = skeleton(SOURCE.replace("        found = [book", "        self.next_loan += 1\n        found = [book"))
    homes = Homes(sandbox, "shared")
    await homes.settle(desk, scenario(desk))
    assert "query_writes" in homes.apart["lending-desk"]
    session = await sandbox.open(Program(source=desk.source, class_name=desk.class_name), {})
    assert session.worker is not None


@pytest.mark.parametrize(
    ("hidden", "said"),
    [
        ("import os\n        os.environ['LENT'] = 'x'", "imports os"),
        ("import string\n        string.lent = 1", "something of string"),
    ],
)
async def test_a_program_whose_text_shows_a_way_out_stays_apart(sandbox: Sandbox, hidden: str, said: str) -> None:
    desk = skeleton(SOURCE.replace("        config = init", f"        {hidden}\n        config = init"))
    homes = Homes(sandbox, "shared")
    await homes.settle(desk, scenario(desk))
    assert said in homes.apart["lending-desk"]


async def test_a_program_that_cannot_be_played_again_stays_apart(sandbox: Sandbox) -> None:
    desk = skeleton(
        SOURCE.replace("import Any", "import Any, no_type_check").replace(
            "        self.next_loan: int",
            "        import os\n        self.pid = os.getpid()\n        self.next_loan: int",
        )
    )
    homes = Homes(sandbox, "shared")
    await homes.settle(desk, scenario(desk))
    assert "lending-desk" in homes.apart


async def test_what_was_only_tried_settles_nobody(sandbox: Sandbox) -> None:
    desk = skeleton()
    assert await compared(desk, scenario(desk), sandbox, "shared") is None
    session = await sandbox.open(Program(source=desk.source, class_name=desk.class_name), {})
    other = await sandbox.open(Program(source=desk.source, class_name=desk.class_name), {})
    third = await sandbox.open(Program(source=desk.source, class_name=desk.class_name), {})
    assert len({session.worker, other.worker, third.worker}) == 3


async def test_what_the_generator_writes_again_may_run_in_this_process_and_nothing_else(
    made: Path, any_sandbox: Sandbox
) -> None:
    sandbox = any_sandbox
    store = LibraryStore.open(made)
    (env_id,) = store.env_ids()
    own, first = store.read_environment(env_id), next(store.scenarios(env_id))
    foreign = own.model_copy(update={"id": "foreign", "source": own.source.replace("import copy", "import copy, os")})
    renamed = skeleton()
    homes = Homes(sandbox, "in-process")
    for one in (own, foreign, renamed):
        await homes.settle(one, first)
    assert sorted(homes.apart) == ["foreign", "lending-desk"]
    session = await sandbox.open(Program(source=own.source, class_name=own.class_name), first.initial_state)
    assert session.worker is None
    other = await sandbox.open(Program(source=foreign.source, class_name=foreign.class_name), first.initial_state)
    assert other.worker is not None


@pytest.mark.parametrize("isolation", ["default", "required", "shared", "in-process"])
def test_an_episode_is_the_same_in_every_isolation(made: Path, isolation: str) -> None:
    with BlockingSandbox() as box:
        if isolation in ("required", "shared"):
            require_hardened(box)
    with open_library(made) as usual, open_library(made, isolation=isolation) as library:  # type: ignore[arg-type]
        env_id = library.env_ids[0]
        told = []
        for one in (usual, library):
            with one.make(env_id) as env:
                env.reset()
                solution = env.scenario.solution
                assert solution is not None
                steps: list[object] = []
                results: list[JsonValue] = []
                for call in solution:
                    message = env.call(call.name, call.resolved(results))
                    results.append(from_json(message.content.encode()))
                    steps.append((message, env.digest))
                told.append((steps, env.verify(), env.state()))
        assert told[0] == told[1]
        assert library.kept_apart == {}


def verdicts(cache: Path) -> list[Path]:
    return list(cache.rglob("*.json"))


HANGS = "        while True:\n            pass\n"


async def test_a_trial_ends_at_the_first_call_that_does_not_come_back() -> None:
    source = SOURCE.replace("        found = [book", f"{HANGS}        found = [book").replace(
        "        book = self.books", f"{HANGS}        book = self.books"
    )
    desk = skeleton(source)
    async with Sandbox(Limits(cpu_s=0.2, cpu_kill_s=0.5)) as sandbox:
        require_hardened(sandbox)
        homes = Homes(sandbox, "shared")
        await homes.settle(desk, scenario(desk))
    assert homes.apart["lending-desk"].count("did not come back") == 1


async def test_all_that_speaks_against_sharing_is_told(sandbox: Sandbox) -> None:
    written = SOURCE.replace("        found = [book", "        self.next_loan += 1\n        found = [book")
    desk = skeleton(written)
    wrong = desk.tools[0].model_copy(update={"parameters": {"type": "object", "properties": {"x": {}}}})
    by_trial = desk.model_copy(update={"id": "by-trial", "tools": (wrong, *desk.tools[1:])})
    by_text = by_trial.model_copy(update={"id": "by-text", "source": f"import os\nimport sys\n{written}"})
    homes = Homes(sandbox, "shared")
    await homes.settle_all([(one, scenario(desk)) for one in (by_trial, by_text)])
    for said in ("schema: ", "query_writes: "):
        assert said in homes.apart["by-trial"]
    for said in ("imports os", "imports sys", "schema: "):
        assert said in homes.apart["by-text"]


async def test_a_verdict_is_remembered_for_the_very_program_and_no_other(sandbox: Sandbox, tmp_path: Path) -> None:
    desk = skeleton()
    await Homes(sandbox, "shared", tmp_path).settle(desk, scenario(desk))
    (file,) = verdicts(tmp_path)
    file.write_text(file.read_text().replace('"faults": []', '"faults": ["as was seen"]'))
    homes = Homes(sandbox, "shared", tmp_path)
    await homes.settle(desk, scenario(desk))
    assert homes.apart == {"lending-desk": "as was seen"}
    edited = skeleton(f"{SOURCE}\n# edited\n")
    homes = Homes(sandbox, "shared", tmp_path)
    await homes.settle(edited, scenario(edited))
    assert homes.apart == {}
    # One that was copied to the place of another program's does not count there.
    (other,) = set(verdicts(tmp_path)) - {file}
    other.write_bytes(file.read_bytes())
    homes = Homes(sandbox, "shared", tmp_path)
    await homes.settle(edited, scenario(edited))
    assert homes.apart == {}


async def test_a_verdict_that_somebody_else_wrote_lets_in_no_text_with_a_way_out(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    desk = skeleton()
    await Homes(sandbox, "shared", tmp_path).settle(desk, scenario(desk))
    (file,) = verdicts(tmp_path)
    outside = skeleton(f"import os\n{SOURCE}")
    key = [VETTING, outside.digest, sandbox.isolation.level, list(sandbox.isolation.missing)]
    forged = file.with_name(f"{digest(key)}.json")
    forged.write_text(file.read_text().replace(desk.digest, outside.digest))
    homes = Homes(sandbox, "shared", tmp_path)
    await homes.settle(outside, scenario(outside))
    assert "imports os" in homes.apart["lending-desk"]


@pytest.mark.parametrize("content", ["", "{}", "[", "\x00"])
async def test_a_verdict_that_cannot_be_read_or_written_is_made_again(
    sandbox: Sandbox, tmp_path: Path, content: str
) -> None:
    desk = skeleton()
    await Homes(sandbox, "shared", tmp_path).settle(desk, scenario(desk))
    (file,) = verdicts(tmp_path)
    made = file.read_text()
    file.write_text(content)
    homes = Homes(sandbox, "shared", tmp_path)
    await homes.settle(desk, scenario(desk))
    assert (homes.apart, file.read_text()) == ({}, made)
    homes = Homes(sandbox, "shared", file)  # no folder, so that nothing can be written in it
    await homes.settle(desk, scenario(desk))
    assert homes.apart == {}


async def test_a_program_that_cannot_be_built_stays_apart_instead_of_ending_the_others(sandbox: Sandbox) -> None:
    desk = skeleton(SOURCE.replace("        config = init", "        raise ValueError('no')\n        config = init"))
    homes = Homes(sandbox, "shared")
    advanced: list[int] = []
    await homes.settle_all([(desk, scenario(desk))], lambda: advanced.append(1))
    assert "ValueError: no" in homes.apart["lending-desk"]
    assert advanced == [1]
