"""Runs a command (pytest, unless told otherwise) as a user without rights, or with fewer system calls.

    python tests/confined.py --user -- python -m pytest tests/sandbox
    python tests/confined.py --docker -- python -m pytest tests/sandbox
    python tests/confined.py --without seccomp --without landlock -- python -m pytest tests/sandbox

`--docker` refuses what Docker's default profile refuses, and drops the capabilities that a container does not have;
`--without` takes away what an older kernel lacks. It is for tests and contains nothing: a deny list is no sandbox.
"""

from __future__ import annotations

import argparse
import ctypes
import errno
import importlib.util
import os
import platform
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# By its path: it needs nothing else of the package, which the interpreter of this script may not have.
_SPEC = importlib.util.spec_from_file_location("seccomp", ROOT / "src/envscaler/sandbox/inside/seccomp.py")
assert _SPEC is not None
assert _SPEC.loader is not None
seccomp = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(seccomp)

Instructions = list[tuple[int, int, int, int]]

DOCKER_DENIES = {
    # name: (x86_64, aarch64); None where the architecture has no such call
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "get_mempolicy": (239, 236),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mbind": (237, 235),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "set_mempolicy": (238, 237),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
CLONE, CLONE3, PERSONALITY, PRCTL, SECCOMP = (56, 220), (435, 435), (135, 92), (157, 167), (317, 277)
LANDLOCK = ((444, 444), (445, 445), (446, 446))
NEW_NAMESPACES = 0x7E020000
PERSONALITIES = (0x0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
DOCKER_CAPABILITIES = {0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31}
"""chown, dac_override, fowner, fsetid, kill, setgid, setuid, setpcap, net_bind_service, net_raw, sys_chroot, mknod,
audit_write, setfcap."""

_OFFSET_ARGUMENT_0 = 16
_PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 24, 38
_PR_SET_SECCOMP = 22
_REFUSED = 0x00050000


def denying(docker: bool, without: set[str]) -> Instructions:
    """A filter that lets everything pass but what is named."""
    column = list(seccomp._ARCH).index(platform.machine())
    code: Instructions = [
        (seccomp._LOAD, 0, 0, seccomp._OFFSET_ARCH),
        (seccomp._EQUAL, 1, 0, seccomp._ARCH[platform.machine()]),
        (seccomp._RETURN, 0, 0, seccomp._RET_KILL),
        (seccomp._LOAD, 0, 0, seccomp._OFFSET_NUMBER),
    ]

    def refuse(number: int | None, reason: int) -> None:
        if number is not None:
            code.extend([(seccomp._EQUAL, 0, 1, number), (seccomp._RETURN, 0, 0, _REFUSED | reason)])

    def look_at_argument(number: int, judgement: Instructions) -> None:
        end = [(seccomp._RETURN, 0, 0, seccomp._RET_ALLOW)]
        body = [(seccomp._LOAD, 0, 0, _OFFSET_ARGUMENT_0), *judgement, *end]
        code.extend([(seccomp._EQUAL, 0, len(body), number), *body])

    if docker:
        for numbers in DOCKER_DENIES.values():
            refuse(numbers[column], errno.EPERM)
        # The C library then falls back to clone, whose flags can be looked at.
        refuse(CLONE3[column], errno.ENOSYS)
        refused = (seccomp._RETURN, 0, 0, _REFUSED | errno.EPERM)
        look_at_argument(CLONE[column], [(seccomp._ANY_BIT, 0, 1, NEW_NAMESPACES), refused])
        allowed: Instructions = []
        for value in PERSONALITIES:
            allowed += [(seccomp._EQUAL, 0, 1, value), (seccomp._RETURN, 0, 0, seccomp._RET_ALLOW)]
        look_at_argument(PERSONALITY[column], [*allowed, refused])
    if "landlock" in without:
        for numbers in LANDLOCK:
            refuse(numbers[column], errno.ENOSYS)
    if "seccomp" in without:
        refuse(SECCOMP[column], errno.ENOSYS)
        refused = (seccomp._RETURN, 0, 0, _REFUSED | errno.EINVAL)
        look_at_argument(PRCTL[column], [(seccomp._EQUAL, 0, 1, _PR_SET_SECCOMP), refused])
    code.append((seccomp._RETURN, 0, 0, seccomp._RET_ALLOW))
    return code


def drop_capabilities() -> None:
    """Keep what Docker leaves to a container's root; it takes effect with the next program."""
    prctl = ctypes.CDLL(None).prctl
    for capability in range(64):
        if capability not in DOCKER_CAPABILITIES:
            prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def become(uid: int) -> None:
    """Give up every right of root."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def reachable_python(uid: int) -> tuple[str, dict[str, str]]:
    """An interpreter that the user can start, and what it needs in its environment to find our packages."""
    candidates = [
        sys.executable,
        *(shutil.which(f"python3.{sys.version_info.minor}", path=path) for path in _folders()),
    ]
    packages = os.pathsep.join([str(ROOT / "src"), sysconfig.get_path("purelib")])
    for candidate in filter(None, candidates):
        environment = {} if candidate == sys.executable else {"PYTHONPATH": packages}
        try:
            subprocess.run(
                [candidate, "-c", "import pytest, envscaler.sandbox, pydantic"],
                env={**os.environ, **environment},
                cwd=ROOT,
                user=uid,
                group=uid,
                extra_groups=[],
                capture_output=True,
                check=True,
            )
        except (OSError, subprocess.CalledProcessError):
            continue
        return candidate, environment
    sys.exit(
        f"user {uid} can start no Python {sys.version_info.major}.{sys.version_info.minor} with the packages of {ROOT}"
    )


def _lent_home(uid: int) -> str:
    """A folder for everything that the user writes; it goes when this process, which becomes the user's, has ended."""
    home = tempfile.mkdtemp(prefix="confined-")
    os.chown(home, uid, uid)
    child = os.fork()
    if child:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child is told, too, and its end is what counts
        _, status = os.waitpid(child, 0)
        shutil.rmtree(home)
        sys.exit(os.waitstatus_to_exitcode(status))
    return home


def _folders() -> list[str]:
    return [*os.environ.get("PATH", "").split(os.pathsep), "/usr/local/bin", "/usr/bin"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--user", action="store_true", help="as a user without rights; needs root, else nothing changes"
    )
    parser.add_argument("--uid", type=int, default=54_321, help="its number")
    parser.add_argument("--docker", action="store_true", help="under a filter like Docker's")
    parser.add_argument("--without", action="append", default=[], choices=["landlock", "seccomp"])
    parser.add_argument("command", nargs="*", help="`python` in it is the interpreter that the user can start")
    options = parser.parse_args()
    command = options.command or ["python", "-m", "pytest", "-p", "no:cacheprovider", str(ROOT / "tests/sandbox")]
    python, environment = sys.executable, {}
    root = os.geteuid() == 0
    if options.user and root:
        python, environment = reachable_python(options.uid)
        home = _lent_home(options.uid)
        environment |= {"HOME": home, "TMPDIR": home, "PYTHONPYCACHEPREFIX": f"{home}/bytecode"}
        environment |= {"HYPOTHESIS_STORAGE_DIRECTORY": f"{home}/hypothesis"}
        os.umask(0o022)
    if options.docker or options.without:
        # Without it only who may administer the system may filter itself, which a container's root may not.
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        try:
            seccomp.Filter(denying(options.docker, set(options.without))).apply()
        except OSError as error:
            # Where filters are lacking already there is none to take away.
            if error.errno != errno.EINVAL or options.docker or "seccomp" not in options.without:
                raise
    if options.docker and root:
        drop_capabilities()
    if options.user and root:
        become(options.uid)
    words = [python if word == "python" else word for word in command]
    sys.stdout.flush()
    os.execvpe(words[0], words, {**os.environ, **environment})


if __name__ == "__main__":
    main()
