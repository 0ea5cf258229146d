"""Rows for TRL (and Unsloth, and OpenAI's fine-tuning): messages with tools, or a prompt with its completion.

Source: TRL 1.16, SFTTrainer's dataset formats.
"""

from __future__ import annotations

from envscaler.export.formats.layout import SftFormat, require_all_learned
from envscaler.export.messages import Chat, Row
from envscaler.trajectory import Trajectory


def _messages(chat: Chat, trajectory: Trajectory) -> Row:
    require_all_learned(chat, "trl")
    return {"messages": list(chat.messages), "tools": list(chat.tools)}


def _prompt_completion(chat: Chat, trajectory: Trajectory) -> Row:
    first = (chat.learned or chat.turns)[0]
    return {
        "prompt": list(chat.messages[:first]),
        "completion": list(chat.messages[first:]),
        "tools": list(chat.tools),
    }


TRL = SftFormat(
    name="trl",
    summary="`messages` and `tools` as TRL, Unsloth and OpenAI's fine-tuning read them; use assistant_only_loss.",
    row=_messages,
    columns={"messages": ["json"], "tools": ["json"]},
)
TRL_PROMPT_COMPLETION = SftFormat(
    name="trl-prompt-completion",
    summary="`prompt`, `completion` and `tools`: a row for each turn of the agent, fewer where --template allows it.",
    row=_prompt_completion,
    columns={"prompt": ["json"], "completion": ["json"], "tools": ["json"]},
    splitting="stretches",
)
