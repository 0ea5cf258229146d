"""No command writes where a library or a run keeps files of its own, or replaces a file that is somebody else's.

What a library or a run consists of is the business of `library` and `run`.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from envscaler.errors import StoreError

INDEX = "library.json"
ENVIRONMENTS = "environments"
CACHE = ".cache"
ROLLOUTS = "rollouts"
RUN = "run.json"
TRAJECTORIES = "trajectories.jsonl"
LOCK = ".lock"
REPLIES = ".replies"


def is_library(path: Path) -> bool:
    """Whether a folder is that of a library."""
    return (path / INDEX).is_file()


def is_run(path: Path) -> bool:
    """Whether a folder has anything of a run."""
    return (path / RUN).is_file() or (path / TRAJECTORIES).is_file()


def require_free(path: Path | str, *, folder: bool = False) -> None:
    """
    Args:
        folder: whether a folder of many files is to be made there, which cannot lie in a run, nor be a library or
            the folder of its runs.

    Raises:
        StoreError: if a library or a run keeps its own files there.
    """
    place = Path(os.path.realpath(path))
    for holder in place.parents:
        inside = place.relative_to(holder).parts
        if is_library(holder) and inside[0] in (INDEX, ENVIRONMENTS, CACHE):
            raise StoreError(f"{path} is where the library {holder} keeps files of its own; name another place")
        if is_run(holder) and (folder or inside[0] in (RUN, TRAJECTORIES, LOCK)):
            raise StoreError(f"{path} is where the run {holder} keeps files of its own; name another place")
        if folder and is_library(holder) and inside == (ROLLOUTS,):
            raise StoreError(f"{path} is the folder of all runs of the library {holder}; name one in it")
    if folder and is_library(place):
        raise StoreError(f"{path} is a library; name another folder")


def require_replaceable(path: Path | str, is_ours: Callable[[Path], bool]) -> None:
    """
    Args:
        is_ours: whether a file was written by an earlier command of the same kind.

    Raises:
        StoreError: if a library or a run keeps its own files there, or there is a file of somebody else's.
    """
    require_free(path)
    place = Path(path)
    try:
        foreign = place.is_file() and place.stat().st_size > 0 and not is_ours(place)
    except OSError:
        return  # whatever is wrong is told when it is written
    if foreign:
        raise StoreError(f"{path} is there, and was not written by this command; name another file, or remove it")


def begins_with(path: Path, mark: str, within: int = 2000) -> bool:
    """Whether a text stands in the first bytes of a file."""
    with path.open("rb") as file:
        return mark.encode() in file.read(within)
