"""`Admission`: how many environments are in play, and whose questions go first.

With an endpoint as many are in play as keep it busy: another one is begun while it could be given more questions, and
not while several of those in play are waited for by nobody but this machine. The earlier an environment was begun, the
sooner its questions are sent and this machine works for it, so that environments get done one after another instead of
all at the end; tasks are looked at with what is left. None of this has an influence on what is made.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING

from envscaler.cores import usable_cores
from envscaler.llm.throttle import Behalf, on_behalf_of
from envscaler.synth.turns import Turns

if TYPE_CHECKING:
    from envscaler.models import Models
    from envscaler.roles.role import Family

FAMILIES: tuple[Family, ...] = ("builder", "tester", "checker", "scenario_writer")
"""Who is asked when environments are made."""
_WITHOUT_ENDPOINT = 4
"""Environments in play where no endpoint is waited for."""
_TASKS_WITHOUT_ENDPOINT = 32
_LEAST = 4
_QUESTIONS = 2
"""Questions that an environment has at the endpoint at a time, as few as that: mostly there are more."""
_BUSY_PER_CORE = 2
"""Environments that this machine works at, from which on none is begun."""


class Admission:
    """Lets environments into play."""

    def __init__(self, models: Models, at_once: int | None = None, tasks_at_once: int | None = None) -> None:
        """
        Args:
            at_once: environments in play; None: as many as keep the endpoint busy.
            tasks_at_once: tasks that are looked at side by side; None: likewise.
        """
        self._models = models
        self._at_once = at_once
        self._tasks_at_once = tasks_at_once
        self._in_play: set[Behalf] = set()
        self._places = count()
        self._turns = Turns(usable_cores())

    def room(self) -> int:
        """Environments that may be in play now; asked again whenever one more could be begun."""
        if self._at_once is not None:
            return self._at_once
        limit = self._models.in_flight(*FAMILIES)
        if limit is None:
            return _WITHOUT_ENDPOINT
        in_play = len(self._in_play)
        busy = sum(not one.asking for one in self._in_play)
        asked = sum(one.asking for one in self._in_play)
        if busy >= _BUSY_PER_CORE * usable_cores() or asked + busy >= _wanted(limit):
            return in_play
        return min(in_play + 1, max(_LEAST, limit // _QUESTIONS))

    def tasks(self) -> int:
        """Tasks that may be looked at side by side now."""
        if self._tasks_at_once is not None:
            return self._tasks_at_once
        limit = self._models.in_flight(*FAMILIES)
        return _TASKS_WITHOUT_ENDPOINT if limit is None else _wanted(limit)

    @contextmanager
    def in_play(self) -> Iterator[None]:
        """The time in which one environment is made."""
        behalf = Behalf(next(self._places))
        self._in_play.add(behalf)
        try:
            with on_behalf_of(behalf), self._turns.of(behalf.place):
                yield
        finally:
            self._in_play.remove(behalf)


def _wanted(limit: int) -> int:
    """Questions there should be: more than are sent at once, or it would not be tried to send more."""
    return limit + limit // 4 + 1
