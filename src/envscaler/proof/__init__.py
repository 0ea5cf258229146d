"""Tries the checks of a scenario without a model: no-op, solution, mutants, over-edits, equally right ways."""

from envscaler.proof.prove import METHOD, Examined, examine, is_stale, prove, solution_digest

__all__ = ["METHOD", "Examined", "examine", "is_stale", "prove", "solution_digest"]
