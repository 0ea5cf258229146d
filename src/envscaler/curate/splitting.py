"""`split_library`: which environments are trained on and which are held out, written into the library.

What is in a split stays there: environments that come later are added to the splits, and nothing moves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor
from pathlib import Path

from envscaler.errors import ProgramError, UsageError
from envscaler.program.structure import structure_signature
from envscaler.record import Record
from envscaler.rollout.settings import Folder
from envscaler.skeleton import EnvSkeleton
from envscaler.state import text_digest
from envscaler.store import LibraryStore, splits_of
from envscaler.store.splits import TRAIN

_SIZES = (12, 20)
"""Tools from which on an environment is of middle size, and large: thirds of the paper's environments, about."""


class SplitReport(Record):
    """What is in which split."""

    library: Folder
    splits: dict[str, tuple[str, ...]]
    """The ids in each."""
    added: int
    """Environments that had none before."""
    kept: int
    """Environments that stay where they were."""


def parse_ratio(text: str) -> dict[str, float]:
    """The share of each split, of `train=0.9,test=0.1`; shares are made to add up to 1.

    Raises:
        UsageError: if it cannot be read so.
    """
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not (equals and name.isidentifier() and 0 < share < float("inf")) or name in shares:
            raise UsageError(f"--ratio {text}: write NAME=SHARE,NAME=SHARE, such as train=0.9,test=0.1")
        shares[name] = share
    if len(shares) < 2:
        raise UsageError(f"--ratio {text}: name two splits or more, such as train=0.9,test=0.1")
    whole = sum(shares.values())
    return {name: share / whole for name, share in shares.items()}


def split_library(library: Path, ratio: Mapping[str, float], *, seed: int = 0, redraw: bool = False) -> SplitReport:
    """Put every environment that is in no split into one.

    Environments whose programs are equal but for names go together, since whoever knows one knows the other. They are
    spread evenly over languages and sizes.

    Args:
        ratio: share of each split; they add up to 1.
        redraw: draw all anew. What was held out may then be trained on.

    Raises:
        UsageError: for a library without environments, or if there are fewer of them than splits.
        StoreError: if the library cannot be read or written.
    """
    store = LibraryStore.open(library)
    with store.writing():
        before = {} if redraw else splits_of(store)
        ids = store.env_ids()
        if not ids:
            raise UsageError(f"{library} has no environments to be split")
        other = sorted(set(before.values()) - set(ratio))
        if other:
            raise UsageError(
                f"{library} has the split {other[0]!r}, of which --ratio says nothing; name it, or draw all anew with "
                "--redraw"
            )
        groups = _groups([store.read_environment(env_id) for env_id in ids], seed)
        if len(groups) < len(ratio):
            raise UsageError(
                f"{library} has too few environments for {len(ratio)} splits: {len(groups)} of different structure"
            )
        chosen = _drawn(groups, ratio, before)
        splits: dict[str, list[str]] = {name: [] for name in ratio}
        for env_id, name in {**before, **chosen}.items():
            splits[name].append(env_id)
        store.write_splits(splits)
    return SplitReport(
        library=library,
        splits={name: tuple(sorted(members)) for name, members in splits.items()},
        added=len(chosen.keys() - before.keys()),
        kept=len(set(ids) & before.keys()),
    )


def _groups(skeletons: Sequence[EnvSkeleton], seed: int) -> list[tuple[str, ...]]:
    """Ids of environments that go together, in the order in which they are dealt out."""
    members: dict[str, list[EnvSkeleton]] = {}
    for skeleton in skeletons:
        members.setdefault(_signature(skeleton), []).append(skeleton)

    def place(group: Sequence[EnvSkeleton]) -> tuple[str, str]:
        first = min(group, key=lambda skeleton: skeleton.id)
        size = sum(len(first.tools) >= bound for bound in _SIZES)
        stratum = f"{first.origin.language}/{size}"
        # One after the other of a stratum, so that shares are kept in each; which comes first is drawn.
        return text_digest(f"{seed}/{stratum}"), text_digest(f"{seed}/{first.id}")

    ordered = sorted(members.values(), key=place)
    return [tuple(sorted(skeleton.id for skeleton in group)) for group in ordered]


def _signature(skeleton: EnvSkeleton) -> str:
    try:
        return structure_signature(skeleton)
    except ProgramError:
        return skeleton.digest


def _drawn(groups: Sequence[tuple[str, ...]], ratio: Mapping[str, float], before: Mapping[str, str]) -> dict[str, str]:
    """The split of each environment that has none yet."""
    counts = dict.fromkeys(ratio, 0)
    chosen: dict[str, str] = {}
    open_groups = []
    for group in groups:
        # A copy of what is held out is held out with it.
        known = sorted({before[env_id] for env_id in group if env_id in before}, key=lambda name: name == TRAIN)
        if known:
            counts[known[0]] += 1
            chosen |= {env_id: known[0] for env_id in group if env_id not in before}
        else:
            open_groups.append(group)
    wanted = {name: max(0, number - counts[name]) for name, number in _quotas(len(groups), ratio).items()}
    whole = sum(wanted.values())
    dealt = dict.fromkeys(ratio, 0)
    for number, group in enumerate(open_groups, start=1):
        # Each in turn to the split that lags behind most: every stretch of the order has its share of each.
        name = max(
            (split for split in ratio if dealt[split] < wanted[split]),
            key=lambda split: (wanted[split] * number / whole - dealt[split], -wanted[split], split),
        )
        dealt[name] += 1
        chosen |= dict.fromkeys(group, name)
    return chosen


def _quotas(number: int, ratio: Mapping[str, float]) -> dict[str, int]:
    """How many of a number belong in each split: at least one, else by share, the rest to the largest remainders."""
    exact = {name: share * number for name, share in ratio.items()}
    quotas = {name: max(1, floor(share + 1e-9)) for name, share in exact.items()}
    while sum(quotas.values()) < number:
        name = max(quotas, key=lambda split: (exact[split] - quotas[split], split))
        quotas[name] += 1
    while sum(quotas.values()) > number:
        several = (split for split in quotas if quotas[split] > 1)
        name = max(several, key=lambda split: (quotas[split] - exact[split], quotas[split], split))
        quotas[name] -= 1
    return quotas
