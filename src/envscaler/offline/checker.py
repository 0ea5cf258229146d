"""The checking agent: compares what a call did with what the blueprint says it should have done."""

from __future__ import annotations

from envscaler.offline.blueprint import Blueprint
from envscaler.roles.types import JudgeCallInputs, JudgeCallReply


def judge_call(blueprint: Blueprint | None, inputs: JudgeCallInputs) -> JudgeCallReply:
    """The verdict on one call; without a blueprint, or for a tool that is not in it, general rules decide."""
    raise NotImplementedError
