"""The virtual clock of an episode begins where the state says that it is."""

import pytest

from envscaler.sandbox import DEFAULT_CLOCK
from envscaler.synth.clock import clock_of


@pytest.mark.parametrize(
    ("state", "clock"),
    [
        ({"current_time": "2025-10-22T10:30:00"}, "2025-10-22T10:30:00"),
        ({"current_date": "2025-10-22"}, "2025-10-22T09:00:00"),
        ({"now": "soon", "clock": "2024-02-29T23:59:59"}, "2024-02-29T23:59:59"),
        ({"current_time": 12}, DEFAULT_CLOCK),
        ({}, DEFAULT_CLOCK),
    ],
)
def test_the_clock_is_the_states_own_or_the_default(state: dict, clock: str) -> None:
    assert clock_of(state) == clock
