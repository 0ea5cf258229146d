"""The embedded rule-based model: a procedural generator that answers every role, not a language model."""
