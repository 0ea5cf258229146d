"""Tells what a path on the command line names: a library, an environment, a scenario, or a run.

`LIBRARY/ENV/SCENARIO` is a name, not a path of files; the folders of a library (`environments/…`, `rollouts/…`) are
taken as well, because shells complete them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.errors import StoreError, UsageError

if TYPE_CHECKING:
    from envscaler.env.library import Library
    from envscaler.sandbox import Isolation
    from envscaler.scenario import Scenario
    from envscaler.store import RunStore


@dataclass(frozen=True)
class Place:
    """A library with what the rest of the path names in it, or a run."""

    library: Path | None = None
    env_id: str | None = None
    scenario: str | None = None
    run: Path | None = None


def locate(text: str) -> Place:
    """What `text` names.

    Raises:
        StoreError: if there is neither a library nor a run on the path.
    """
    if not text:
        raise UsageError("an empty name was given; name the folder of a library or a run")
    path = run_folder(Path(text))
    if _is_run(path):
        return Place(run=path)
    for folder in (path, *path.parents):
        if (folder / "library.json").is_file():
            rest = path.relative_to(folder).parts
            break
        if _is_run(folder):
            raise StoreError(f"{text}: {folder} is a run; name an episode of it as a second argument")
    else:
        raise StoreError(f"{text}: {_why_not(path)}")
    if rest[:1] == ("rollouts",) and len(rest) > 1:
        raise StoreError(f"{text}: {folder} has no run {rest[1]!r}{_runs(folder)}")
    if rest[:1] == ("environments",):
        rest = rest[1:]
    if len(rest) > 2:
        raise UsageError(f"{text}: give LIBRARY, LIBRARY/ENV or LIBRARY/ENV/SCENARIO")
    return Place(library=folder, env_id=rest[0] if rest else None, scenario=rest[1] if len(rest) == 2 else None)


def run_folder(path: Path) -> Path:
    """The run whose own file was named, since whoever names it means the run; else the path as it is."""
    own = path.name in ("trajectories.jsonl", "run.json") and path.is_file()
    return path.parent if own else path


def locate_environment(text: str, *, command: str) -> Place:
    """What `text` names, where an environment must be named.

    Raises:
        UsageError: if it names only a library, or a run.
    """
    place = locate(text)
    if place.env_id is None:
        raise UsageError(f"{text} names no environment; give {command} LIBRARY/ENV (envscaler show lists them)")
    return place


def locate_library(text: str) -> Place:
    """What `text` names, where a library or an environment must be named.

    Raises:
        UsageError: if it names a run or a scenario.
    """
    place = locate(text)
    if place.library is None:
        raise UsageError(f"{text} is a run; give a library")
    if place.scenario is not None:
        raise UsageError(f"{text} names a scenario; give LIBRARY or LIBRARY/ENV")
    return place


def locate_run(text: str) -> Path:
    """The folder of the run that `text` names.

    Raises:
        UsageError: if it names something else.
    """
    place = locate(text)
    if place.run is None:
        raise UsageError(f"{text} is a library; give one of its runs (LIBRARY/rollouts/…)")
    return place.run


def scenario_of(library: Library, env_id: str, which: str | None) -> Scenario:
    """The scenario that a user named by index or id; the first one when none was named."""
    # Not `isdigit`, which takes digits that `int` does not.
    index = which is not None and which.removeprefix("-").isdecimal()
    return library.scenario(env_id, int(which) if index and which is not None else which)


def library_of_run(run: RunStore, isolation: Isolation = "default") -> Library | None:
    """The library that a run played: the one that it lies in, else the one that its record names."""
    from envscaler.env.library import open_library
    from envscaler.rollout import RunRecord

    inside = run.path.resolve().parent.parent
    record = run.read_run(RunRecord)
    named = record.library if record is not None else None
    for folder in (inside, named):
        if folder is not None and (folder / "library.json").is_file():
            return open_library(folder, isolation=isolation)
    return None


def _is_run(path: Path) -> bool:
    return (path / "run.json").is_file() or (path / "trajectories.jsonl").is_file()


def _runs(library: Path) -> str:
    folder = library / "rollouts"
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_dir()) if folder.is_dir() else []
    return f"; it has {', '.join(names[:5])}{', …' if len(names) > 5 else ''}" if names else "; it has no runs yet"


def _why_not(path: Path) -> str:
    if not path.exists():
        return "there is no such library or run; `envscaler synth TASKS --library DIR` makes a library"
    if path.is_file():
        return "this is a file; give the folder of a library or a run"
    return "this folder is neither a library (library.json) nor a run (trajectories.jsonl)"
