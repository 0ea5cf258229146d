"""Arguments made from a schema and a state: valid ones, and wrong ones in named ways. Deterministic per generator."""

from envscaler.probe.detours import (
    PlannedCall,
    between,
    mistaken,
    planned,
    random_look_ups,
    told_look_ups,
)
from envscaler.probe.invalid import WrongKind, spoiled_arguments, wrong_arguments
from envscaler.probe.valid import valid_arguments

__all__ = [
    "PlannedCall",
    "WrongKind",
    "between",
    "mistaken",
    "planned",
    "random_look_ups",
    "spoiled_arguments",
    "told_look_ups",
    "valid_arguments",
    "wrong_arguments",
]
