"""Keeps model replies in a SQLite file, so that the same request is paid for once.

What a request means is not looked at: equal requests of one model at one endpoint have equal keys.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from envscaler.errors import SchemaVersionError, StoreError, UsageError
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.messages import to_openai
from envscaler.state import JsonValue, canonical, digest

T = TypeVar("T")

_VERSION = 1
_BUSY_S = 60.0
"""How long one process waits while another writes."""


def question_digest(request: ModelRequest) -> str:
    """Digest of all that a model is sent, and of the sample; `role` and `inputs` are no part of it."""
    return digest(
        canonical(
            {
                "messages": [to_openai(message, reasoning=request.sends_reasoning) for message in request.messages],
                "tools": [tool.to_openai() for tool in request.tools],
                "schema": request.response_schema,
                "sampling": request.sampling.model_dump(exclude_defaults=True),
                "sample": list(request.sample),
            }
        )
    )


@dataclass(frozen=True, slots=True)
class _Row:
    model: str
    completion: Completion


class ReplyCache:
    """A file of replies. Safe for many tasks and processes at once, and for a process that is killed at any moment."""

    def __init__(self, path: Path, *, create: bool = True) -> None:
        """
        Raises:
            StoreError: if the file cannot be opened, or is not ours.
            UsageError: if it does not exist and `create` is false.
        """
        self.path = path
        if not create and not path.is_file():
            raise UsageError(f"{path}: there is no reply cache; run once with a model, then again with --model cached")
        # One thread of its own: a write that waits for another process must not hold the event loop up.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reply-cache")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._thread.submit(self._open).result()
        except (OSError, sqlite3.Error) as error:
            self._thread.shutdown()
            raise StoreError(f"{path}: the reply cache cannot be opened: {error}") from error
        except StoreError:
            self._thread.shutdown()
            raise
        self._closed = False

    async def get(self, key: str) -> Completion | None:
        """The reply under a key, or None."""
        rows = await self._run(lambda db: db.execute("SELECT model, completion FROM replies WHERE key = ?", (key,)))
        return rows[0].completion if rows else None

    async def find(self, question: str, model: str | None = None) -> tuple[_Row, ...]:
        """The replies of any model (or of one) to a question, in the order in which they were given."""
        rows = await self._run(
            lambda db: db.execute(
                "SELECT model, completion FROM replies WHERE question = ? ORDER BY rowid", (question,)
            )
        )
        return tuple(row for row in rows if model is None or row.model == model)

    async def put(self, key: str, question: str, model: str, completion: Completion) -> None:
        """Keep a reply; the first one under a key stays."""
        text = completion.model_dump_json(exclude={"cached"})
        await self._run(
            lambda db: db.execute(
                "INSERT OR IGNORE INTO replies (key, question, model, completion) VALUES (?, ?, ?, ?)",
                (key, question, model, text),
            )
        )

    def close(self) -> None:
        """Close the file; idempotent."""
        if not self._closed:
            self._closed = True
            self._thread.submit(self._db.close).result()
            self._thread.shutdown()

    def _open(self) -> None:
        self._db = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            self._db.close()
            raise SchemaVersionError(f"{self.path}: written by a newer version of envscaler; update it")
        # With WAL, NORMAL loses nothing when the process dies; a power cut costs the last replies, never the file.
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS replies"
            " (key TEXT PRIMARY KEY, question TEXT NOT NULL, model TEXT NOT NULL, completion TEXT NOT NULL)"
        )
        self._db.execute("CREATE INDEX IF NOT EXISTS replies_question ON replies (question)")
        self._db.execute(f"PRAGMA user_version = {_VERSION}")

    async def _run(self, statement: Callable[[sqlite3.Connection], sqlite3.Cursor]) -> list[_Row]:
        def work() -> list[Any]:
            return statement(self._db).fetchall()

        # What is under way is carried out also where nobody waits for it any more: a reply was paid for.
        ordered = self._thread.submit(work)
        try:
            rows = await asyncio.shield(asyncio.wrap_future(ordered))
        except sqlite3.Error as error:
            raise StoreError(f"{self.path}: the reply cache cannot be used: {error}") from error
        return [row for model, text in rows if (row := _row(model, text)) is not None]


def _row(model: str, text: str) -> _Row | None:
    try:
        completion = Completion.model_validate_json(text)
    except ValidationError:
        return None  # of another version: asking again is right, guessing at it is not
    return _Row(model, completion.model_copy(update={"cached": True}))


class CachedModel:
    """A model that is asked once for each request; equal requests side by side wait for the one that asks."""

    def __init__(
        self,
        model: ChatModel,
        cache: ReplyCache,
        *,
        scope: JsonValue,
        on_reuse: Callable[[str, Completion], None] | None = None,
    ) -> None:
        """
        Args:
            scope: what else a reply depends on: endpoint, default sampling, extra fields. Never a key.
            on_reuse: told role and reply for each answer from the cache; `Meter.count_reused` fits.
        """
        self._model = model
        self._cache = cache
        self._scope = scope
        self._on_reuse = on_reuse
        self._asking: dict[str, tuple[asyncio.Lock, int]] = {}

    @property
    def name(self) -> str:
        return self._model.name

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request from the cache, else from the model."""
        question = question_digest(request)
        key = digest(canonical({"question": question, "model": self._model.name, "scope": self._scope}))
        async with self._alone(key):
            held = await self._cache.get(key)
            if held is not None:
                if self._on_reuse is not None:
                    self._on_reuse(request.role, held)
                return held
            completion = await self._model.complete(request)
            await self._cache.put(key, question, self._model.name, completion)
            return completion

    async def aclose(self) -> None:
        """Close the model; the cache belongs to whoever opened it."""
        await self._model.aclose()

    @asynccontextmanager
    async def _alone(self, key: str) -> AsyncIterator[None]:
        lock, users = self._asking.get(key, (asyncio.Lock(), 0))
        self._asking[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            lock, users = self._asking[key]
            if users == 1:
                del self._asking[key]
            else:
                self._asking[key] = (lock, users - 1)


class CacheOnlyModel:
    """Answers from a cache and asks nobody: replays what models said before, at no cost."""

    def __init__(
        self,
        cache: ReplyCache,
        *,
        model: str | None = None,
        on_reuse: Callable[[str, Completion], None] | None = None,
    ) -> None:
        """
        Args:
            model: name of the model whose replies count; None: whichever one there is.
        """
        self._cache = cache
        self._only = model
        self._on_reuse = on_reuse

    @property
    def name(self) -> str:
        return f"cached:{self._only}" if self._only else "cached"

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request from the cache.

        Raises:
            UsageError: if it holds no reply, or those of several models.
        """
        rows = await self._cache.find(question_digest(request), self._only)
        models = sorted({row.model for row in rows})
        if not rows:
            of = f" of {self._only}" if self._only else ""
            raise UsageError(
                f"{self._cache.path}: holds no reply{of} to this request of role {request.role}; "
                "make it with a model first (the same command without `cached`)"
            )
        if len(models) > 1:
            raise UsageError(
                f"{self._cache.path}: holds replies of {', '.join(models)}; name one: --model cached:{models[0]}"
            )
        completion = rows[0].completion
        if self._on_reuse is not None:
            self._on_reuse(request.role, completion)
        return completion

    async def aclose(self) -> None:
        return None
