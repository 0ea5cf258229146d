"""System prompts of agents: one file for each mode and language, or a file of the user's in their place.

The text played is stored in the trajectory and exported as it is, so that training sees what was played.
"""

from __future__ import annotations

from functools import cache
from importlib import resources
from pathlib import Path

from envscaler.errors import UsageError
from envscaler.skeleton import EnvSkeleton
from envscaler.state import digest, text_digest
from envscaler.trajectory import Mode

_DOC = "{{ doc }}"
LANGUAGES = ("en", "zh")
"""Languages that there are prompt files in; environments in others are played with the English ones."""


def system_prompt(doc: str, mode: Mode, language: str = "en") -> str:
    """The system prompt of an episode: the mode's instructions and E_doc."""
    return _prompt_file(mode, language).replace(_DOC, doc)


def prompt_digest(mode: Mode) -> str:
    """Digest of the mode's prompt files, for run records."""
    return digest({language: _prompt_file(mode, language) for language in LANGUAGES})


class SystemPrompts:
    """The system prompts in force: those of the package, or one of the user's for every environment and mode."""

    def __init__(self, file: Path | None = None) -> None:
        """
        Args:
            file: a text in which `{{ doc }}` stands where E_doc belongs.

        Raises:
            UsageError: if it cannot be read or has no place for E_doc.
        """
        self._own: str | None = None
        if file is not None:
            try:
                self._own = file.read_text(encoding="utf-8").rstrip()
            except (OSError, UnicodeDecodeError) as fault:
                raise UsageError(f"--system-prompt {file}: cannot be read: {fault}") from fault
            if _DOC not in self._own:
                raise UsageError(
                    f"--system-prompt {file}: it has no {_DOC}, the place where the environment's description and "
                    "rules are put"
                )

    def text(self, skeleton: EnvSkeleton, mode: Mode) -> str:
        """The system prompt of an episode in an environment, in its language."""
        if self._own is not None:
            return self._own.replace(_DOC, skeleton.doc)
        return system_prompt(skeleton.doc, mode, skeleton.origin.language)

    def digest(self, mode: Mode) -> str:
        """Digest of what prompts are made of, for run records."""
        return text_digest(self._own) if self._own is not None else prompt_digest(mode)


@cache
def _prompt_file(mode: Mode, language: str) -> str:
    name = f"{mode}.md" if language not in LANGUAGES or language == "en" else f"{mode}.{language}.md"
    return resources.files("envscaler.agents").joinpath("prompts", name).read_text(encoding="utf-8").rstrip()
