"""Which time an episode starts at: the time that the state itself keeps, else the sandbox's default."""

from __future__ import annotations

from datetime import datetime

from envscaler.sandbox import DEFAULT_CLOCK
from envscaler.state import State

_KEYS = ("current_time", "current_datetime", "now", "clock", "current_date")
"""State keys under which programs keep the present."""


def clock_of(state: State) -> str:
    """The start of an episode from this state, ISO 8601: program and virtual clock agree on what day it is."""
    for key in _KEYS:
        value = state.get(key)
        if not isinstance(value, str):
            continue
        try:
            moment = datetime.fromisoformat(value)
        except ValueError:
            continue
        return (moment if len(value) > len("YYYY-MM-DD") else moment.replace(hour=9)).isoformat()
    return DEFAULT_CLOCK
