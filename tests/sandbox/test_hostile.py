"""Programs that mean harm: those of the external corpus and more of other kinds are contained, and nobody notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from envscaler.errors import ProgramError
from envscaler.sandbox import BlockingSandbox, Program

from .conftest import LEDGER
from .hostile import Bait, attack, need

CORPUS = [
    *("01_infinite_loop", "02_swallow_timeout", "04_memory_bomb", "06_fork_bomb", "07_file_read", "08_file_write"),
    *("09_socket", "11_os_exit", "12_sys_exit", "13_deep_recursion", "14_c_stack_overflow", "15_ctypes"),
    *("16_subclasses_escape", "18_format_frames", "19_monkeypatch_builtins", "21_huge_print", "22_regex_backtrack"),
    *("23_huge_pow", "25_threads", "27_env_theft", "29_sleep", "30_raise_base", "31_non_json"),
    *("33_mutate_init_config", "34_class_attr_leak", "35_nondeterminism", "37_gc_objects", "39_str_subclass_result"),
    *("42_attrgetter", "44_logging_file"),
]
NEEDS_KERNEL = {
    *("07_file_read", "08_file_write", "09_socket", "16_subclasses_escape", "18_format_frames", "42_attrgetter"),
    "44_logging_file",
}
"""Attacks that portable mode cannot contain."""


OWN = {
    "disarms the timer": "import signal\nclass Env:\n def attack(self):\n"
    "  signal.signal(signal.SIGPROF, signal.SIG_IGN)\n  while True: pass\n",
    "stops the timer": "import signal\nclass Env:\n def attack(self):\n"
    "  signal.setitimer(signal.ITIMER_PROF, 0)\n  while True: pass\n",
    "waits for ever": "import threading\nclass Env:\n def attack(self):\n  threading.Lock().acquire() or 1\n"
    "  lock = threading.Lock(); lock.acquire(); lock.acquire()\n",
    "kills its parent": "import os, signal\nclass Env:\n def attack(self):\n  os.kill(os.getppid(), signal.SIGKILL)\n",
    "kills everybody": "import os, signal\nclass Env:\n def attack(self):\n  os.kill(-1, signal.SIGKILL)\n",
    "kills itself": "import os, signal\nclass Env:\n def attack(self):\n  os.kill(os.getpid(), signal.SIGKILL)\n",
    "stops itself": "import os, signal\nclass Env:\n def attack(self):\n  os.kill(os.getpid(), signal.SIGSTOP)\n",
    "starts a program": "import os\nclass Env:\n def attack(self):\n"
    "  os.posix_spawn('/bin/touch', ['touch', '@CANARY@/pwn'], {})\n",
    "replaces itself": "import os\nclass Env:\n def attack(self):\n"
    "  os.execv('/bin/touch', ['touch', '@CANARY@/pwn'])\n",
    "forks through posix": "import posix, time\nclass Env:\n def attack(self):\n  posix.fork(); return 1\n",
    "forks through libc": "import ctypes\nclass Env:\n def attack(self):\n  return ctypes.CDLL(None).fork()\n",
    "opens through libc": "import ctypes\nclass Env:\n def attack(self):\n"
    "  return ctypes.CDLL(None).creat(b'@CANARY@/pwn', 0o666)\n",
    "links": "import os\nclass Env:\n def attack(self):\n  os.symlink('/etc/passwd', '@CANARY@/pwn')\n",
    "makes a folder": "import os\nclass Env:\n def attack(self):\n  os.mkdir('@CANARY@/pwn')\n",
    "removes the secret": "import os\nclass Env:\n def attack(self):\n  os.remove('@CANARY@/secret.txt')\n",
    "reads its memory file": "class Env:\n def attack(self):\n  return len(open('/proc/self/maps').read())\n",
    "reads its parent's environment": "import os\nclass Env:\n def attack(self):\n"
    "  return open(f'/proc/{os.getppid()}/environ').read()\n",
    "closes every descriptor": "import os\nclass Env:\n def attack(self):\n  os.closerange(0, 1000)\n  return 1\n",
    "answers before it is asked": "import os\nclass Env:\n def attack(self):\n"
    "  os.write(3, b'\\x00\\x00\\x00\\x05hello')\n  return 1\n",
    "announces a huge frame": "import os\nclass Env:\n def attack(self):\n"
    "  os.write(3, b'\\xff\\xff\\xff\\xff')\n  return 1\n",
    "sends half a frame": "import os, time\nclass Env:\n def attack(self):\n"
    "  os.write(3, b'\\x00\\x00')\n  os._exit(0)\n",
    "floods the socket": "import os\nclass Env:\n def attack(self):\n  while True: os.write(3, b'\\xff' * 100_000)\n",
    "has a mapping without end": "import collections.abc\nclass M(collections.abc.Mapping):\n"
    " def __getitem__(self, k): return 1\n def __len__(self): return 1\n"
    " def __iter__(self):\n  i = 0\n  while True:\n   i += 1\n   yield str(i)\n"
    "class Env:\n def attack(self):\n  return M()\n",
    "lies about its dict": "class Env:\n @property\n def __dict__(self):\n  return {}\n"
    " def attack(self):\n  return 1\n",
    "nests without end": "class Env:\n def attack(self):\n  a = []\n  for _ in range(10**6): a = [a]\n  return a\n",
    "has an error that cannot be read": "class E(Exception):\n def __str__(self):\n  while True: pass\n"
    "class Env:\n def attack(self):\n  raise E\n",
    "has an error with a huge message": "class Env:\n def attack(self):\n  raise ValueError('x' * 10**7)\n",
    "has an error with a broken message": "class Env:\n def attack(self):\n  raise ValueError('\\udc80')\n",
    "breaks the loader": "import sys\nclass Env:\n def attack(self):\n"
    "  for name, module in list(sys.modules.items()):\n   if 'envscaler' in name: vars(module).clear()\n  return 1\n",
    "allocates in one piece": "class Env:\n def attack(self):\n  return len(bytearray(10**12))\n",
    "grows its state": "class Env:\n def attack(self):\n  self.x = 'x' * 10**8\n  return 1\n",
    "counts for ever in C": "class Env:\n def attack(self):\n  return sum(iter(int, 1))\n",
    "leaves something for the end": "import atexit, os\nclass D:\n def __del__(self):\n  open('@CANARY@/pwn', 'w')\n"
    "class Env:\n def attack(self):\n  atexit.register(D().__del__)\n  return 1\n",
    "becomes somebody else": "import os\nclass Env:\n def attack(self):\n  os.setuid(0); return os.getuid()\n",
    "raises its limits": "import resource\nclass Env:\n def attack(self):\n"
    "  resource.setrlimit(resource.RLIMIT_AS, (-1, -1)); return len(bytearray(10**9))\n",
}
OWN_NEEDS_KERNEL = {
    *("kills its parent", "kills everybody", "starts a program", "replaces itself", "opens through libc", "links"),
    *("makes a folder", "removes the secret", "reads its parent's environment"),
}


@pytest.mark.usefixtures("prints_little")
@pytest.mark.parametrize("name", CORPUS)
def test_an_attack_of_the_corpus_is_contained(
    guarded: BlockingSandbox, bait: Bait, shared_data: Path, name: str
) -> None:
    need(guarded, kernel=name in NEEDS_KERNEL)
    source = (shared_data / "hostile" / f"{name}.py").read_text()
    outcome, _ = attack(guarded, bait, source)
    if "determinism" in source:
        assert attack(guarded, bait, source)[0] == outcome


def test_every_attack_of_the_corpus_is_tried(shared_data: Path) -> None:
    assert sorted(path.stem for path in (shared_data / "hostile").rglob("*.py")) == sorted(CORPUS)


@pytest.mark.usefixtures("prints_little")
@pytest.mark.parametrize("name", OWN)
def test_an_attack_of_another_kind_is_contained(guarded: BlockingSandbox, bait: Bait, name: str) -> None:
    need(guarded, kernel=name in OWN_NEEDS_KERNEL)
    attack(guarded, bait, OWN[name])


@pytest.mark.parametrize("attribute", ["cpu", "wall"])
def test_a_worker_that_cannot_be_interrupted_is_killed_and_the_call_is_the_tools_fault(
    guarded: BlockingSandbox, attribute: str
) -> None:
    body = "sum(iter(int, 1))" if attribute == "cpu" else "[lock.acquire(), lock.acquire()]"
    source = (
        "import threading\nclass Env:\n def ok(self): return 1\n"
        f" def run(self):\n  lock = threading.Lock()\n  return {body}\n"
    )
    session = guarded.open(Program(source, "Env"), {})
    fault = session.call("run", {}).fault
    assert fault is not None
    assert fault.kind == "timeout"
    assert session.call("ok", {}).result == 1
    session.close()


def test_what_a_hostile_module_does_while_it_loads_is_contained(guarded: BlockingSandbox, bait: Bait) -> None:
    source = bait.fill(
        "import os\ntry:\n  os.fork()\nexcept OSError: pass\nopen('@CANARY@/pwn', 'w')\nclass Env: pass\n"
    )
    if guarded.isolation.level == "hardened":
        with pytest.raises(ProgramError, match="PermissionError"):
            guarded.open(Program(source, "Env"), {})
        assert bait.untouched()


def test_a_worker_has_no_environment_and_no_arguments_of_the_host(guarded: BlockingSandbox) -> None:
    look = "[dict(os.environ), sys.argv, sys.path, os.getenv('HOME')]"
    source = f"import os, sys\nclass Env:\n def look(self): return {look}\n"
    session = guarded.open(Program(source, "Env"), {})
    assert session.call("look", {}).result == [{}, ["program"], [], None]
    session.close()


@pytest.mark.parametrize(
    "source",
    [
        f"def f({'a' * 2_000_000}):\n    global {'a' * 2_000_000}\n",
        f"class {'E' * 2_000_000}(Exception): pass\nraise {'E' * 2_000_000}('x' * 2_000_000)\n",
        "x = " + "9" * 100_000,
        "(" * 100_000,
        "-" * 1_000_000 + "1",
        "a" + ".a" * 500_000,
        "\x00",
        "\udc80 = 1",
    ],
    ids=["long message", "long names", "long number", "nested", "negated", "chained", "null", "half a character"],
)
def test_a_text_that_no_compiler_takes_is_a_short_error_and_ends_nobody_elses_worker(
    guarded: BlockingSandbox, source: str
) -> None:
    session = guarded.open(LEDGER, {"accounts": {}})
    worker = session._session.worker
    with pytest.raises(ProgramError) as raised:
        guarded.open(Program(source, "Env"), {})
    assert len(str(raised.value)) < 3_000
    assert session._session.worker is worker
    assert worker is not None
    assert session.call("journal", {}).result == 0
    session.close()
