"""Rows in the form of the paper's authors' SFT set, which their own scripts and `import released` read.

Source: the published SFT trajectories; the authors' sft/ scripts.
"""

from __future__ import annotations

from envscaler.export.formats.layout import SftFormat, json_of
from envscaler.export.messages import Chat, Row, chat_of
from envscaler.released import published_trajectory
from envscaler.trajectory import Trajectory

_TYPES = {"conversation": "conv", "non-conversation": "non_conv"}
_STRINGS = ("tools", "messages", "user_messages")


def _row(chat: Chat, trajectory: Trajectory) -> Row:
    kept = trajectory.released or {}
    if kept.get("form") == "flat":
        # The other published form has no messages.
        kept, trajectory = {}, trajectory.model_copy(update={"released": None})
    entry = published_trajectory(trajectory, None, None)
    native = chat_of(trajectory)
    imported = (kept.get("fields") or {}).get("messages")
    messages = [
        # Their script puts the reasoning of every reply back into its text, also where there is none.
        {"reasoning_content": "", **message} if message["role"] == "assistant" else message
        for message in (imported if isinstance(imported, list) else native.messages)
    ]
    row = {
        "traj_type": _TYPES[trajectory.mode],
        **entry,
        "tools": list(native.tools),
        "messages": messages,
        # Readers take anything but an empty list for a conversation.
        "user_messages": entry.get("user_messages") or [],
    }
    return {
        name: json_of(part) if name in _STRINGS and not isinstance(part, str) else part for name, part in row.items()
    }


RELEASED = SftFormat(
    name="released",
    summary="The trajectory form of the paper's authors' SFT set.",
    row=_row,
    columns={
        "traj_type": "string",
        "task_info": {"env_id": "string", "task_id": "string", "task": "string"},
        "tools": "string",
        "messages": "string",
        "user_messages": "string",
        "trajectory": "json",
        "total_reward": "float64",
        "terminated": "bool",
        "truncated": "bool",
        "steps": "int64",
    },
    cut=False,
    structured=True,
    as_list=True,
)
