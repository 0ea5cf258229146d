"""`OpenAIModel`: a chat model at any OpenAI-compatible endpoint, whatever of the interface it supports.

Waiting and retrying are `endpoint`'s business, the form of bodies `wire`'s.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from envscaler.errors import EndpointRejected, RequestFailed
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.endpoint import Endpoint, RequestRefused
from envscaler.llm.prices import PriceBook
from envscaler.llm.transport import Fault
from envscaler.llm.wire import LEVELS, StructureLevel, combined, completion_from, request_body, response_format
from envscaler.messages import AssistantMessage, UserMessage
from envscaler.state import digest
from envscaler.trajectory import Sampling, Usage

PATH = "/chat/completions"
_TINY_SCHEMA = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
_FORMAT_WORDS = ("response_format", "json_schema", "json_object", "schema", "grammar", "structured", "guided")
_LENGTH_WORDS = ("context_length", "context length", "context size", "maximum context", "too long", "too many tokens")


class OpenAIModel:
    """A chat model at an endpoint.

    Replies to a schema are asked for by JSON schema, else by JSON mode, else by the prompt alone. What the endpoint
    supports is found out by use: the first refusal that speaks of it steps down. A tiny request then tells whether
    the feature is refused, and is never used again, or only this one schema.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        model: str,
        *,
        sampling: Sampling | None = None,
        body: Mapping[str, Any] | None = None,
        prices: PriceBook | None = None,
    ) -> None:
        """
        Args:
            sampling: what requests use where they set nothing themselves.
            body: further fields of every request.
        """
        self._endpoint = endpoint
        self._model = model
        self._sampling = sampling or Sampling()
        self._body = dict(body or {})
        self._prices = prices or PriceBook()
        self._level: StructureLevel = "json_schema"
        self._levels: dict[str, StructureLevel] = {}
        """Lower levels of single schemas that were refused, by digest."""
        self._max_tokens_key = "max_tokens"
        self._takes_reasoning = True

    @property
    def name(self) -> str:
        return self._model

    @property
    def structure_level(self) -> StructureLevel:
        """How replies to a schema are asked for at present."""
        return self._level

    def cost_of(self, usage: Usage) -> float | None:
        """US dollars for that many tokens; None: unknown."""
        return self._prices.cost(usage, model=self._model, base_url=self._endpoint.base_url)

    async def complete(self, request: ModelRequest) -> Completion:
        """Answer one request.

        Raises:
            EndpointUnavailable: it did not answer for longer than the patience.
            EndpointRejected: it refuses for good.
            RequestFailed: it answers others, but not this request.
        """
        sampling = combined(request.sampling, self._sampling)
        started = time.monotonic()
        while True:
            if request.sends_reasoning and not self._takes_reasoning:
                request = replace(request, sends_reasoning=False)
            level = self._level_for(request)
            body = request_body(
                request,
                model=self._model,
                sampling=sampling,
                level=level,
                max_tokens_key=self._max_tokens_key,
                extra=self._body,
            )
            try:
                completion = await self._endpoint.post(
                    PATH, body, lambda reply: completion_from(reply, model=self._model), tiny=self._answers
                )
            except RequestRefused as refusal:
                if refusal.names("content_filter", "content management policy"):
                    return self._withheld(refusal)
                if not await self._adapted(request, body, level, refusal):
                    await self._give_up(refusal)
            except RequestFailed:
                # Some servers fail on a schema with status 500 instead of refusing it.
                if "response_format" not in body:
                    raise
                await self._step_down(request, level)
            else:
                latency_s = time.monotonic() - started
                return completion.model_copy(
                    update={"latency_s": latency_s, "cost_usd": self.cost_of(completion.usage)}
                )

    async def aclose(self) -> None:
        await self._endpoint.aclose()

    def _withheld(self, refusal: RequestRefused) -> Completion:
        """Some hosts refuse what their filter stops before any model sees it: that is a reply, and costs nothing."""
        return Completion(
            message=AssistantMessage(content=str(refusal)),
            finish_reason="content_filter",
            model=self._model,
            cost_usd=0.0,
        )

    # -- what the endpoint does not take --------------------------------------------------------------------

    def _level_for(self, request: ModelRequest) -> StructureLevel:
        if request.response_schema is None:
            return "plain"
        own = self._levels.get(digest(request.response_schema), "json_schema")
        return max(own, self._level, key=LEVELS.index)

    async def _adapted(
        self, request: ModelRequest, body: dict[str, Any], level: StructureLevel, refusal: RequestRefused
    ) -> bool:
        """Change how requests are made after a refusal; False when there is nothing to change."""
        if "max_tokens" in body and refusal.names("max_completion_tokens"):
            self._max_tokens_key = "max_completion_tokens"
            return True
        if request.sends_reasoning and refusal.names("reasoning"):
            self._takes_reasoning = False
            self._endpoint.stats.stepped_down["reasoning"] += 1
            return True
        if "response_format" in body and refusal.names(*_FORMAT_WORDS) and not refusal.names(*_LENGTH_WORDS):
            await self._step_down(request, level)
            return True
        return False

    async def _step_down(self, request: ModelRequest, level: StructureLevel) -> None:
        below = LEVELS[LEVELS.index(level) + 1]
        assert request.response_schema is not None
        if LEVELS.index(self._level) > LEVELS.index(level):
            return  # a request beside this one has found out already
        if await self._tiny(level) is not False:
            self._levels[digest(request.response_schema)] = below
        elif self._level == level:
            self._level = below
            self._endpoint.stats.stepped_down[level] += 1

    async def _give_up(self, refusal: RequestRefused) -> None:
        """Tell a request that is refused from an endpoint, model or option that is.

        Raises:
            RequestFailed: the request is at fault.
            EndpointRejected: no request would pass.
        """
        self._endpoint.stats.failed += 1
        where = f"{self._endpoint.public_url} refuses"
        if refusal.names(*_LENGTH_WORDS) or await self._tiny() is not False:
            raise RequestFailed(f"{where} this request of {self._model}: {refusal}")
        raise EndpointRejected(
            f"{where} requests to {self._model}: {refusal}; check the model's name, the sampling and the extra fields"
        )

    async def _answers(self) -> bool:
        return await self._tiny() is True

    async def _tiny(self, level: StructureLevel = "plain") -> bool | None:
        """Whether a tiny request with the same options is answered; None: not found out (rate limit, no connection).

        It is sent once, and counted by neither meter nor cache.
        """
        request = ModelRequest(
            role="probe",
            messages=(UserMessage(content='Reply with this JSON object and nothing else: {"ok": true}'),),
            sampling=self._sampling,
        )
        body = request_body(
            request,
            model=self._model,
            sampling=self._sampling,
            level="plain",
            max_tokens_key=self._max_tokens_key,
            extra=self._body,
        )
        if level != "plain":
            body["response_format"] = response_format(level, "probe", _TINY_SCHEMA)
        try:
            reply = await self._endpoint.post_once(PATH, body, lambda reply: completion_from(reply, model=self._model))
        except RequestRefused:
            return False
        if isinstance(reply, Fault):
            return False if reply.status is not None and reply.status >= 500 else None
        return True
