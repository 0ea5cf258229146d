"""Tests of the language guess."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envscaler.language import language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Please move my appointment with Dr Ito to Friday at ten.", "en"),
        ("请帮我把明天下午三点的会议室预订改到四楼。", "zh"),
        ("请用 iPhone 15 Pro 的订单 A-1009 办理退货", "zh"),
        ("明日の会議室の予約を四階に変更してください。", "ja"),
        ("내일 회의실 예약을 4층으로 바꿔 주세요.", "ko"),
        ("Пожалуйста, перенеси мою запись к врачу на пятницу.", "ru"),
        ("Будь ласка, перенеси мій запис до лікаря на п'ятницю.", "uk"),
        ("من فضلك انقل موعدي إلى يوم الجمعة.", "ar"),
        ("Bitte verschieben Sie den Termin auf Freitag, ich kann am Montag nicht.", "de"),
        ("Pouvez-vous déplacer mon rendez-vous avec le médecin pour la semaine prochaine ?", "fr"),
        ("Necesito que cambies la cita con el médico para el viernes por la tarde.", "es"),
        ("Preciso que você mude a minha consulta para sexta-feira.", "pt"),
        ("Vorrei spostare il mio appuntamento con il medico, per favore.", "it"),
        ("Ik wil graag mijn afspraak met de dokter naar vrijdag verplaatsen.", "nl"),
    ],
)
def test_common_languages_are_told_apart(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize("text", ["", "12345", "???", "Book flight AF-123 Paris", "A la carte menu update"])
def test_english_is_assumed_when_little_speaks_for_another_language(text: str) -> None:
    assert language_of(text) == "en"


@given(st.text(max_size=200))
def test_any_text_gets_a_language_code_of_two_letters(text: str) -> None:
    assert len(language_of(text)) == 2
