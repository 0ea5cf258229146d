"""`RollEnv`: a gem environment with what ROLL's env managers read besides: messages, metrics, and one way to end.

It needs gem, not ROLL itself; `roll` has what does.
"""

from __future__ import annotations

import math
import re
from typing import Any

from envscaler.adapters.gem import GemEnv
from envscaler.adapters.text import TextStep

ENTRY_POINT = f"{__name__}:RollEnv"

_END_TOKENS = re.compile(r"(?:\s*(?:<\|[A-Za-z_]+\|>|</s>))+\s*\Z")


class RollEnv(GemEnv):
    """Observations are the conversation; replies come with the control tokens that ended them."""

    def __init__(self, library: str, env_ids: Any = None, **settings: Any) -> None:
        super().__init__(library, env_ids, **{"observations": "messages", "on_failure": "truncate", **settings})
        self.env_timeout = False
        self.unrewarded: str | None = None
        """Why the episode that ended has no reward, and must be dropped; None while it has one."""

    def reset(self, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        observation, info = super().reset(seed, options)
        self.unrewarded = info.get("infrastructure")
        return observation, {**info, "error_msg": self.unrewarded or "", "failure_mode": self.unrewarded or ""}

    def step(self, action: Any) -> TextStep:
        if isinstance(action, str):
            action = _END_TOKENS.sub("", action)
        observation, reward, terminated, truncated, info = super().step(action)
        if math.isnan(reward):
            self.unrewarded = info.get("infrastructure", "no check says anything in this reward mode")
        over = terminated or truncated
        metrics: dict[str, Any] = {
            "env_timeout": self.env_timeout,
            "env_reset_failed": self.env_reset_failed,
            "action_is_valid": not info["is_error"],
        }
        if over and self.unrewarded is None:
            metrics |= {"success": bool(info.get("solved")), "raw_reward": reward}
        info |= {
            "metrics": metrics,
            "metrics_agg_mode": {"success": "last", "raw_reward": "last", "action_is_valid": "mean"},
            "failure_mode": self.unrewarded or "",
            "error_messages": [self.unrewarded] if self.unrewarded else [],
        }
        # Its managers look at `terminated` alone.
        return observation, reward, over, truncated, info
