"""Arguments made from a schema and a state: valid ones, and wrong ones in named ways. Deterministic per generator."""

from envscaler.probe.invalid import WrongKind, wrong_arguments
from envscaler.probe.valid import valid_arguments

__all__ = ["WrongKind", "valid_arguments", "wrong_arguments"]
