"""Draws the coverage map of a library as PNG: where its environments lie, and how large they are beside the paper's.

What is drawn is `coverage`'s business. matplotlib is imported only here, when a map is asked for.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from envscaler.errors import UsageError
from envscaler.report.coverage import Coverage, Extent
from envscaler.report.wording import shortened, visible
from envscaler.store import begins_with, require_replaceable, write_atomic

_SOFTWARE = "envscaler stats --map"
_LABELLED = 40
"""Environments that are named on the map at most; more names would cover one another."""


def require_drawing(path: Path) -> None:
    """
    Raises:
        UsageError: if matplotlib is missing.
        StoreError: if the file is somebody else's.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError(
            "--map draws with the package matplotlib: pip install 'envscaler[plots]'; --map-data needs no package"
        ) from error
    require_replaceable(path, lambda place: begins_with(place, _SOFTWARE))


def write_map(path: Path, coverage: Coverage) -> None:
    """Draw the map.

    Raises:
        UsageError: if matplotlib is missing.
        StoreError: if the file cannot be written, or is somebody else's.
    """
    require_drawing(path)
    # A figure of its own, without pyplot: no window, and nothing that outlives it.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 8), layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(2.2, 1))
    _draw_places(figure.add_subplot(grid[:, 0]), coverage)
    for row, extent in enumerate(coverage.extents):
        _draw_extent(figure.add_subplot(grid[row, 1]), extent)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png", dpi=130, metadata={"Software": _SOFTWARE})
    write_atomic(path, drawn.getvalue())


def _draw_places(axes: Any, coverage: Coverage) -> None:
    from matplotlib import colormaps

    groups = Counter(one.group for one in coverage.environments)
    for index, (group, size) in enumerate(groups.items()):
        members = [one for one in coverage.environments if one.group == group]
        axes.scatter(
            [one.x for one in members],
            [one.y for one in members],
            s=36,
            alpha=0.8,
            color=colormaps["tab10"](index % 10),
            label=_plain(f"{shortened(group, 32)} ({size})"),
        )
    if len(coverage.environments) <= _LABELLED:
        for one in coverage.environments:
            text = _plain(shortened(one.summary, 30))
            axes.annotate(text, (one.x, one.y), fontsize=7, xytext=(4, 3), textcoords="offset points")
    shares = " and ".join(f"{share:.0%}" for share in coverage.explained)
    axes.set_title(_plain(f"{coverage.library}: {len(coverage.environments)} environments"))
    axes.set_xlabel(f"Descriptions ({coverage.embedding}), two components: {shares} of the variance")
    axes.set_xticks([])
    axes.set_yticks([])
    axes.legend(title="around", fontsize=7, title_fontsize=7, loc="best", framealpha=0.7)


def _draw_extent(axes: Any, extent: Extent) -> None:
    most = max(extent.values, default=0)
    step = max(1, -(-(most + 1) // 25))
    axes.hist(extent.values, bins=np.arange(0, most + 2 * step, step) - 0.5, color="#4878a8")
    mean = float(np.mean(extent.values))
    axes.axvline(mean, color="#22405c", label=f"mean {mean:.1f}")
    if extent.paper_mean is not None:
        axes.axvline(extent.paper_mean, color="#c44e52", linestyle="--", label=f"paper {extent.paper_mean:g}")
    axes.set_title(f"{extent.name} an environment", fontsize=9)
    axes.tick_params(labelsize=7)
    axes.legend(fontsize=7)


def _plain(text: str) -> str:
    """The text as it is: matplotlib would read what stands between dollar signs as a formula."""
    return visible(text).replace("$", r"\$")
