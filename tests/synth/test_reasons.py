"""Tests of the reasons of verdicts that oracles gave, in the language of the environment."""

from __future__ import annotations

from envscaler.assessment import Finding
from envscaler.synth.reasons import failed_reason, passed_reason

FOUND = (Finding(oracle="query_writes", detail="the query tool get_room changed the state at /rooms"),)


def test_reasons_are_in_english_where_there_are_no_sentences_in_a_language() -> None:
    assert failed_reason(FOUND, "en") == failed_reason(FOUND, "fr") == FOUND[0].detail
    assert passed_reason("refused", "fr") == passed_reason("refused", "en")


def test_a_chinese_reason_says_what_is_wrong_and_keeps_the_place_of_it() -> None:
    reason = failed_reason(FOUND, "zh")
    assert reason.startswith("查询工具更改了状态")
    assert FOUND[0].detail in reason
    assert passed_reason("settled", "zh") != passed_reason("settled", "en")


def test_a_finding_without_a_sentence_is_told_as_it_is() -> None:
    assert failed_reason([Finding(oracle="schema", detail="it differs")], "zh") == "it differs"
