"""Attacks by code of their own: memory that can be executed, files in memory, calls of another ABI.

Each says `PWNED` when it got what it asked for.
"""

from .kernel import _call


def makes_a_file_in_memory(self):
    return _call((319, 279), b"pwn", 0)


def makes_a_secret_area_of_memory(self):
    return _call((447, 447), 0)


def executes_a_file_in_memory(self):
    import os

    descriptor = os.memfd_create("pwn")
    os.write(descriptor, b"#!/bin/sh\ntouch @CANARY@/pwn\n")
    os.execve(descriptor, ["pwn"], {})


def executes_by_descriptor(self):
    return _call((322, 281), 1, b"/bin/true", None, None, 0)


def maps_memory_that_can_be_executed(self):
    import ctypes

    nowhere, page = ctypes.c_void_p(), ctypes.c_size_t(4096)
    return [
        _call((9, 222), nowhere, page, 7, 0x22, -1, ctypes.c_long()),
        _call((10, 226), ctypes.c_void_p(id(self) & ~0xFFF), page, 7),
    ]


def makes_memory_executable_by_key(self):
    import ctypes

    return [
        _call((329, 288), ctypes.c_void_p(id(self) & ~0xFFF), ctypes.c_size_t(4096), 7, -1),
        _call((330, 289), 0, 0),
    ]


def attaches_memory_that_can_be_executed(self):
    return [_call((30, 196), 0, None, 0o100000), _call((216, 234), 0, 4096, 0, 0, 0)]


def makes_a_callback_of_machine_code(self):
    """A callback of ctypes needs memory that can be executed."""
    import ctypes

    callback = ctypes.CFUNCTYPE(ctypes.c_int)(lambda: 1)
    return callback()


def uses_the_calls_of_another_abi(self):
    """The calls of x32 carry the architecture number of x86-64."""
    import ctypes
    import platform

    if platform.machine() != "x86_64":
        return "another architecture"
    libc = ctypes.CDLL(None, use_errno=True)
    found = {libc.syscall(ctypes.c_long(0x40000000 + number), 0, 0, 0) for number in range(550)}
    return "PWNED" if found != {-1} else "refused"


def calls_with_numbers_that_wrap(self):
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    wrapped = [libc.syscall(ctypes.c_long(base + 2), b"@CANARY@/secret.txt", 0) for base in (1 << 32, -(1 << 32))]
    return "PWNED" if any(number > 3 for number in wrapped) else wrapped


def jumps_to_the_32_bit_gate(self):
    """An `int 0x80` that the C library happens to contain, called as if it were a function."""
    import ctypes

    start = ctypes.cast(ctypes.CDLL(None).getpid, ctypes.c_void_p).value & ~0xFFF
    for page in range(start, start + 0x100000, 4096):
        place = ctypes.string_at(page, 4096).find(b"\xcd\x80")
        if place >= 0:
            return ctypes.PYFUNCTYPE(ctypes.c_long)(page + place)()
    return "no gate"


def writes_over_code(self):
    import ctypes

    place = ctypes.cast(ctypes.CDLL(None).getppid, ctypes.c_void_p).value
    ctypes.memset(place, 0xC3, 4)
    return ctypes.CDLL(None).getppid()
