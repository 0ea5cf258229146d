"""Tests of spans: what they say of a call, how they nest, and that nothing happens where no collector is named."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from envscaler.errors import RequestFailed
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.scripted import ScriptedModel
from envscaler.llm.spans import Attribute, NoTracer, OtelTracer, SpannedModel, StageSpans, open_tracer
from envscaler.llm.tracing import about
from envscaler.messages import AssistantMessage, UserMessage
from envscaler.models import ModelSettings, open_models
from envscaler.trajectory import Sampling, Usage

pytestmark = pytest.mark.anyio

REPLY = Completion(
    message=AssistantMessage(content="Seven."),
    usage=Usage(input_tokens=12, cached_input_tokens=8, output_tokens=3),
    model="scripted-1",
    cost_usd=0.25,
)
REQUEST = ModelRequest(role="count", messages=(UserMessage(content="How many?"),), sample=(2, 1))


@dataclass
class Kept:
    name: str
    attributes: dict[str, Attribute]
    client: bool
    within: str | None
    failed: bool = False

    def set_attribute(self, key: str, value: Attribute) -> None:
        self.attributes[key] = value


@dataclass
class KeepingTracer:
    """Keeps its spans in the order in which they began."""

    spans: list[Kept] = field(default_factory=list)
    open: list[Kept] = field(default_factory=list)

    @contextmanager
    def span(self, name: str, attributes: Mapping[str, Attribute], *, client: bool = False) -> Iterator[Kept]:
        kept = Kept(name, dict(attributes), client, self.open[-1].name if self.open else None)
        self.spans.append(kept)
        self.open.append(kept)
        try:
            yield kept
        except BaseException:
            kept.failed = True
            raise
        finally:
            self.open.remove(kept)

    def close(self) -> None:
        return None


async def test_a_call_is_a_span_with_the_attributes_of_the_conventions() -> None:
    tracer = KeepingTracer()
    sampling = Sampling(temperature=0.5, max_tokens=100)
    model = SpannedModel(ScriptedModel([REPLY], name="m"), tracer, provider="openai", sampling=sampling)
    with about("a-desk"):
        assert await model.complete(REQUEST) == REPLY
    (span,) = tracer.spans
    assert (span.name, span.client, span.failed) == ("chat m", True, False)
    assert span.attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.output.type": "text",
        "gen_ai.response.model": "scripted-1",
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 8,
        "envscaler.role": "count",
        "envscaler.subject": "a-desk",
        "envscaler.sample": 2,
        "envscaler.attempt": 1,
        "envscaler.cached": False,
        "envscaler.cost_usd": 0.25,
    }


async def test_a_call_that_fails_says_of_what_type() -> None:
    tracer = KeepingTracer()
    model = SpannedModel(ScriptedModel([RequestFailed("too long")]), tracer, provider="openai")
    with pytest.raises(RequestFailed):
        await model.complete(REQUEST)
    assert tracer.spans[0].failed
    assert tracer.spans[0].attributes["error.type"] == "RequestFailed"


def test_stages_follow_one_another_within_what_they_belong_to() -> None:
    tracer = KeepingTracer()
    with tracer.span("environment a", {}), StageSpans(tracer) as stages:
        stages.begin("design")
        stages.begin("program")
    assert [(span.name, span.within) for span in tracer.spans] == [
        ("environment a", None),
        ("design", "environment a"),
        ("program", "environment a"),
    ]
    assert not tracer.open


async def test_models_make_spans_only_where_there_is_a_tracer() -> None:
    tracer = KeepingTracer()
    for given in (tracer, None):
        async with open_models(ModelSettings(), offline=ScriptedModel([REPLY]), tracer=given) as models:
            await models.chat("builder").complete(REQUEST)
    assert len(tracer.spans) == 1


def test_without_a_collector_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    told: list[str] = []
    assert isinstance(open_tracer(told.append, {}), NoTracer)
    assert not told


def test_a_collector_without_the_package_is_told_of_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "opentelemetry"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    told: list[str] = []
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert isinstance(open_tracer(told.append, environ), NoTracer)
    assert told == ["OTEL_EXPORTER_OTLP_ENDPOINT is set, and no spans are sent: pip install 'envscaler[otel]'"]
    assert isinstance(open_tracer(told.append, {**environ, "OTEL_SDK_DISABLED": "true"}), NoTracer)
    assert len(told) == 1


async def test_the_sdk_is_given_the_spans_with_their_places() -> None:
    pytest.importorskip("opentelemetry.sdk", reason="spans need the extra `otel`")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    tracer = OtelTracer(SimpleSpanProcessor(exporter))
    model = SpannedModel(ScriptedModel([REPLY, RequestFailed("too long")]), tracer, provider="openai")
    with tracer.span("environment a", {"envscaler.environment": "a"}):
        await model.complete(REQUEST)
        with pytest.raises(RequestFailed):
            await model.complete(REQUEST)
    answered, failed, environment = exporter.get_finished_spans()
    assert answered.parent.span_id == failed.parent.span_id == environment.context.span_id
    assert answered.attributes["gen_ai.usage.input_tokens"] == 12
    assert (answered.kind.name, environment.kind.name) == ("CLIENT", "INTERNAL")
    assert (answered.status.is_ok, failed.status.is_ok) == (True, False)
    assert environment.resource.attributes["service.name"] == "envscaler"
    tracer.close()
