"""`open_models`: from settings to one chat model per family of roles, an embedding model and a meter."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from envscaler.errors import UsageError
from envscaler.llm.cache import CachedModel, CacheOnlyModel, ReplyCache
from envscaler.llm.chat import ChatModel
from envscaler.llm.embedding import EmbeddingModel, NgramEmbedder
from envscaler.llm.endpoint import Endpoint, public_url
from envscaler.llm.endpoint_embedder import EndpointEmbedder
from envscaler.llm.metering import Budget, Meter, MeteredModel, MeterReport
from envscaler.llm.openai_model import OpenAIModel
from envscaler.llm.prices import PriceBook
from envscaler.llm.spans import NoTracer, SpannedModel, Tracer
from envscaler.llm.tracing import Trace, TracedModel
from envscaler.llm.transport import OutageHook, RetryPolicy, TransportStats
from envscaler.models.faults import Faults
from envscaler.models.settings import CACHED, OFFLINE, FamilySettings, ModelSettings, is_local
from envscaler.roles.role import FAMILIES, Family

_UNCACHED: tuple[Family, ...] = ("agent", "user")
"""Families whose replies are not cached unless asked: rollouts resume from their journal, and a policy that is being
trained must never be answered from an earlier one."""


class Models:
    """The models of one run; made by `open_models`, used as an async context manager."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        cache: ReplyCache | None,
        meter: Meter,
        offline: ChatModel | None = None,
        on_outage: OutageHook | None = None,
        retry: RetryPolicy | None = None,
        trace: Path | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        self.settings = settings
        self.meter = meter
        self._cache = cache
        self._offline_given = offline
        self._offline = offline
        self._on_outage = on_outage
        self._retry = retry or RetryPolicy(patience_s=settings.patience_s)
        self._prices = PriceBook(settings.prices)
        self._endpoints: dict[tuple[str | None, str | None], Endpoint] = {}
        self._bare: dict[tuple[Any, ...], ChatModel] = {}
        self._chat: dict[tuple[Family, bool], ChatModel] = {}
        self.trace = Trace(trace, secrets=settings.secrets) if trace is not None else None
        self.tracer = tracer or NoTracer()
        self._spans = tracer is not None and not isinstance(tracer, NoTracer)
        # All are made at once: what is wrong with the settings is said before any work is done.
        for family in FAMILIES:
            self.chat(family)
        self.embedder: EmbeddingModel = self._embedding_model()

    @property
    def names(self) -> dict[Family, str]:
        """Name of the model of each family."""
        return {family: self.chat(family).name for family in FAMILIES}

    @property
    def is_embedded(self) -> bool:
        """Whether the embedded offline model answers in every family, so that any process can answer as this one.

        Where a trace or spans are kept it has to be this one.
        """
        if self._offline_given is not None or self.trace is not None or self._spans:
            return False
        return all(self.settings.of(family).model == OFFLINE for family in FAMILIES)

    @property
    def endpoints(self) -> dict[Family, str]:
        """Public URL of the endpoint of each family that has one."""
        return {
            family: public_url(use.base_url)
            for family in FAMILIES
            if (use := self.settings.of(family)).base_url is not None and _is_endpoint_model(use.model)
        }

    @property
    def transport(self) -> dict[str, TransportStats]:
        """Counts of requests and faults by endpoint."""
        return {endpoint.public_url: endpoint.stats for endpoint in self._endpoints.values()}

    @property
    def faults(self) -> Faults:
        """What went wrong between here and the models so far."""
        requests = sum((stats.faults for stats in self.transport.values()), start=Counter[str]())
        report = self.meter.report()
        return Faults(requests=dict(sorted(requests.items())), replies=report.unusable, mended=report.mended)

    def chat(self, family: Family, *, cache: bool | None = None) -> ChatModel:
        """The chat model of a family.

        Args:
            cache: whether replies are kept and used again; None: yes, except for agents and simulated users.
        """
        cached = (family not in _UNCACHED) if cache is None else cache
        key = (family, cached)
        if key not in self._chat:
            use = self.settings.of(family)
            model, sampling = self._chat_model(use, cached), use.sampling or self.settings.sampling
            if self._spans:
                provider = "openai" if _is_endpoint_model(use.model) else "envscaler"
                model = SpannedModel(model, self.tracer, provider=provider, sampling=sampling)
            if self.trace is not None:
                model = TracedModel(model, self.trace, sampling=sampling)
            self._chat[key] = model
        return self._chat[key]

    def in_flight(self, *families: Family) -> int | None:
        """Requests that the endpoints of these families are given at once now; None when none of them has one."""
        uses = [self.settings.of(family) for family in families]
        keys = {_key(use) for use in uses if _is_endpoint_model(use.model)}
        limits = [self._endpoints[key].throttle.limit for key in keys if key in self._endpoints]
        return sum(limits) if limits else None

    async def aclose(self) -> None:
        """Close all connections and the cache; idempotent."""
        for model in self._bare.values():
            await model.aclose()
        await self.embedder.aclose()
        for endpoint in self._endpoints.values():
            await endpoint.aclose()
        if self._cache is not None:
            self._cache.close()
        if self.trace is not None:
            self.trace.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _chat_model(self, use: FamilySettings, cached: bool) -> ChatModel:
        name = use.model or OFFLINE
        if name == OFFLINE:
            return MeteredModel(self._offline_model(), self.meter, cost_of=lambda usage: 0.0)
        if name == CACHED or name.startswith(f"{CACHED}:"):
            if self._cache is None:
                raise UsageError(f"--model {name}: this command keeps no reply cache")
            return CacheOnlyModel(
                self._cache, model=name.removeprefix(CACHED).lstrip(":") or None, on_reuse=self.meter.count_reused
            )
        if use.base_url is None:
            raise UsageError(
                f"--model {name}: say where it is, with --base-url URL or OPENAI_BASE_URL"
                f" (`{OFFLINE}` is the model that needs no endpoint)"
            )
        bare = self._endpoint_model(use, name)
        budget = self.meter.budget
        if budget.max_cost is not None and not self._prices.known(model=name, base_url=use.base_url):
            raise UsageError(
                f"--max-cost: the price of {name} at {public_url(use.base_url)} is not known; "
                f'give it in envscaler.toml ([prices."{name}"] input = …, output = …, in dollars per million tokens), '
                "or limit tokens with --max-tokens"
            )
        metered = MeteredModel(bare, self.meter, cost_of=bare.cost_of)
        if self._cache is None or not cached:
            return metered
        sampling = (use.sampling or self.settings.sampling).model_dump(exclude_defaults=True)
        body = self._extra_body(use.base_url)
        scope = {"endpoint": public_url(use.base_url), "sampling": sampling, "body": body}
        return CachedModel(metered, self._cache, scope=scope, on_reuse=self.meter.count_reused)

    def _endpoint_model(self, use: FamilySettings, name: str) -> OpenAIModel:
        base_url, api_key = _key(use)
        assert base_url is not None
        sampling = use.sampling or self.settings.sampling
        key = (base_url, api_key, name, sampling.model_dump_json())
        model = self._bare.get(key)
        if not isinstance(model, OpenAIModel):
            model = OpenAIModel(
                self._endpoint(base_url, api_key),
                name,
                sampling=sampling,
                body=self._extra_body(base_url),
                prices=self._prices,
            )
            self._bare[key] = model
        return model

    def _offline_model(self) -> ChatModel:
        key = (OFFLINE,)
        if key not in self._bare:
            if self._offline is None:
                # Imported late: its domains take time to load, and not every run uses it.
                from envscaler.offline import OfflineModel

                self._offline = OfflineModel()
            self._bare[key] = self._offline
        return self._bare[key]

    def _endpoint(self, base_url: str, api_key: str | None) -> Endpoint:
        if api_key is None and not is_local(base_url) and public_url(base_url) == base_url:
            raise UsageError(
                f"{public_url(base_url)} needs a key: set OPENAI_API_KEY, or api_key in envscaler.toml "
                "beside the base_url it belongs to"
            )
        key = (base_url, api_key)
        if key not in self._endpoints:
            settings = self.settings
            common = base_url == settings.base_url
            self._endpoints[key] = Endpoint(
                base_url,
                api_key=api_key,
                headers={name: value.get_secret_value() for name, value in settings.headers.items()} if common else {},
                timeout_s=settings.timeout_s,
                max_in_flight=settings.max_in_flight,
                retry=self._retry,
                on_outage=self._on_outage,
            )
        return self._endpoints[key]

    def _extra_body(self, base_url: str) -> dict[str, Any]:
        return self.settings.body if base_url == self.settings.base_url else {}

    def _embedding_model(self) -> EmbeddingModel:
        settings = self.settings
        if settings.embedding_model is None:
            return NgramEmbedder()
        base_url = settings.embedding_base_url or settings.base_url
        if base_url is None:
            raise UsageError(f"embedding_model {settings.embedding_model}: say where it is, with embedding_base_url")
        secret = settings.embedding_api_key or (settings.api_key if base_url == settings.base_url else None)
        endpoint = self._endpoint(base_url, secret.get_secret_value() if secret is not None else None)
        return EndpointEmbedder(endpoint, settings.embedding_model)


def open_models(
    settings: ModelSettings,
    *,
    cache_path: Path | None = None,
    budget: Budget | None = None,
    earlier: MeterReport | None = None,
    offline: ChatModel | None = None,
    on_outage: OutageHook | None = None,
    retry: RetryPolicy | None = None,
    trace: Path | None = None,
    tracer: Tracer | None = None,
) -> Models:
    """Open the models that settings name. Nothing is sent before the first request.

    Args:
        cache_path: SQLite file of replies; None: replies are not kept. It is made when a model needs it.
        budget: limits of this run.
        earlier: use of the runs that this one resumes, for `Models.meter.total()`.
        offline: what answers for `offline`; None: the embedded model.
        on_outage: told when an endpoint is down, again from time to time, and when it is back.
        retry: how failed requests are tried again; None: the default with the patience of the settings.
        trace: file that every question and reply is added to; None: none is kept.
        tracer: what makes spans; whoever opened it closes it. None: nothing does.

    Raises:
        UsageError: if the settings cannot work: no base URL, no key, no price for a cost limit, no cache to read.
        StoreError: if the cache or the trace cannot be opened.
    """
    specs = {settings.of(family).model for family in FAMILIES}
    cache = None
    if cache_path is not None and specs != {OFFLINE}:
        cache = ReplyCache(cache_path, create=any(map(_is_endpoint_model, specs)))
    try:
        return Models(
            settings,
            cache=cache,
            meter=Meter(budget, earlier=earlier),
            offline=offline,
            on_outage=on_outage,
            retry=retry,
            trace=trace,
            tracer=tracer,
        )
    except UsageError:
        if cache is not None:
            cache.close()
        raise


def _key(use: FamilySettings) -> tuple[str | None, str | None]:
    """What tells one endpoint from another: URL and key."""
    return use.base_url, use.api_key.get_secret_value() if use.api_key is not None else None


def _is_endpoint_model(name: str | None) -> bool:
    return name is not None and name not in (OFFLINE, CACHED) and not name.startswith(f"{CACHED}:")
