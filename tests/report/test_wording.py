from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.assessment import Repair
from envscaler.report.wording import (
    arguments_text,
    decimal,
    observed,
    percent,
    rate_text,
    repair_text,
    shortened,
    signature,
    visible,
)
from envscaler.skeleton import ToolSpec


def tool(properties: dict[str, object], required: list[str]) -> ToolSpec:
    schema = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name="t", description="", parameters=schema, effect="query")


def test_a_signature_names_types_and_defaults() -> None:
    spec = tool(
        {
            "book_id": {"type": "string"},
            "copies": {"type": "integer", "default": 1},
            "kind": {"enum": ["new", "used"]},
            "tags": {"type": "array", "items": {"type": "string"}},
            "due": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "extra": {},
            "odd": True,
        },
        ["book_id", "kind"],
    )
    assert signature(spec) == (
        'book_id: string, copies: integer = 1, kind: "new" | "used", tags: array of string = …, '
        "due: string | null = …, extra: any = …, odd: any = …"
    )


@pytest.mark.parametrize(
    ("share", "text"), [(None, "–"), (1.0, "100%"), (0.0, "0%"), (0.99999, "99.9%"), (0.8725, "87.2%"), (0.9, "90%")]
)
def test_only_a_whole_is_called_all(share: float | None, text: str) -> None:
    assert percent(share) == text


def test_an_unknown_reward_is_no_number() -> None:
    assert decimal(None) == "–"
    assert decimal(0.0) == "0.000"


def test_arguments_read_like_a_call() -> None:
    assert arguments_text({"name": "Ann", "count": 2, "tags": ["图"]}) == 'name="Ann", count=2, tags=["图"]'


@given(st.text())
def test_what_is_visible_holds_no_control_character(text: str) -> None:
    assert not any((ord(char) < 32 and char not in "\n\t") or 127 <= ord(char) < 160 for char in visible(text))


def test_what_turns_the_order_of_a_line_around_is_written_out() -> None:
    assert visible("paid\u202e001\u2069\u2028x\ty\n") == "paid\\u202e001\\u2069\\u2028x\ty\n"
    assert visible("שלום 书 👩\u200d💻") == "שלום 书 👩\u200d💻"


@given(st.text(), st.integers(1, 50))
def test_what_is_shortened_fits_a_line(text: str, limit: int) -> None:
    short = shortened(text, limit)
    assert len(short) <= limit
    assert "\n" not in short


@given(st.dictionaries(st.text(), st.lists(st.integers())) | st.lists(st.text()))
def test_an_observation_of_json_keeps_its_value(value: object) -> None:
    assert json.loads(observed(json.dumps(value))) == value


@given(st.text())
def test_any_observation_can_be_shown(text: str) -> None:
    assert isinstance(observed(text), str)


def test_a_rate_is_told_with_its_interval() -> None:
    assert rate_text(0.9, (0.821, 0.95)) == "90% (82.1% to 95%)"
    assert rate_text(None, None) == "–"


def test_what_became_of_a_repair_is_told() -> None:
    assert repair_text(Repair(tool="lend", attempts=1, accepted=1)).startswith("lend was repaired")
    refused = Repair(tool="lend", attempts=2, accepted=0, refused=("it still fails",))
    assert repair_text(refused) == "lend was not repaired after 2 versions: it still fails"
    assert (
        repair_text(refused.model_copy(update={"dropped": "it raised"}))
        == "lend was given up after 2 versions: it raised"
    )
