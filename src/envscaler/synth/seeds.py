"""Seeds of parts from the seed of the whole. What is drawn with them is the drawer's business."""

from __future__ import annotations

from hashlib import blake2b

from envscaler.state import encode


def derived_seed(seed: int, *parts: str | int) -> int:
    """A seed of 32 bits that depends on `seed` and on every part, and on nothing else."""
    return int.from_bytes(blake2b(encode([seed, *parts]), digest_size=4).digest(), "big")
