"""The traps into which earlier sandboxes for such programs have fallen, each with a test that falls into it again.

| trap | tested |
|---|---|
| `-I` and `-E` ignore PYTHONHASHSEED | here, and test_virtual: hashes and orders of sets |
| the signal at the parent's death is lost by a change of user and by a fork, and comes when a *thread* ends | here, \
test_lifecycle: owner and thread, test_faults: death of the process that forks |
| an audit hook costs much and misses `_posixsubprocess.fork_exec` | here |
| what loads late cannot be loaded behind the filter | here |
| the timer must repeat, loops in C ignore it, programs swallow it | here, and test_hostile |
| a reader of frames must not read too much | here |
| limits of each process do not bound their sum | test_fleet |
| policies on syntax trees are bypassed | here, and test_hostile |
| sets, tuples and integer keys do not survive JSON | here |
| random streams are each session's own | here, and test_virtual |
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import envscaler.sandbox
from envscaler.sandbox import BlockingSandbox, Program, Sandbox, Session
from envscaler.sandbox.inside.wire import Read, framed, receive
from envscaler.sandbox.inside.zygote import PRELOADED

from .conftest import LEDGER, QUICK, program_of
from .hostile import laid_bait, need
from .processes import children_of, living


def value_of(box: BlockingSandbox, method: str, before: str = "") -> object:
    """What a method of a new session returns."""
    session = box.open(Program(f"{before}\nclass Env:\n    def value(self):\n        {method}\n", "Env"), {})
    outcome = session.call("value", {})
    session.close()
    assert outcome.fault is None, outcome.fault
    return outcome.result


def test_workers_see_the_seed_of_hashes_and_nothing_else_of_the_hosts_python(box: BlockingSandbox) -> None:
    flags = "hash_randomization", "ignore_environment", "isolated", "no_user_site", "safe_path"
    assert value_of(box, f"return [getattr(sys.flags, name) for name in {flags}]", "import sys") == [0, 0, 0, 1, True]


@pytest.mark.parametrize("with_twin", [False, True])
def test_a_worker_ends_with_its_zygote_also_when_another_thread_than_the_first_opened_it(with_twin: bool) -> None:
    box = BlockingSandbox(QUICK)
    opened = []
    opener = threading.Thread(target=lambda: opened.append(box.open(LEDGER, {"accounts": {}})))
    opener.start()
    opener.join()
    (session,) = opened
    # The first call after the thread's end would find the worker gone if the signal hung on that thread.
    assert session.call("journal", {}).result == 0
    worker = session._session.worker
    twin = session.fork() if with_twin else session
    workers = {worker.pid, twin._session.worker.pid}
    (zygote,) = (pid for pid in children_of(os.getpid()) if worker.pid in children_of(pid))
    os.kill(zygote, signal.SIGKILL)
    for _ in range(300):
        if not living(workers):
            break
        time.sleep(0.01)
    assert not living(workers)
    box.close()


def test_there_is_no_audit_hook_to_slow_programs_down() -> None:
    folder = Path(envscaler.sandbox.__file__).parent
    assert not [path for path in folder.rglob("*.py") if "addaudithook" in path.read_text(encoding="utf-8")]


def test_a_process_is_refused_also_where_no_audit_event_tells_of_it(box: BlockingSandbox) -> None:
    need(box, kernel=True)
    body = (
        " def start(self):\n  import os\n  try:\n   import _posixsubprocess as p\n"
        "   rest = [-1] * 7 + [3, False, False, 0, None, None, None, -1, None, False]\n"
        "   return p.fork_exec([b'/bin/true'], [b'/bin/true'], True, (3,), None, None, *rest)\n"
        "  except (ImportError, OSError) as error: return type(error).__name__\n"
    )
    session = box.open(Program(f"class Env:\n{body}", "Env"), {})
    assert session.call("start", {}).result in ("PermissionError", "ModuleNotFoundError")
    session.close()


@pytest.mark.parametrize("name", PRELOADED)
def test_a_module_that_programs_may_import_can_be_imported_behind_the_filter(box: BlockingSandbox, name: str) -> None:
    try:
        __import__(name)
    except ImportError:
        pytest.skip("this build of Python does not have it")
    assert value_of(box, f"import {name}; return 1") == 1


ENCODINGS = ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "latin-1", "cp1252", "iso-8859-15"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("datetime.datetime.strptime('2025-01-06 7:05 PM', '%Y-%m-%d %I:%M %p').isoformat()", "2025-01-06T19:05:00"),
        ("time.strptime('Mon', '%a').tm_wday", 0),
        ("str(decimal.Decimal('1.10') + 1)", "2.10"),
        ("str(fractions.Fraction(1, 3) + 1)", "4/3"),
        *[(f"'é'.encode('{name}').decode('{name}')", "é") for name in ENCODINGS],
        ("b'x'.decode('ascii')", "x"),
        ("'é'.encode('ascii', 'xmlcharrefreplace').decode()", "&#233;"),
        ("'bücher.de'.encode('idna').decode()", "xn--bcher-kva.de"),
        ("'\\N{EURO SIGN}'", "€"),
        ("unicodedata.name('€')", "EURO SIGN"),
        ("datetime.datetime(2025, 7, 1, tzinfo=zoneinfo.ZoneInfo('Asia/Tokyo')).utcoffset().total_seconds()", 32400.0),
        ("sorted(typing.TypedDict('T', {'a': int}).__annotations__)", ["a"]),
        ("collections.namedtuple('P', 'x y')(1, 2)", [1, 2]),
        ("hashlib.sha256(b'').hexdigest()[:8]", "e3b0c442"),
        ("calendar.month_name[1]", "January"),
        ("locale.format_string('%d', 1000)", "1000"),
        ("email.utils.format_datetime(datetime.datetime(2025, 1, 6))", "Mon, 06 Jan 2025 00:00:00 -0000"),
        ("traceback.format_exception_only(ValueError('x'))[0]", "ValueError: x\n"),
        ("str(uuid.uuid5(uuid.NAMESPACE_DNS, 'a'))[:8]", "4f3f2898"),
        ("warnings.warn('x')", None),
        ("logging.getLogger('x').warning('y')", None),
    ],
)
def test_what_the_standard_library_loads_late_works_behind_the_filter(
    box: BlockingSandbox, expression: str, value: object
) -> None:
    modules = {word.rpartition(".")[0] for word in PRELOADED if "." in word} | {"datetime", "time", "typing"}
    names = ("calendar", "collections", "decimal", "email.utils", "fractions", "hashlib", "locale", "logging")
    imports = ", ".join(sorted({*modules, *names, "traceback", "unicodedata", "uuid", "warnings", "zoneinfo"} - {"os"}))
    assert value_of(box, f"return {expression}", f"import {imports}") == value


def test_an_interruption_that_was_swallowed_comes_again(box: BlockingSandbox) -> None:
    body = "    def run(self):\n        try:\n            while True: pass\n        except BaseException: pass\n"
    session = box.open(program_of(body + "        while True: pass\n"), {})
    fault = session.call("run", {}).fault
    assert fault is not None
    # Interrupted in the worker at 0.3 s, and not killed by the parent at 0.8.
    assert str(fault) == f"Timeout: it used more than {QUICK.cpu_s:g} s of CPU time"
    session.close()


@given(st.lists(st.integers(0, 2**31), min_size=1, max_size=20))
def test_frames_that_come_in_one_piece_are_read_one_by_one(serials: list[int]) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        frames = [framed(Read(serial)) for serial in serials]
        ours.sendall(b"".join(frames))
        for frame in frames:
            body = receive(theirs)
            assert body is not None
            assert len(body).to_bytes(4, "big") + body == frame
        ours.close()
        assert receive(theirs) is None


@pytest.mark.anyio
async def test_requests_for_many_workers_at_once_deadlock_nobody() -> None:
    async with Sandbox(QUICK) as sandbox:
        sessions = await asyncio.gather(*(sandbox.open(LEDGER, {"accounts": {}}) for _ in range(12)))

        async def used(session: Session) -> int:
            for number in range(10):
                await session.call("open_account", {"owner": str(number) * 4000})
            return len(await session.state())

        assert await asyncio.wait_for(asyncio.gather(*map(used, sessions)), 60) == [3] * 12


@pytest.mark.parametrize(
    "attack",
    [
        "operator.attrgetter('__init__.__globals__')(logging.FileHandler)['os'].system('touch @CANARY@/pwn')",
        "typing.get_type_hints(type('T', (), {'__annotations__': {'a': \"open('@CANARY@/pwn', 'w')\"}}), {})",
        "logging.FileHandler('@CANARY@/pwn')",
        "string.Formatter().get_field('a.__globals__', (), {'a': os.walk})[0]['mkdir']('@CANARY@/pwn')",
        "vars(builtins)['open']('@CANARY@/pwn', 'w')",
        "vars(builtins).__setitem__('len', vars(builtins)['open']) or len('@CANARY@/pwn', 'w')",
        "'{0.__class__}'.format(1) and functools.partial(open, '@CANARY@/pwn', 'w')()",
        "tempfile.NamedTemporaryFile(dir='@CANARY@')",
        "pathlib.Path('@CANARY@/pwn').write_text('x')",
        "dataclasses.make_dataclass('D', ['a'], namespace={'__post_init__': lambda d: os.mkdir(d.a)})('@CANARY@/pwn')",
        "pickle.loads(b'cos\\nmkdir\\n(V@CANARY@/pwn\\ntR.')",
    ],
)
def test_what_bypasses_every_policy_on_syntax_trees_is_refused_by_the_kernel(box: BlockingSandbox, attack: str) -> None:
    need(box, kernel=True)
    modules = "builtins, dataclasses, functools, logging, operator, os, pathlib, pickle, string, tempfile, typing"
    with laid_bait() as bait:
        source = bait.fill(f"import {modules}\nclass Env:\n    def attack(self):\n        return str({attack})\n")
        session = box.open(Program(source, "Env"), {})
        session.call("attack", {})
        session.close()
        assert bait.untouched()


def test_states_are_canonical_at_once_and_not_first_after_a_detour_over_json(box: BlockingSandbox) -> None:
    body = (
        "    def fill(self):\n        self.t, self.s, self.d = (1, (2,)), {'b', 'a'}, {1: {2.5: None}, True: 'x'}\n"
        "        return [self.t, self.s, self.d]\n"
        "    def kinds(self):\n        return [type(v).__name__ for v in (self.t, self.s, self.d)]\n"
    )
    session = box.open(program_of(body), {})
    outcome = session.call("fill", {})
    assert outcome.result == [[1, [2]], ["a", "b"], {"1": "x"}]
    assert session.state() == {"n": 0, "t": [1, [2]], "s": ["a", "b"], "d": {"1": "x"}}
    # The program goes on with its own; only who goes on from the snapshot has what JSON holds, and the same digest.
    assert session.call("kinds", {}).result == ["tuple", "set", "dict"]
    snapshot = session.snapshot()
    session.restore(snapshot)
    assert session.call("kinds", {}).result == ["list", "list", "dict"]
    assert session.digest == outcome.digest
    session.close()


def test_sessions_that_draw_in_turn_draw_what_each_draws_alone(box: BlockingSandbox) -> None:
    def opened() -> list:
        return [box.open(LEDGER, {}, seed=seed) for seed in (1, 2, 1)]

    alone = [[session.call("draw", {}).result for _ in range(4)] for session in opened()]
    sessions = opened()
    in_turn = [[session.call("draw", {}).result for session in sessions] for _ in range(4)]
    assert [list(column) for column in zip(*in_turn, strict=True)] == alone
    assert alone[0] == alone[2]
    assert alone[0][0][0] != alone[1][0][0]
