"""`Gate`: how many environments are begun when so many accepted ones are wanted.

An environment is begun only while it may be needed: while those accepted and those being made are fewer than wanted.
So never more are accepted than were asked for, and which ones are begun depends on which of them fail, but not on
when: the first ones in input order among which there are as many as wanted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from envscaler.skeleton import EnvDescription
from envscaler.state import digest
from envscaler.synth.report import Target

InputT = TypeVar("InputT", str, EnvDescription)


class Gate:
    """Counts environments that are begun, given up and over."""

    def __init__(self, wanted: int | None, *, refill: bool = True) -> None:
        """
        Args:
            wanted: environments to accept; None: all that there are.
            refill: whether another one is begun for each that is given up.
        """
        self.wanted = wanted
        self._refill = refill
        self._begun = 0
        self._over = 0
        self._lost = 0
        self._given_up: set[str] = set()
        self._changed = asyncio.Event()

    async def opens(self) -> bool:
        """Wait until another environment may be needed; False when none will be."""
        while self.wanted is not None and self._begun - len(self._given_up) * self._refill >= self.wanted:
            if self._over == self._begun:
                return False
            await self._changed.wait()
            self._changed.clear()
        return True

    def begin(self) -> None:
        """Another environment is begun."""
        self._begun += 1

    def give_up(self, env_id: str) -> None:
        """An environment that was begun will not be accepted; may be told again when it is over."""
        self._given_up.add(env_id)
        self._changed.set()

    def end(self, *, lost: bool = False) -> None:
        """An environment is over.

        Args:
            lost: infrastructure failed. Nothing is made in its place: the next run makes it.
        """
        self._over += 1
        self._lost += lost
        self._changed.set()

    def target(self, inputs_left: int) -> Target | None:
        """How far it is; None where no number of accepted ones was asked for."""
        if self.wanted is None or not self._refill:
            return None
        return Target(
            environments=self.wanted,
            accepted=self._over - len(self._given_up) - self._lost,
            tasks_left=inputs_left,
            waiting=self._lost,
        )


def drawn(inputs: Sequence[InputT], seed: int) -> tuple[InputT, ...]:
    """The inputs in an order that the seed decides.

    Each has a place of its own in it, so that inputs which are added later leave the order of the others as it is.
    """

    def place(value: InputT) -> str:
        text = value if isinstance(value, str) else [value.summary, value.introduction]
        return digest([seed, text])

    return tuple(sorted(inputs, key=place))
