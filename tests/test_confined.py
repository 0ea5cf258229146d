"""What `confined.py` is to take away is taken away, and nothing that programs need."""

from __future__ import annotations

import errno
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import confined
import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"),
    reason="there is no filter for this system",
)
COLUMN = ["x86_64", "aarch64"].index(platform.machine()) if platform.machine() in ("x86_64", "aarch64") else 0
TRY = """
import ctypes, json, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def reason(number, *arguments):
    ctypes.set_errno(0)
    return ctypes.get_errno() if libc.syscall(ctypes.c_long(number), *arguments) == -1 else 0
numbers = json.loads(sys.argv[1])
child = os.fork()
if not child:
    os._exit(7)
print(json.dumps({
    "reasons": [reason(number, *arguments) for number, *arguments in numbers],
    "child": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
    "uid": os.getuid(), "groups": os.getgroups(), "home": os.environ.get("HOME"),
    "capabilities": next(line.split()[1] for line in open("/proc/self/status") if line.startswith("CapEff")),
}))
"""


def tried(*options: str, calls: list[list[int]]) -> dict[str, Any]:
    """What a process under these options says of system calls, and of itself."""
    script = Path(confined.__file__)
    command = [sys.executable, str(script), *options, "--", "python", "-c", TRY, json.dumps(calls)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def test_what_docker_refuses_is_refused_and_processes_start() -> None:
    calls = [[numbers[COLUMN], 0, 0, 0, 0, 0] for numbers in confined.DOCKER_DENIES.values() if numbers[COLUMN]]
    more = [[confined.CLONE[COLUMN], 0x10000011, 0, 0, 0, 0], [confined.PERSONALITY[COLUMN], 0x0040000]]
    fine = [[confined.CLONE3[COLUMN], 0, 0], [confined.PERSONALITY[COLUMN], 0xFFFFFFFF]]
    seen = tried("--docker", calls=[*calls, *more, *fine])
    assert seen["reasons"] == [errno.EPERM] * (len(calls) + 2) + [errno.ENOSYS, 0]
    assert seen["child"] == 7
    if os.geteuid() == 0:
        assert int(seen["capabilities"], 16) & ~sum(1 << number for number in confined.DOCKER_CAPABILITIES) == 0


def test_a_kernel_without_landlock_and_seccomp_says_that_it_does_not_know_them() -> None:
    calls = [
        [confined.LANDLOCK[0][COLUMN], 0, 0, 1],
        [confined.SECCOMP[COLUMN], 2, 0, 0],
        [confined.PRCTL[COLUMN], 22, 2],
    ]
    assert tried("--without", "landlock", "--without", "seccomp", calls=calls)["reasons"] == [
        errno.ENOSYS,
        errno.ENOSYS,
        errno.EINVAL,
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_user_without_rights_has_none_and_a_home_that_is_gone_afterwards() -> None:
    seen = tried("--user", calls=[])
    assert (seen["uid"], seen["groups"], int(seen["capabilities"], 16)) == (54_321, [], 0)
    assert not Path(seen["home"]).exists()


def test_the_exit_status_is_that_of_the_command() -> None:
    command = [sys.executable, confined.__file__, "--user", "--", "python", "-c", "raise SystemExit(5)"]
    assert subprocess.run(command, check=False).returncode == 5
