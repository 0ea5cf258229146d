"""Benchmarks lie where those of `tests/bench/contract` do."""

from bench.contract.conftest import place

__all__ = ["place"]
