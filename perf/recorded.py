"""What the offline model says to every question of a synthesis, recorded once, and a server that says it again.

The server is an endpoint whose replies are a function of the request, and which takes the same time for each of them.
`python -m perf.recorded FILE SECONDS [MOST]` prints its port and serves until it is ended; more than MOST requests at
once get a status 429. A GET tells of every call on whose behalf it was made, when it came and when it was answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import envscaler
from envscaler.llm import Completion, ModelRequest
from envscaler.llm.tracing import subject
from envscaler.models import ModelSettings, open_models
from envscaler.offline import OfflineModel
from envscaler.roles.role import Prompts
from envscaler.synth import SynthSettings, run_synth
from perf import serving

MODEL = "recorded"


def question_key(messages: Iterable[Mapping[str, Any]]) -> str:
    """What one question is known by: its system and its first user message; later ones say what was wrong."""
    asked = blake2b(digest_size=16)
    for message in list(messages)[:2]:
        asked.update(message["content"].encode("utf-8", "surrogatepass") + b"\0")
    return asked.hexdigest()


class Recorder:
    """The offline model, asked with prompts as any other model, and what it said to which."""

    needs_messages = True
    name = MODEL

    def __init__(self) -> None:
        self.replies: dict[str, str] = {}
        self.asked_for: dict[str, str] = {}
        """On whose behalf each question was asked."""
        self._model = OfflineModel()

    async def complete(self, request: ModelRequest) -> Completion:
        completion = await self._model.complete(request)
        key = question_key([{"content": message.content} for message in request.messages])
        if self.replies.setdefault(key, completion.message.content) != completion.message.content:
            raise RuntimeError(f"one prompt of {request.role} led to two answers: it lacks what a model needs to know")
        self.asked_for[key] = subject() or ""
        return completion

    async def aclose(self) -> None:
        return None


def recorded(settings: SynthSettings) -> Path:
    """The file of what is said in a synthesis with these settings; made where it is missing, for this code alone."""
    assert settings.tasks is not None
    kept = settings.model_dump_json(exclude={"library", "tasks", "workers"})
    name = blake2b(f"{_code()} {kept} {settings.tasks.read_text()}".encode(), digest_size=8).hexdigest()
    path = Path(tempfile.gettempdir()) / f"envscaler-perf-replies-{name}.jsonl"
    if path.exists():
        return path
    recorder = Recorder()

    async def run(library: Path) -> dict[str, Any]:
        async with open_models(ModelSettings(), offline=recorder) as models:
            report = await run_synth(settings.model_copy(update={"library": library}), models, Prompts())
        return report.funnel.model_dump()

    with tempfile.TemporaryDirectory() as folder:
        funnel = asyncio.run(run(Path(folder) / "library"))
    lines = [json.dumps({"funnel": funnel})]
    for key, reply in recorder.replies.items():
        lines.append(json.dumps({"key": key, "for": recorder.asked_for[key], "reply": reply}))
    made = path.with_suffix(".part")
    made.write_text("\n".join(lines) + "\n", encoding="utf-8")
    made.replace(path)
    return path


def funnel_of(path: Path) -> dict[str, int]:
    """How far the recorded synthesis came."""
    with path.open(encoding="utf-8") as lines:
        funnel: dict[str, int] = json.loads(next(lines))["funnel"]
    return funnel


def _code() -> str:
    """Digest of all that may decide what is asked and said."""
    whole = blake2b(digest_size=16)
    package = Path(envscaler.__file__).parent
    for path in sorted(package.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            whole.update(str(path.relative_to(package)).encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


# -- the server ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One call that the server answered."""

    asked_for: str
    """Environment or task."""
    came: float
    """Seconds by a clock that all processes of the machine share."""
    answered: float


@dataclass(frozen=True)
class Served:
    """What a server did."""

    calls: tuple[Call, ...]
    refused: int
    """Requests that got a status 429."""
    unknown: int
    """Requests that the record has no reply to."""


async def serve(path: Path, latency_s: float, most: int | None) -> None:
    """Serve on a free port, which is printed."""
    replies: dict[str, tuple[str, str]] = {}
    with path.open(encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            one = json.loads(line)
            replies[one["key"]] = (one["for"], one["reply"])
    calls: list[tuple[str, float, float]] = []
    refused = unknown = at_work = 0

    async def reply(asked: bytes) -> tuple[int, bytes]:
        nonlocal refused, unknown, at_work
        if most is not None and at_work >= most:
            refused += 1
            return 429, b'{"error": {"message": "too many requests at once"}}'
        came = time.monotonic()
        at_work += 1
        body = json.loads(asked)
        known = replies.get(question_key(body["messages"]))
        await asyncio.sleep(latency_s - (time.monotonic() - came))
        at_work -= 1
        if known is None:
            unknown += 1
            return 400, b'{"error": {"message": "the record has no reply to this"}}'
        calls.append((known[0], came, time.monotonic()))
        return 200, _completion(known[1], len(asked))

    await serving.serve(reply, lambda: {"calls": calls, "refused": refused, "unknown": unknown})


def _completion(text: str, asked_bytes: int) -> bytes:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    read, written = asked_bytes // 4, len(text) // 4 + 1
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return json.dumps({"object": "chat.completion", "model": MODEL, "choices": [choice], "usage": usage}).encode()


def running(path: Path, latency_s: float, most: int | None = None) -> AbstractContextManager[str]:
    """The base URL of a server in a process of its own."""
    return serving.running("perf.recorded", path, latency_s, *([] if most is None else [most]))


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None))
