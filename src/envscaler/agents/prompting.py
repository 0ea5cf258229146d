"""System prompts of agents, one file for each mode.

The text played is stored in the trajectory and exported as it is, so that training sees what was played.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

from envscaler.state import text_digest
from envscaler.trajectory import Mode

_DOC = "{{ doc }}"


def system_prompt(doc: str, mode: Mode) -> str:
    """The system prompt of an episode: the mode's instructions and E_doc."""
    return _prompt_file(mode).replace(_DOC, doc)


def prompt_digest(mode: Mode) -> str:
    """Digest of the mode's prompt file, for run records."""
    return text_digest(_prompt_file(mode))


@cache
def _prompt_file(mode: Mode) -> str:
    return resources.files("envscaler.agents").joinpath("prompts", f"{mode}.md").read_text(encoding="utf-8").rstrip()
