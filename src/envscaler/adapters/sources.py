"""`Source`: where an adapter's environments come from, as text that other processes understand, and what it gives.

Trainers make environments in many processes from ids and settings; so a library is named by its folder, or by a name
that stands for one, and is opened once in each process.
"""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from envscaler.env import Library, ToolEnv, open_library
from envscaler.errors import SandboxError, UsageError
from envscaler.sandbox import Isolation
from envscaler.store import held_out

log = logging.getLogger(__name__)

LIBRARIES = "ENVSCALER_LIBRARIES"
"""Environment variable that names libraries: `desk=/path/to/library`, several separated by `;`."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")

_named: dict[str, Path] = {}
_opened: dict[tuple[int, Path, Isolation], Library] = {}
_opening = threading.Lock()


def name_library(path: str | os.PathLike[str], name: str | None = None) -> str:
    """Have a name stand for a library in ids, in this process; gives the name.

    Args:
        name: letters, digits and `_.-`; None: the folder's, other characters replaced.

    Raises:
        UsageError: if the name cannot be part of an id.
    """
    folder = Path(path).resolve()
    name = name if name is not None else re.sub(r"[^A-Za-z0-9_.-]+", "-", folder.name).strip("-._")
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot name a library in an id; give letters, digits and _ . - only")
    _named[name] = folder
    return name


def named_libraries(environ: Mapping[str, str] | None = None) -> dict[str, Path]:
    """The libraries that have names: those of `ENVSCALER_LIBRARIES`, then those of `name_library`.

    Raises:
        UsageError: if the variable does not say `name=path`.
    """
    found: dict[str, Path] = {}
    for part in (environ if environ is not None else os.environ).get(LIBRARIES, "").split(";"):
        name, equals, path = part.strip().partition("=")
        if not part.strip():
            continue
        if not equals or not path or not _NAME.fullmatch(name):
            raise UsageError(f"{LIBRARIES} says {part.strip()!r}; write name=path, several separated by ;")
        found[name] = Path(path)
    return found | _named


@dataclass(frozen=True)
class Source:
    """A library, and which of its environments are meant. Can be pickled."""

    library: str
    """A name that stands for a library, or its folder."""
    env_ids: tuple[str, ...] | None = None
    """None: all that may be trained on."""
    held_out: bool = False
    """Whether environments that are held out from training are given as well, to measure on."""
    isolation: Isolation = "default"

    @classmethod
    def of(
        cls,
        library: str | os.PathLike[str],
        env_ids: tuple[str, ...] | None = None,
        *,
        held_out: bool = False,
        isolation: Isolation = "default",
    ) -> Source:
        """The source, looked at: a folder is written out in full, so that it is found from any other folder.

        Raises:
            UsageError: if there is no such library, no such environment in it, or none that may be trained on.
        """
        text = os.fspath(library)
        if text not in named_libraries():
            text = str(Path(text).resolve())
        source = cls(text, env_ids, held_out, isolation)
        source.choice()
        return source

    def open(self) -> Library:
        """The library, shared by everything in this process that plays in it."""
        folder = (named_libraries().get(self.library) or Path(self.library)).resolve()
        # After a fork the parent's sandbox is of no use.
        place = (os.getpid(), folder, self.isolation)
        with _opening:
            library = _opened.get(place)
            if library is None or library.closed:
                library = _opened[place] = open_library(folder, isolation=self.isolation)
            return library

    def choice(self) -> tuple[str, ...]:
        """The ids of the environments that are meant and have scenarios, sorted where none were named.

        Raises:
            UsageError: if one that is named is held out or has no scenarios, or if there is none at all.
        """
        library = self.open()
        kept_back = frozenset() if self.held_out else held_out(library.store)
        if self.env_ids is not None:
            for env_id in self.env_ids:
                library.scenario(env_id)
                if env_id in kept_back:
                    raise UsageError(
                        f"{env_id} is held out from training in {library.path}; say held_out=True to measure on it"
                    )
            return self.env_ids
        found = tuple(
            env_id for env_id in library.env_ids if env_id not in kept_back and _has_scenarios(library, env_id)
        )
        if not found:
            raise UsageError(f"{library.path} has no environment with scenarios that may be trained on")
        return found


def _has_scenarios(library: Library, env_id: str) -> bool:
    # Reading one line will do; every worker of a trainer asks this of every environment.
    return next(iter(library.store.scenarios(env_id, lambda problem: None)), None) is not None


def leave(env: ToolEnv | None) -> None:
    """End an episode that is over: its reward is known, so that a failure now is only told."""
    if env is not None:
        try:
            env.close()
        except SandboxError as error:
            log.warning("%s: a session could not be closed: %s", env.skeleton.id, error)
