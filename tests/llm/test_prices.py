"""A price is the user's, the library's, or unknown."""

from __future__ import annotations

import pytest

from envscaler.llm import Price, PriceBook
from envscaler.trajectory import Usage

OPENAI = "https://api.openai.com/v1"
LOCAL = "http://127.0.0.1:8080/v1"


def test_listed_models_have_a_price_at_their_own_host() -> None:
    cost = PriceBook().cost(Usage(input_tokens=10**6, output_tokens=10**6), model="gpt-4.1", base_url=OPENAI)
    assert cost == pytest.approx(10.0)


def test_tokens_from_the_prompt_cache_cost_less() -> None:
    fresh, cached = (
        PriceBook().cost(
            Usage(input_tokens=1000, cached_input_tokens=n, output_tokens=1), model="gpt-4.1", base_url=OPENAI
        )
        for n in (0, 900)
    )
    assert fresh is not None
    assert cached is not None
    assert cached < fresh


@pytest.mark.parametrize(("model", "base_url"), [("gpt-4.1", LOCAL), ("nobody-knows", OPENAI)])
def test_what_nobody_knows_is_unknown_and_not_free(model: str, base_url: str) -> None:
    assert PriceBook().cost(Usage(input_tokens=1, output_tokens=1), model=model, base_url=base_url) is None
    assert not PriceBook().known(model=model, base_url=base_url)


def test_the_users_price_wins() -> None:
    book = PriceBook({"gpt-4.1": Price(input=1, output=2)})
    usage = Usage(input_tokens=10**6, cached_input_tokens=10**5, output_tokens=10**6)
    assert book.cost(usage, model="gpt-4.1", base_url=OPENAI) == pytest.approx(3.0)


def test_tokens_that_were_not_reported_have_an_unknown_cost() -> None:
    assert PriceBook({"m": Price(input=1, output=1)}).cost(Usage(), model="m", base_url=LOCAL) is None


def test_a_model_that_the_user_calls_free_is_free() -> None:
    book = PriceBook({"m": Price(input=0, output=0)})
    assert book.known(model="m", base_url=LOCAL)
    assert book.cost(Usage(), model="m", base_url=LOCAL) == 0.0
