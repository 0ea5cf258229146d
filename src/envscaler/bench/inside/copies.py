"""`in_copy`: something tried in a copy of this process: the cheapest copy of whatever a benchmark has in memory."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Callable
from typing import Any


def in_copy(work: Callable[[], Any]) -> Any:
    """What a function gives there, as JSON; nothing that it does is seen here.

    Raises:
        RuntimeError: with the trace, if it fails there.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            told = {"answer": work()}
        except Exception:  # noqa: BLE001 - it is told on the other side of the fork
            told = {"failed": traceback.format_exc()}
        with os.fdopen(writing, "w", encoding="ascii") as out:
            json.dump(told, out)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, encoding="ascii") as told_there:
        text = told_there.read()
    os.waitpid(child, 0)
    if not text:
        raise RuntimeError("the copy of the process ended without an answer")
    answer = json.loads(text)
    if "failed" in answer:
        raise RuntimeError(answer["failed"])
    return answer["answer"]
