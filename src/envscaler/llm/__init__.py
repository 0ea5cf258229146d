"""Chat and embedding models: interface, endpoints, cache, metering. Imports nothing that knows environments."""

from envscaler.llm.cache import CachedModel, CacheOnlyModel, ReplyCache
from envscaler.llm.chat import ChatModel, Completion, FinishReason, ModelRequest
from envscaler.llm.embedding import EmbeddingModel, NgramEmbedder
from envscaler.llm.endpoint import Endpoint
from envscaler.llm.endpoint_embedder import EndpointEmbedder
from envscaler.llm.metering import Budget, Meter, MeteredModel, MeterReport, RoleUse
from envscaler.llm.openai_model import OpenAIModel
from envscaler.llm.prices import Price, PriceBook
from envscaler.llm.scripted import ScriptedModel
from envscaler.llm.transport import EndpointState, OutageHook, RetryPolicy, TransportStats

__all__ = [
    "Budget",
    "CacheOnlyModel",
    "CachedModel",
    "ChatModel",
    "Completion",
    "EmbeddingModel",
    "Endpoint",
    "EndpointEmbedder",
    "EndpointState",
    "FinishReason",
    "Meter",
    "MeterReport",
    "MeteredModel",
    "ModelRequest",
    "NgramEmbedder",
    "OpenAIModel",
    "OutageHook",
    "Price",
    "PriceBook",
    "ReplyCache",
    "RetryPolicy",
    "RoleUse",
    "ScriptedModel",
    "TransportStats",
]
