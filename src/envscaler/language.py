"""Guesses the language of a task text by its script and its most frequent words; English when in doubt.

It decides in which language an environment is written, and whether the offline model can read a task at all.
"""

from __future__ import annotations

import re
from collections import Counter

_SCRIPTS: tuple[tuple[str, str], ...] = (
    ("ja", "\u3040-\u30ff"),
    ("ko", "\uac00-\ud7af\u1100-\u11ff"),
    ("zh", "\u4e00-\u9fff\u3400-\u4dbf"),
    ("ru", "\u0400-\u04ff"),
    ("ar", "\u0600-\u06ff"),
    ("he", "\u0590-\u05ff"),
    ("el", "\u0370-\u03ff"),
    ("hi", "\u0900-\u097f"),
    ("th", "\u0e00-\u0e7f"),
)
_PATTERNS = tuple((language, re.compile(f"[{characters}]")) for language, characters in _SCRIPTS)
_UKRAINIAN = re.compile("[іїєґІЇЄҐ]")
_PERSIAN = re.compile("[پچژگ]")

_FREQUENT: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": "the to of and is in for my please can i you that with on it this me from are be have at an what",
        "de": "der die das und ist nicht ich ein eine einen bitte für mit auf dem den zu von mir wir sie wie kann im",
        "fr": "le la les des et est une un je pour dans que qui sur avec vous mon ma pas du au ce cette nous de",
        "es": "el la los las y es una un por para que con mi en del se no qué quiero necesito puedes favor al de",
        "pt": "o os as e é uma um por para que com meu minha em do da não preciso você quero pode dos ao de",
        "it": "il lo la gli le e è una un per che con mi di nel della non ho vorrei puoi del sono alla dei",
        "nl": "de het een en is van ik voor met op niet dat mijn te wat kan die graag zijn naar aan kunt u",
        "pl": "i w na z jest nie się do że dla proszę mam czy jak mi to po od przez mój są chcę",
        "tr": "ve bir bu için ile mi ben var da de ne lütfen olarak çok benim bana olan kadar",
        "vi": "và của là cho tôi một có không với được trong này các những bạn hãy vào ngày",
        "id": "dan yang di untuk saya dengan ini itu dari tolong bisa ada tidak ke akan pada apakah",
        "sv": "och att det är en ett jag för på med inte som till av kan min har vi den",
    }.items()
}
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str:
    """The language of a text as an ISO 639-1 code.

    Example:
        >>> language_of("请帮我预订明天的会议室")
        'zh'
        >>> language_of("Bitte verlege den Termin auf Montag, ich kann am Freitag nicht")
        'de'
    """
    letters = sum(character.isalpha() for character in text)
    if not letters:
        return "en"
    counts = {language: len(pattern.findall(text)) for language, pattern in _PATTERNS}
    # Kana and Hangul decide also beside many ideographs, which Japanese and Korean borrow.
    for language in ("ja", "ko"):
        if counts[language] >= 0.1 * letters:
            return language
    script, count = max(counts.items(), key=lambda pair: pair[1])
    # An ideograph says as much as several Latin letters; a name or brand in Latin letters does not make it English.
    if count >= (0.15 if script == "zh" else 0.4) * letters:
        if script == "ru" and _UKRAINIAN.search(text):
            return "uk"
        if script == "ar" and _PERSIAN.search(text):
            return "fa"
        return script
    words = Counter(word.lower() for word in _WORD.findall(text))
    scores = {language: sum(words[word] for word in frequent) for language, frequent in _FREQUENT.items()}
    best = max(scores, key=lambda language: (scores[language], language == "en"))
    # One word that two languages share proves nothing, however often it stands there as an abbreviation.
    distinct = len(_FREQUENT[best].intersection(words))
    return best if distinct >= 2 and scores[best] > scores["en"] else "en"
