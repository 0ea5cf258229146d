"""`report`: what an agent that is no model says at the end, true of the calls that it made, in the task's language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from envscaler.skeleton import ToolSpec
from envscaler.state import JsonValue, leaves

_SHOWN = 4
"""Values that are named of one kind of call."""


@dataclass(frozen=True)
class Deed:
    """A call of a tool that changes something."""

    tool: ToolSpec
    told: tuple[dict[str, JsonValue], ...]
    """Its arguments, and before them those of the look-ups that it takes values from."""
    succeeded: bool


@dataclass(frozen=True)
class _Words:
    done: str
    refused: str
    unchanged: str
    rest: str
    times: str
    between: str
    end: str
    brackets: tuple[str, str]
    comma: str


_WORDS = {
    "en": _Words(
        done="Done: ",
        refused="Not possible: ",
        unchanged="Nothing had to be changed, and I changed nothing.",
        rest=" I changed nothing else.",
        times="{count} times",
        between="; ",
        end=".",
        brackets=(" (", ")"),
        comma=", ",
    ),
    "zh": _Words(
        done="已办理：",
        refused="未能办理：",
        unchanged="没有需要改动的内容，我没有做任何改动。",
        rest="其他内容没有改动。",
        times="{count}次",
        between="；",
        end="。",
        brackets=("（", "）"),
        comma="、",
    ),
}

_MENDING = {
    "en": (
        "That call was refused. I make it again, corrected.",
        "That did not help. I make the call again, corrected.",
    ),
    "zh": ("刚才的调用被拒绝了，改正后重新调用。", "刚才的调用没有用，改正后重新调用。"),
}


def report(deeds: Iterable[Deed], task: str, language: str) -> str:
    """What was done and what was not, with the values of the task that it was done with."""
    words = _WORDS.get(language, _WORDS["en"])
    made = list(deeds)
    done = [deed for deed in made if deed.succeeded]
    failed = [deed for deed in made if not deed.succeeded]
    if not done and not failed:
        return words.unchanged
    parts = []
    if done:
        parts.append(words.done + _listed(done, task, language, words) + words.end)
    if failed:
        parts.append(words.refused + _listed(failed, task, language, words) + words.end)
    return ("" if language == "zh" else " ").join(parts) + words.rest


def mending(observation: str, *, is_error: bool, language: str) -> str:
    """What is said with the call that puts a mistake right.

    Args:
        observation: the answer to the mistake.
    """
    refused, useless = _MENDING.get(language, _MENDING["en"])
    return refused if is_error or not succeeded(observation) else useless


def succeeded(observation: str) -> bool:
    """Whether an observation reports that the call was carried out."""
    try:
        result = json.loads(observation)
    except ValueError:
        # Results as Python writes them, in environments of the published format.
        return re.search(r"['\"]success['\"]:\s*False\b", observation) is None
    return not (isinstance(result, dict) and result.get("success") is False)


def _listed(deeds: Sequence[Deed], task: str, language: str, words: _Words) -> str:
    groups: dict[str, list[Deed]] = {}
    for deed in deeds:
        groups.setdefault(deed.tool.name, []).append(deed)
    return words.between.join(_told(group, task, language, words) for group in groups.values())


def _told(deeds: Sequence[Deed], task: str, language: str, words: _Words) -> str:
    tool = deeds[0].tool
    # Tools have English names in every language; their descriptions are written in the environment's.
    name = re.split(r"[。；\n]", tool.description)[0] if language == "zh" else tool.name.replace("_", " ")
    values = dict.fromkeys(
        value
        for deed in deeds
        for arguments in deed.told
        for _, value in leaves(arguments)
        if isinstance(value, str) and len(value) >= 2 and value.casefold() in task.casefold()
    )
    notes = [words.times.format(count=len(deeds))] if len(deeds) > 1 else []
    notes += list(values)[:_SHOWN]
    return name + (words.brackets[0] + words.comma.join(notes) + words.brackets[1] if notes else "")
