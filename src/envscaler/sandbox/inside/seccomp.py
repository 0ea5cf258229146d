"""The system call filter of a worker (Linux, x86-64 and 64-bit ARM): what is not on the list fails with EPERM.

No file can be opened, no socket made, no process or thread started, nobody signalled, no memory made executable.
"""

from __future__ import annotations

import ctypes
import platform
import sys

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
_PROT_EXEC = 4
_MSG_NOSIGNAL = 0x4000

_RET_KILL = 0x80000000
_RET_ALLOW = 0x7FFF0000
_RET_EPERM = 0x00050000 | 1

_LOAD = 0x20  # BPF_LD | BPF_W | BPF_ABS
_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_AT_LEAST = 0x35  # BPF_JMP | BPF_JGE | BPF_K
_ANY_BIT = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN = 0x06  # BPF_RET | BPF_K

_OFFSET_NUMBER, _OFFSET_ARCH, _OFFSET_ARGUMENT_2, _OFFSET_ARGUMENT_3 = 0, 4, 32, 40

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_NUMBERS = {
    # name: (x86_64, aarch64)
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "poll": (7, None),
    "ppoll": (271, 73),
    "lseek": (8, 62),
    "munmap": (11, 215),
    "brk": (12, 214),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "readv": (19, 65),
    "writev": (20, 66),
    "sched_yield": (24, 124),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "getitimer": (36, 102),
    "setitimer": (38, 103),
    "getpid": (39, 172),
    "exit": (60, 93),
    "uname": (63, 160),
    "gettimeofday": (96, 169),
    "getrusage": (98, 165),
    "sysinfo": (99, 179),
    "times": (100, 153),
    "getuid": (102, 174),
    "getgid": (104, 176),
    "geteuid": (107, 175),
    "getegid": (108, 177),
    "getppid": (110, 173),
    "sigaltstack": (131, 132),
    "gettid": (186, 178),
    "time": (201, None),
    "futex": (202, 98),
    "restart_syscall": (219, 128),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "exit_group": (231, 94),
    "getrandom": (318, 278),
    "membarrier": (324, 283),
    "rseq": (334, 293),
}
_NUMBERS_WITHOUT_EXEC = {"mmap": (9, 222), "mprotect": (10, 226)}
_NUMBERS_WITHOUT_FLAGS = {"sendto": (44, 206), "recvfrom": (45, 207)}
"""What a socket does with flags is code of the kernel that hardly anybody uses, and where holes were found."""


class _Instruction(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint32)]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction))]


def _filter() -> list[tuple[int, int, int, int]]:
    """The filter as BPF instructions, for this machine's architecture."""
    column = list(_ARCH).index(platform.machine())
    allowed = [numbers[column] for numbers in _NUMBERS.values() if numbers[column] is not None]
    code = [
        (_LOAD, 0, 0, _OFFSET_ARCH),
        (_EQUAL, 1, 0, _ARCH[platform.machine()]),
        (_RETURN, 0, 0, _RET_KILL),
        (_LOAD, 0, 0, _OFFSET_NUMBER),
        # The x32 calls of x86-64 share its architecture number and would slip through a list of numbers.
        (_AT_LEAST, 0, 1, 0x40000000),
        (_RETURN, 0, 0, _RET_EPERM),
    ]
    # The calls of every request first.
    for numbers in _NUMBERS_WITHOUT_FLAGS.values():
        code += _unless(numbers[column], _OFFSET_ARGUMENT_3, ~_MSG_NOSIGNAL & 0xFFFFFFFF)
    for number in allowed:
        code += [(_EQUAL, 0, 1, number or 0), (_RETURN, 0, 0, _RET_ALLOW)]
    for numbers in _NUMBERS_WITHOUT_EXEC.values():
        code += _unless(numbers[column], _OFFSET_ARGUMENT_2, _PROT_EXEC)
    code.append((_RETURN, 0, 0, _RET_EPERM))
    return code


def _unless(number: int, argument: int, bits: int) -> list[tuple[int, int, int, int]]:
    """Allow a call unless the argument at this offset has one of the bits."""
    return [
        (_EQUAL, 0, 4, number),
        (_LOAD, 0, 0, argument),
        (_ANY_BIT, 0, 1, bits),
        (_RETURN, 0, 0, _RET_EPERM),
        (_RETURN, 0, 0, _RET_ALLOW),
    ]


class Filter:
    """The compiled filter; made once in the zygote, applied in every worker.

    Args:
        code: BPF instructions of another filter than that of a worker.
    """

    def __init__(self, code: list[tuple[int, int, int, int]] | None = None) -> None:
        if sys.platform != "linux" or platform.machine() not in _ARCH:
            raise OSError(f"no system call filter for {sys.platform} on {platform.machine()}")
        code = code or _filter()
        self._instructions = (_Instruction * len(code))(*[_Instruction(*parts) for parts in code])
        self._program = _Program(len(code), self._instructions)
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def apply(self) -> None:
        """Filter this process from now on; needs no_new_privs.

        Raises:
            OSError: if the kernel refuses.
        """
        if self._prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(self._program), 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "the kernel refuses a system call filter")
