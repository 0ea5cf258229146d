"""Tests of what every record keeps to."""

from __future__ import annotations

from envscaler.scenario import Scenario


def test_a_copy_with_other_values_has_a_digest_of_its_own() -> None:
    scenario = Scenario(id="s", env_id="e", env_digest="d", initial_state={}, task="Lend it.")
    before = scenario.digest
    assert scenario.model_copy(update={"task": "Take it back."}).digest != before
    assert scenario.model_copy().digest == scenario.digest == before
