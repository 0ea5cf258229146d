"""`Trace`: a file with every question that models were asked and every reply, one JSON object a line.

Lines are written while a run goes on and survive a kill. A trace is for eyes and for programs that look into what
happened; nothing resumes from it, and no key of an endpoint ever stands in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from envscaler.errors import BudgetExhausted, EnvScalerError, ReplyFault
from envscaler.llm.around import ModelAround
from envscaler.llm.cache import question_digest
from envscaler.llm.chat import ChatModel, Completion, FinishReason, Mending, ModelRequest
from envscaler.llm.wire import combined
from envscaler.messages import AssistantMessage, Message
from envscaler.record import SCHEMA_VERSION, JsonSchema, Record
from envscaler.state import digest
from envscaler.store import begins_with, read_jsonl, require_replaceable
from envscaler.store.appending import LineFile
from envscaler.store.atomic import json_line
from envscaler.trajectory import Sampling, Usage

_MARK = '"trace": {"what": '
_HIDDEN = "•••"
_SHORTEST_SECRET = 6
"""A shorter key would be found in texts that have nothing to do with it."""

_subject: ContextVar[str | None] = ContextVar("subject", default=None)


@contextmanager
def about(subject: str) -> Iterator[None]:
    """Within it, questions are asked on behalf of `subject`: an environment, a task, an episode."""
    token = _subject.set(subject)
    try:
        yield
    finally:
        _subject.reset(token)


def subject() -> str | None:
    """On behalf of what questions are asked here; None: nothing was named."""
    return _subject.get()


class Exchange(Record):
    """One question and the reply to it."""

    what: Literal["exchange"] = "exchange"
    id: str
    """Equal for equal questions of one role to one model on behalf of one subject."""
    role: str
    subject: str | None = None
    """Environment, task or episode that it is about."""
    model: str
    sample: int
    attempt: int
    """How often the same was asked before, because a reply could not be used."""
    sampling: Sampling
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    """Names of the tools that were offered."""
    response_schema: JsonSchema | None = None
    reply: AssistantMessage | None = None
    """None where there was none."""
    finish_reason: FinishReason | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    latency_s: float | None = None
    """Of a reply from the cache: how long it took when it was made."""
    cached: bool = False
    error: str | None = None
    """Why there is no reply."""


class Fault(Record):
    """What was wrong with a reply that stands further up."""

    what: Literal["fault"] = "fault"
    id: str
    """That of the exchange."""
    kind: ReplyFault
    fault: str


class Mended(Record):
    """What had to be made good in a reply that stands further up before it could be read."""

    what: Literal["mended"] = "mended"
    id: str
    """That of the exchange."""
    mended: tuple[Mending, ...]


class TraceLine(Record):
    """One line of the file."""

    trace: Annotated[Exchange | Fault | Mended, Field(discriminator="what")]


class Trace:
    """Appends to a file. A question whose reply stands in it already is not written again when it is answered anew."""

    def __init__(self, path: Path, *, secrets: Iterable[str] = ()) -> None:
        """
        Args:
            secrets: texts that never get into the file, wherever they turn up.

        Raises:
            StoreError: if the file is somebody else's, or cannot be read.
        """
        require_replaceable(path, is_trace)
        self.path = path
        # As they stand between the quotes of a JSON string, longest first: one may be part of another.
        written = (
            json.dumps(secret, ensure_ascii=False)[1:-1] for secret in secrets if len(secret) >= _SHORTEST_SECRET
        )
        self._secrets = sorted(written, key=len, reverse=True)
        self._lines = LineFile(path, durable=False)
        self._known = {(line.what, line.id) for line in read_trace(path)} if path.is_file() else set()

    def asked(self, request: ModelRequest, model: str, sampling: Sampling, answer: Completion | EnvScalerError) -> None:
        """Keep a question with the reply to it, or with why there is none."""
        key = _id(request, model)
        if ("exchange", key) in self._known:
            return
        replied: dict[str, Any]
        if isinstance(answer, Completion):
            self._known.add(("exchange", key))
            replied = {
                "reply": answer.message,
                "finish_reason": answer.finish_reason,
                "usage": answer.usage,
                "cost_usd": answer.cost_usd,
                "latency_s": round(answer.latency_s, 3),
                "cached": answer.cached,
            }
        else:
            replied = {"error": f"{type(answer).__name__}: {answer}"}
        sample, attempt = request.sample
        self._write(
            Exchange(
                id=key,
                role=request.role,
                subject=subject(),
                model=model,
                sample=sample,
                attempt=attempt,
                sampling=combined(request.sampling, sampling),
                messages=request.messages,
                tools=tuple(tool.name for tool in request.tools),
                response_schema=request.response_schema,
                **replied,
            )
        )

    def faulted(self, request: ModelRequest, model: str, kind: ReplyFault, fault: str) -> None:
        """Keep what was wrong with the reply to a question."""
        key = _id(request, model)
        if ("fault", key) not in self._known:
            self._known.add(("fault", key))
            self._write(Fault(id=key, kind=kind, fault=fault))

    def mended(self, request: ModelRequest, model: str, mended: tuple[Mending, ...]) -> None:
        """Keep what had to be made good in the reply to a question."""
        key = _id(request, model)
        if ("mended", key) not in self._known:
            self._known.add(("mended", key))
            self._write(Mended(id=key, mended=mended))

    def close(self) -> None:
        """Close the file; idempotent."""
        self._lines.close()

    def _write(self, line: Exchange | Fault | Mended) -> None:
        text = json_line({"schema_version": SCHEMA_VERSION, "trace": line.model_dump(mode="json")})
        for secret in self._secrets:
            text = text.replace(secret, _HIDDEN)
        self._lines.append_text(text)


def _id(request: ModelRequest, model: str) -> str:
    return digest([request.role, subject(), model, question_digest(request)])


class TracedModel(ModelAround):
    """A model whose questions and replies are kept in a trace."""

    def __init__(self, model: ChatModel, trace: Trace, *, sampling: Sampling | None = None) -> None:
        """
        Args:
            sampling: what requests use where they set nothing themselves.
        """
        super().__init__(model)
        self._trace = trace
        self._sampling = sampling or Sampling()

    @property
    def needs_messages(self) -> bool:
        """True: prompts are what a trace is for, also where the model would do without."""
        return True

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request, and keep it."""
        try:
            completion = await self._model.complete(request)
        except BudgetExhausted:
            raise  # nothing was asked
        except EnvScalerError as error:
            self._trace.asked(request, self.name, self._sampling, error)
            raise
        self._trace.asked(request, self.name, self._sampling, completion)
        return completion


def is_trace(path: Path) -> bool:
    """Whether a file begins as a trace does."""
    return begins_with(path, _MARK)


def read_trace(path: Path) -> Iterator[Exchange | Fault | Mended]:
    """The lines of a trace, streamed; a torn last one is left out.

    Raises:
        StoreError: if another line cannot be read.
    """
    for line in read_jsonl(path, TraceLine, torn_tail=True):
        yield line.trace
