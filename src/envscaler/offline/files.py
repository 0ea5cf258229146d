"""Reads the package's YAML files. With libyaml where PyYAML was built with it: ten times faster."""

from __future__ import annotations

from importlib import resources
from typing import Any

import yaml

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(text: str) -> Any:
    """The plain data of a YAML text.

    Raises:
        yaml.YAMLError: if it is none.
    """
    return yaml.load(text, Loader=_LOADER)


def packaged(*path: str) -> str:
    """The text of a file that lies beside this module."""
    return resources.files("envscaler.offline").joinpath(*path).read_text(encoding="utf-8")
