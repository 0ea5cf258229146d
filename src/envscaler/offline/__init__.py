"""The embedded rule-based model: a procedural generator that answers every role, not a language model."""

from envscaler.offline.model import WHAT_IT_IS, OfflineModel

__all__ = ["WHAT_IT_IS", "OfflineModel"]
