"""The testing agent: makes arguments that should succeed, or that are wrong in exactly one way."""

from __future__ import annotations

from envscaler.offline.blueprint import Blueprint
from envscaler.roles.types import TestCallInputs, TestCallReply


def make_test_call(blueprint: Blueprint | None, inputs: TestCallInputs) -> TestCallReply:
    """One test call of `inputs.tool`; without a blueprint it is made from the tool's schema and the state."""
    raise NotImplementedError
