"""Environments for gem (`gem-llm`), and for what builds on it: `gem.make("envscaler/<library>/<environment>")`.

    from envscaler.adapters.gem import register

    register("library", name="desk")                     # or ENVSCALER_LIBRARIES="desk=library" and only the import
    env = gem.make("envscaler/desk/lending-desk", reward="gained")
    env = gem.make("envscaler/desk")                     # all environments of the library

Needs the extra `gem`. How an episode is played with text is `text`'s business.
"""

from __future__ import annotations

import os
from typing import Any

import gem
from gem.envs.registration import ENV_REGISTRY

from envscaler.adapters.random_reply import random_reply
from envscaler.adapters.sources import Source, name_library, named_libraries
from envscaler.adapters.text import TextEnv

PREFIX = "envscaler"

_ENTRY_POINT = f"{__name__}:GemEnv"


class GemEnv(TextEnv, gem.Env):  # type: ignore[misc]  # gem has no types
    """A `gem.Env` of `envscaler.adapters.text.TextEnv`."""

    def sample_random_action(self) -> str:
        """The text of a call that fits a tool's schema and the state, or now and then of a final message."""
        return random_reply(self.env, self._dialect)


def register(
    library: str | os.PathLike[str], *, name: str | None = None, entry_point: str = _ENTRY_POINT, **settings: Any
) -> tuple[str, ...]:
    """Register a library with gem: `envscaler/<name>` for all of it and `envscaler/<name>/<id>` for each environment.

    What was registered under the same name before is replaced. Environments that are held out from training are left
    out, unless `held_out=True` is among the settings.

    Args:
        library: its folder.
        name: None: the folder's.
        entry_point: `module:class` of another class of environments.
        settings: of `TextEnv`; `gem.make` may give others.

    Returns:
        The ids.

    Raises:
        UsageError: if there is no such library, or nothing in it to play.
    """
    name = name_library(library, name)
    # The folder, not the name: workers of a trainer know only what they are given.
    folder = str(named_libraries()[name])
    env_ids = Source.of(folder, held_out=bool(settings.get("held_out"))).choice()
    shared = f"{PREFIX}/{name}"
    for known in [known for known in ENV_REGISTRY if known == shared or known.startswith(f"{shared}/")]:
        del ENV_REGISTRY[known]
    gem.register(shared, entry_point, library=folder, **settings)
    for env_id in env_ids:
        gem.register(f"{shared}/{env_id}", entry_point, library=folder, env_ids=env_id, **settings)
    return (shared, *(f"{shared}/{env_id}" for env_id in env_ids))


def register_named(entry_point: str = _ENTRY_POINT) -> None:
    """Register the libraries that `ENVSCALER_LIBRARIES` names.

    Raises:
        UsageError: if the variable cannot be read, or names something that is no library.
    """
    for name, folder in named_libraries().items():
        register(folder, name=name, entry_point=entry_point)


register_named()
