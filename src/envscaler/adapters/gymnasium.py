"""Environments for Gymnasium: `gymnasium.make("envscaler/<library>.<environment>")`, with texts as spaces.

    from envscaler.adapters.gymnasium import register

    register("library", name="desk")
    env = gymnasium.make("envscaler/desk.lending-desk", reward="gained")

Needs the extra `gymnasium`. How an episode is played with text is `text`'s business.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.spaces import Text

from envscaler.adapters.sources import Source, name_library, named_libraries
from envscaler.adapters.text import TextEnv, TextStep

PREFIX = "envscaler"

_ENTRY_POINT = f"{__name__}:GymnasiumEnv"


class AnyText(Text):  # type: ignore[misc]  # not there where types are checked
    """Every text, in whatever characters and of whatever length."""

    def __init__(self) -> None:
        super().__init__(max_length=80)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)


class GymnasiumEnv(gymnasium.Env):  # type: ignore[misc]  # not there where types are checked
    """A `gymnasium.Env` around `envscaler.adapters.text.TextEnv`, with the same settings."""

    metadata: dict[str, Any] = {"render_modes": []}

    def __init__(self, library: str | os.PathLike[str], env_ids: Any = None, **settings: Any) -> None:
        self.text_env = TextEnv(library, env_ids, **settings)
        self.observation_space = AnyText()
        self.action_space = AnyText()

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return self.text_env.reset(seed, options)

    def step(self, action: str) -> TextStep:
        return self.text_env.step(action)

    def close(self) -> None:
        self.text_env.close()


def register(library: str | os.PathLike[str], *, name: str | None = None, **settings: Any) -> tuple[str, ...]:
    """Register a library: `envscaler/<name>` for all of it and `envscaler/<name>.<id>` for each environment.

    What was registered under the same name before is replaced. Environments that are held out from training are left
    out, unless `held_out=True` is among the settings.

    Args:
        library: its folder.
        name: None: the folder's.
        settings: of `TextEnv`; `gymnasium.make` may give others.

    Returns:
        The ids.

    Raises:
        UsageError: if there is no such library, or nothing in it to play.
    """
    name = name_library(library, name)
    folder = str(named_libraries()[name])
    shared = f"{PREFIX}/{name}"
    for known in [known for known in gymnasium.registry if known == shared or known.startswith(f"{shared}.")]:
        del gymnasium.registry[known]
    ids = {shared: None} | {
        f"{shared}.{env_id}": env_id for env_id in Source.of(folder, held_out=bool(settings.get("held_out"))).choice()
    }
    for known, env_id in ids.items():
        # Its order enforcer and checker stay on; its own step limit would hide from the environment that it is over.
        gymnasium.register(known, _ENTRY_POINT, kwargs={"library": folder, "env_ids": env_id, **settings})
    return tuple(ids)
