"""What the zygote does once before it forks anybody, so that workers have fewer pages of their own.

A worker shares the zygote's pages until it writes to one. It writes wherever it puts a new object into a hole that
garbage has left, and wherever something is made that the zygote could have made once for all. Nothing here changes
what a program sees.
"""

from __future__ import annotations

import ctypes
import gc
import marshal
import signal
import socket
import sys

from envscaler.sandbox.inside import loader
from envscaler.sandbox.inside.virtual import Virtual
from envscaler.sandbox.inside.wire import Build, Call, Judge, Read, Request, Settings
from envscaler.sandbox.inside.worker import Worker

_REHEARSED = """
import copy, datetime, re, time, uuid
from typing import Any, Dict, List, Optional, TypedDict
class Row(TypedDict):
    text: str
    number: int
class Rehearsal:
    def __init__(self, init_config: dict):
        self.rows: Dict[str, Row] = init_config.get("rows", {})
        self.number = 1
    def look(self, key: str) -> Dict[str, Any]:
        row = self.rows.get(key)
        if row is None:
            return {"success": False, "error": f"no {key}"}
        return {"success": True, "data": copy.deepcopy(row)}
    def put(self, key: str, text: str = "x") -> Dict[str, Any]:
        self.number += 1
        now = datetime.datetime.now().isoformat()
        self.rows[key] = {"text": text, "number": self.number, "at": now, "on": time.time(), "id": str(uuid.uuid4())}
        return {"success": True, "data": [row for row in self.rows.values() if row["number"] > 0]}
    def refuse(self) -> None:
        raise ValueError("refused")
"""
_CHECK = "def check_func(final_state):\n    return final_state['a'] == initial_state['a']\n"
_CLOCK_US = 1_700_000_000_000_000
_POOL_BYTES = 16_384
_POOL_HEADER_BYTES = 48
_LARGEST_IN_POOLS = 512
_MOST_OF_A_SIZE_BYTES = 1 << 20
_HEAP_SIZES = (
    *(100_000, 32_768, 16_384, 8_192, 6_000, 4_096, 3_000, 2_048),
    *(1_536, 1_024, 768, 600, 400, 200, 100, 24),
)


def settle(settings: Settings, virtual: Virtual) -> None:
    """Make the memory of this process such that its forks copy little of it."""
    _rehearse(settings, virtual)
    gc.collect()
    _fill_heap()
    _fill_pools()
    gc.freeze()


def _rehearse(settings: Settings, virtual: Virtual) -> None:
    """Do once what every worker does first: code that has run is specialised, and what is cached is there."""
    ours, theirs = socket.socketpair()
    worker = Worker(theirs, marshal.loads(marshal.dumps(loader.compiled(_REHEARSED))), settings, virtual)
    before = signal.signal(signal.SIGPROF, worker.interrupt)
    requests: list[Request] = [
        Build(1, "Rehearsal", b'{"rows":{"a":{"text":"x","number":3}}}', 0, _CLOCK_US),
        *(
            request
            for index in range(10)
            for request in (
                Call(2, index, _CLOCK_US, "look", b'{"key":"a"}'),
                Call(2, index, _CLOCK_US, "put", b'{"key":"b"}'),
                Call(2, index, _CLOCK_US, "refuse", b"{}"),
                Read(3),
            )
        ),
        Judge(4, "function", (_CHECK, _CHECK), b'{"a":1}', b'{"a":1}', _CLOCK_US),
    ]
    for request in requests * 8:  # as often as it takes for code to be specialised
        worker.answer(request)
    signal.signal(signal.SIGPROF, before)
    sys.modules.pop(loader.MODULE_NAME, None)
    for end in (ours, theirs):
        end.close()


def _fill_pools() -> None:
    """Fill the holes in the pools of Python's allocator for small objects, each size up to its first fresh pool."""
    allocate = ctypes.pythonapi.PyObject_Malloc
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    for size in range(16, _LARGEST_IN_POOLS + 1, 16):
        in_a_row = last = 0
        for _ in range(_MOST_OF_A_SIZE_BYTES // size):
            place = allocate(size) or 0
            at_start = place % _POOL_BYTES == _POOL_HEADER_BYTES  # of a fresh pool, or of one whose first was freed
            in_a_row = 1 if at_start else in_a_row + 1 if in_a_row and place == last + size else 0
            last = place
            if in_a_row == 3:
                break


def _fill_heap() -> None:
    """Fill the holes in the heap of the C library: each size until what it gives lies at the end, one after another."""
    try:
        allocate = ctypes.CDLL(None).malloc
    except (AttributeError, OSError):
        return
    allocate.restype, allocate.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    for size in _HEAP_SIZES:
        highest = in_a_row = 0
        for _ in range(_MOST_OF_A_SIZE_BYTES // size):
            place = allocate(size) or 0
            in_a_row = in_a_row + 1 if highest < place <= highest + size + 64 else 0
            highest = max(highest, place)
            if in_a_row == 4:
                break
