"""Answers the scenario writer's roles: task with plan, checklist, check functions, which agree with each other."""

from __future__ import annotations

from envscaler.offline.blueprint import Blueprint
from envscaler.roles.types import (
    CodeReply,
    WriteCheckInputs,
    WriteChecklistInputs,
    WriteChecklistReply,
    WriteTaskInputs,
    WriteTaskReply,
)


def write_task(blueprint: Blueprint, inputs: WriteTaskInputs) -> WriteTaskReply:
    """P_task: a task that can be carried out from the state, its plan, and what a simulated user knows.

    Raises:
        ReplyError: if no operation of the blueprint can succeed in the state.
    """
    raise NotImplementedError


def write_checklist(blueprint: Blueprint, inputs: WriteChecklistInputs) -> WriteChecklistReply:
    """P_check: what must hold of the final state.

    Raises:
        ReplyError: if the task is not one that `write_task` makes of this state.
    """
    raise NotImplementedError


def write_check(blueprint: Blueprint, inputs: WriteCheckInputs) -> CodeReply:
    """P_func: the check function of one item of that checklist.

    Raises:
        ReplyError: if task or item are not of our making.
    """
    raise NotImplementedError
