"""From one task text to the description of the environment behind it, or to the reason why there is none.

Which descriptions are the same environment is `merge`'s business.

Source: paper 3.1; usefulness and modelability as in the released code.
"""

from __future__ import annotations

from typing import Literal

from envscaler.errors import ReplyError
from envscaler.record import Record
from envscaler.roles import role as roles
from envscaler.roles import types as t
from envscaler.skeleton import EnvDescription, ModelUse
from envscaler.synth.asking import Asking
from envscaler.synth.replies import MendedReplies, Unusable


class Discovered(Record):
    """What became of one task."""

    outcome: Literal["described", "not stateful", "no usable reply"]
    stateful: bool | None = None
    """None: the filter gave no usable reply."""
    reason: str = ""
    """Why there is no description, in a sentence."""
    description: EnvDescription | None = None
    usefulness: int | None = None
    modelability: int | None = None
    use: dict[str, ModelUse] = {}
    replies: tuple[Unusable, ...] = ()
    """Replies that could not be used."""
    mended: tuple[MendedReplies, ...] = ()
    """Replies that were used after something in their form was made good."""


async def discover(task: str, language: str, asking: Asking) -> Discovered:
    """Look at one task: filter it, then infer its environment."""
    stateful: bool | None = None
    try:
        verdict = await asking(roles.FILTER_TASK, t.FilterTaskInputs(task=task))
        stateful = verdict.stateful
        if not stateful:
            return Discovered(
                outcome="not stateful",
                stateful=False,
                reason=_short(verdict.reason),
                use=asking.use,
                replies=asking.unusable,
                mended=asking.mended,
            )
        inferred = await asking(
            roles.INFER_ENVIRONMENT, t.InferEnvironmentInputs(task=task, language=language), doubt=_doubt
        )
    except ReplyError as fault:
        return Discovered(
            outcome="no usable reply",
            stateful=stateful,
            reason=_short(str(fault)),
            use=asking.whole_use,
            replies=asking.unusable,
            mended=asking.mended,
        )
    return Discovered(
        outcome="described",
        stateful=True,
        description=EnvDescription(
            summary=" ".join(inferred.summary.split()).rstrip("."), introduction=inferred.introduction.strip()
        ),
        usefulness=inferred.usefulness,
        modelability=inferred.modelability,
        use=asking.use,
        replies=asking.unusable,
        mended=asking.mended,
    )


def _doubt(reply: t.InferEnvironmentReply) -> str | None:
    if not any(character.isalnum() for character in reply.summary):
        return "summary: it names nothing"
    if len(reply.summary) > 200:
        return "summary: it is longer than 200 characters; give a noun phrase that names the environment"
    return None if reply.introduction.strip() else "introduction: it is empty"


def _short(text: str, limit: int = 200) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
