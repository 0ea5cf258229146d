"""Environments for ROLL: its `custom_envs` make them through gem, and its env managers play them with messages.

Name `env_manager_cls: envscaler.adapters.roll.EnvManager` in the YAML: every worker of ROLL imports that class before
it makes environments, and so registers the libraries of `ENVSCALER_LIBRARIES`. Needs ROLL, which is no package on an
index. How an episode is played is `text`'s business.
"""

from __future__ import annotations

from typing import Any

from roll.pipeline.agentic.env_manager.agent_native_env_manager import AgentNativeStepEnvManager

from envscaler.adapters.gem import register_named
from envscaler.adapters.roll_env import ENTRY_POINT

register_named(ENTRY_POINT)


class EnvManager(AgentNativeStepEnvManager):  # type: ignore[misc]  # ROLL has no types
    """ROLL's manager of environments that speak in messages, but for episodes that have no reward.

    Those that the machinery cut short are handed on as placeholders that ROLL drops, as it does when a reset failed:
    it knows no way to say so of an episode that had begun, and would take the sum of its rewards.
    """

    def formulate_rollouts(self, rollout_cache: Any) -> Any:
        if self.env.unrewarded is None:
            return super().formulate_rollouts(rollout_cache)
        self.failure_mode = self.env.unrewarded
        rollout = self.create_placeholder_rollout(self.episode_id)
        rollout.meta_info["drop_flag"] = True
        return rollout
