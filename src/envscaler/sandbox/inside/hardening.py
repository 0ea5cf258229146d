"""Takes from a freshly forked worker everything that a program has no need of, and says what could not be taken.

Hardened (Linux with seccomp) it contains attacks. Without, it contains accidents: endless loops, memory, crashes; a
program that means harm can then read and write what this user can.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys

from envscaler.sandbox.inside.seccomp import Filter

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION_FLAG = 1

_FIRST_UID = 0x7FF00000
"""Start of a range of user ids that no system hands out; each worker takes one, so that none can signal another."""
_NOBODY = 65534


class Hardening:
    """What this machine offers, found once in the zygote; `apply` uses it in each worker."""

    def __init__(self, memory_mb: int) -> None:
        self._linux = sys.platform == "linux"
        self._address_space = _address_space_now() + memory_mb * 1024 * 1024
        self._filter: Filter | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._filter = Filter()
        except OSError:
            self._filter = None
        self._landlock_version = self._landlock_version_now() if self._linux else 0

    def apply(self, zygote_pid: int) -> tuple[bool, tuple[str, ...]]:
        """Harden this process for good.

        Returns:
            Whether attacks are contained, and what is missing.
        """
        missing = [*self._limit(), *self._drop_user()]
        if not self._linux:
            return False, (*missing, "no system call filter and no Landlock on this system")
        # After the change of user, which clears it.
        self._prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != zygote_pid:
            os._exit(0)
        self._prctl(_PR_SET_DUMPABLE, 0)
        if not self._prctl(_PR_SET_NO_NEW_PRIVS, 1):
            missing.append("no_new_privs refused")
        if not self._restrict_files():
            missing.append("no Landlock in this kernel")
        hardened = False
        try:
            if self._filter is not None:
                self._filter.apply()
                hardened = True
        except OSError:
            hardened = False
        if not hardened:
            missing.append("no system call filter (seccomp)")
        return hardened, tuple(missing)

    def _limit(self) -> list[str]:
        limits = [
            ("RLIMIT_CORE", 0),
            ("RLIMIT_FSIZE", 0),
            ("RLIMIT_NOFILE", 16),
            ("RLIMIT_NPROC", 0),
            ("RLIMIT_AS", self._address_space),
        ]
        missing = []
        for name, value in limits:
            try:
                resource.setrlimit(getattr(resource, name), (value, value))
            except (AttributeError, OSError, ValueError):
                missing.append(f"{name} cannot be set")
        return missing

    def _drop_user(self) -> list[str]:
        if os.geteuid() != 0:
            return []
        for uid in (_FIRST_UID + os.getpid() % 0xF0000, _NOBODY):
            try:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
            except (AttributeError, OSError):
                continue
            return [] if uid != _NOBODY else ["workers share one user id"]
        return ["still runs as root"]

    def _prctl(self, option: int, value: int) -> bool:
        return bool(self._libc.prctl(option, value, 0, 0, 0) == 0)

    # -- Landlock -------------------------------------------------------------------------------------------

    def _landlock_version_now(self) -> int:
        return max(0, int(self._libc.syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION_FLAG)))

    def _restrict_files(self) -> bool:
        version = self._landlock_version
        if version == 0:
            return False
        files = (1 << (13 + (version >= 2) + (version >= 3) + (version >= 5))) - 1
        attributes = [files]
        if version >= 4:
            attributes.append(3)  # bind and connect TCP
        if version >= 6:
            attributes.append(3)  # abstract sockets and signals outside
        rules = (ctypes.c_uint64 * len(attributes))(*attributes)
        ruleset = self._libc.syscall(_LANDLOCK_CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)
        if ruleset < 0:
            return False
        applied = bool(self._libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0) == 0)
        os.close(ruleset)
        return applied


def _address_space_now() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as statistics:
            return int(statistics.read().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        # Without /proc the limit has to leave room for the interpreter by guess.
        return 1 << 30
