"""`Tracer`: spans of a run for a collector of OpenTelemetry, where one is configured; else nothing is imported or kept.

What a span is called and carries follows the semantic conventions for generative AI; prompts and replies are the
business of `tracing`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from types import TracebackType
from typing import Protocol, Self

from envscaler.llm.around import ModelAround
from envscaler.llm.chat import ChatModel, Completion, ModelRequest
from envscaler.llm.tracing import subject
from envscaler.llm.wire import combined
from envscaler.trajectory import Sampling

Attribute = str | int | float | bool | Sequence[str]
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Variables of which one names a collector."""


class Span(Protocol):
    """A piece of work that is being timed."""

    def set_attribute(self, key: str, value: Attribute) -> None:
        """Say something of it."""
        ...


class Tracer(Protocol):
    """Makes spans; those within another one belong to it."""

    def span(
        self, name: str, attributes: Mapping[str, Attribute], *, client: bool = False
    ) -> AbstractContextManager[Span]:
        """A span for the time of a `with`; one that an exception leaves is marked as failed.

        Args:
            client: whether it is a call to something outside.
        """
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


class _NoSpan:
    def set_attribute(self, key: str, value: Attribute) -> None:
        return None


class NoTracer:
    """Makes no spans."""

    def span(
        self, name: str, attributes: Mapping[str, Attribute], *, client: bool = False
    ) -> AbstractContextManager[Span]:
        return nullcontext(_NoSpan())

    def close(self) -> None:
        return None


def open_tracer(complain: Callable[[str], None], environ: Mapping[str, str] | None = None) -> Tracer:
    """The tracer for the collector that the environment names, which makes no spans where it names none.

    Args:
        complain: told in one sentence when there is a collector and no package to send it anything.
        environ: environment variables; None: those of this process.
    """
    environ = os.environ if environ is None else environ
    named = next((name for name in ENDPOINTS if environ.get(name)), None)
    if named is None or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return NoTracer()
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        complain(f"{named} is set, and no spans are sent: pip install 'envscaler[otel]'")
        return NoTracer()
    return OtelTracer(BatchSpanProcessor(OTLPSpanExporter()))


class OtelTracer:
    """Makes spans with the SDK of OpenTelemetry, by a provider of its own: a program that uses this package as a
    library keeps the one that it has set up."""

    def __init__(self, processor: object) -> None:
        """
        Args:
            processor: a span processor of the SDK.
        """
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider

        # What is given here would win over the variables.
        is_named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
            "OTEL_RESOURCE_ATTRIBUTES", ""
        )
        named = {} if is_named else {"service.name": "envscaler"}
        self._provider = TracerProvider(resource=Resource.create(named))
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("envscaler")

    def span(
        self, name: str, attributes: Mapping[str, Attribute], *, client: bool = False
    ) -> AbstractContextManager[Span]:
        from opentelemetry.trace import SpanKind

        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        spanned: AbstractContextManager[Span] = self._tracer.start_as_current_span(
            name, kind=kind, attributes=dict(attributes)
        )
        return spanned

    def close(self) -> None:
        self._provider.shutdown()


class StageSpans:
    """One span after another: what stages an environment goes through."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._open = ExitStack()

    def begin(self, stage: str) -> None:
        """A stage begins, and the one before it is over."""
        self._open.close()
        self._open.enter_context(self._tracer.span(stage, {"envscaler.stage": stage}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)


class SpannedModel(ModelAround):
    """A model each of whose calls is a span.

    Source: OpenTelemetry semantic conventions for generative AI, spans of inference.
    """

    def __init__(self, model: ChatModel, tracer: Tracer, *, provider: str, sampling: Sampling | None = None) -> None:
        """
        Args:
            provider: `openai` for an endpoint of that interface, whoever runs it.
            sampling: what requests use where they set nothing themselves.
        """
        super().__init__(model)
        self._tracer = tracer
        self._provider = provider
        self._sampling = sampling or Sampling()

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request within a span."""
        with self._tracer.span(f"chat {self.name}", self._asked(request), client=True) as span:
            try:
                completion = await self._model.complete(request)
            except Exception as error:
                span.set_attribute("error.type", type(error).__name__)
                raise
            for key, value in _answered(completion).items():
                span.set_attribute(key, value)
            return completion

    def _asked(self, request: ModelRequest) -> dict[str, Attribute]:
        sample, attempt = request.sample
        asked: dict[str, Attribute] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self._provider,
            "gen_ai.request.model": self.name,
            "gen_ai.output.type": "json" if request.response_schema is not None else "text",
            "envscaler.role": request.role,
            "envscaler.sample": sample,
            "envscaler.attempt": attempt,
        }
        sampling = combined(request.sampling, self._sampling)
        for name in ("temperature", "top_p", "max_tokens", "seed"):
            if (value := getattr(sampling, name)) is not None:
                asked[f"gen_ai.request.{name}"] = value
        if (about := subject()) is not None:
            asked["envscaler.subject"] = about
        return asked


def _answered(completion: Completion) -> dict[str, Attribute]:
    usage = completion.usage
    answered: dict[str, Attribute] = {
        "gen_ai.response.model": completion.model,
        "gen_ai.response.finish_reasons": [completion.finish_reason],
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_input_tokens,
        "envscaler.cached": completion.cached,
    }
    if completion.cost_usd is not None:
        answered["envscaler.cost_usd"] = completion.cost_usd
    return answered
