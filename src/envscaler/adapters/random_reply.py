"""`random_reply`: what an agent that draws would write, for trainers that ask an environment for an action."""

from __future__ import annotations

import random

from envscaler.agents.dialects import TextDialect
from envscaler.env import ToolEnv
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.probe import valid_arguments

_FINAL = "That is all."
_FINAL_SHARE = 0.1


def random_reply(env: ToolEnv, dialect: TextDialect, rng: random.Random | None = None) -> str:
    """A reply in the dialect: mostly a call that the tool's schema and the present state allow, else a final message.

    Args:
        rng: None: one that nobody can repeat.
    """
    rng = rng if rng is not None else random.Random()
    if not env.tools or rng.random() < _FINAL_SHARE:
        return _FINAL
    tool = rng.choice(env.tools)
    call = ToolCall(name=tool.name, arguments=valid_arguments(tool, env.state(), env.skeleton.entities, rng))
    return dialect.text_of(AssistantMessage(tool_calls=(call,)), {tool.name: tool for tool in env.tools})
