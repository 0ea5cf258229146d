"""`split_of`: which split an environment is in, as library.json says. How splits are drawn is `curate`'s business.

Splits are of environments, never of single scenarios or episodes: what was learned in one scenario of an environment
helps in the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from envscaler.store.library import LibraryStore

TRAIN = "train"
"""The one split that may be trained on; every other one is held out."""


def split_of(library: LibraryStore, env_id: str) -> str | None:
    """The split of an environment; None: it is in none, and may be trained on.

    Raises:
        StoreError: if library.json cannot be read.
    """
    return splits_of(library).get(env_id)


def splits_of(library: LibraryStore) -> dict[str, str]:
    """The split of each environment that is in one.

    Raises:
        StoreError: if library.json cannot be read.
    """
    return by_environment(library.read_index().splits)


def held_out(library: LibraryStore) -> frozenset[str]:
    """The environments that nothing may train on.

    Raises:
        StoreError: if library.json cannot be read.
    """
    return frozenset(env_id for env_id, split in splits_of(library).items() if split != TRAIN)


def by_environment(splits: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The split of each environment. One that stands in several is held out: its scenarios disagree."""
    return {env_id: split for split in sorted(splits, key=lambda name: name != TRAIN) for env_id in splits[split]}
