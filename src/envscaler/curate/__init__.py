"""Makes libraries from libraries: merged, filtered, and divided into what is trained on and what is held out."""

from envscaler.curate.filtering import FilterReport, Selection, filter_library
from envscaler.curate.merging import MergeReport, merge_libraries
from envscaler.curate.splitting import SplitReport, parse_ratio, split_library

__all__ = [
    "FilterReport",
    "MergeReport",
    "Selection",
    "SplitReport",
    "filter_library",
    "merge_libraries",
    "parse_ratio",
    "split_library",
]
