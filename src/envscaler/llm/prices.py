"""What a call costs: prices of the user's, else those of the genai-prices library, else unknown.

Nothing here asks the network. Counting what was spent is `metering`'s business.
"""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from envscaler.record import Record
from envscaler.trajectory import Usage


class Price(Record):
    """Prices of one model in US dollars per million tokens."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached_input: float | None = Field(default=None, ge=0)
    """Input tokens read from the endpoint's prompt cache; None: they cost as much as others."""

    def of(self, usage: Usage) -> float:
        """What that many tokens cost, in US dollars."""
        cached_rate = self.input if self.cached_input is None else self.cached_input
        fresh = usage.input_tokens - usage.cached_input_tokens
        return (fresh * self.input + usage.cached_input_tokens * cached_rate + usage.output_tokens * self.output) / 1e6


class PriceBook:
    """Finds the price of a call. A price that nobody knows is None, never zero: a local server is not free either,
    unless the user says so with a price of 0."""

    def __init__(self, overrides: Mapping[str, Price] | None = None) -> None:
        """
        Args:
            overrides: prices by model name, as the user names the model; they win over the library's.
        """
        self._overrides = dict(overrides or {})
        self._unlisted: set[tuple[str, str]] = set()
        """Models at endpoints for which the library has no price; it takes a while to say so."""

    def cost(self, usage: Usage, *, model: str, base_url: str) -> float | None:
        """Cost of one call in US dollars, or None when the price of this model at this endpoint is unknown.

        Usage of zero tokens means that the endpoint reported none; what it cost is then unknown too.
        """
        if usage.input_tokens == 0 and usage.output_tokens == 0:
            return 0.0 if self._free(model) else None
        if model in self._overrides:
            return self._overrides[model].of(usage)
        if (model, base_url) in self._unlisted:
            return None
        try:
            return _listed_cost(usage, model, base_url)
        except LookupError:
            self._unlisted.add((model, base_url))
            return None

    def known(self, *, model: str, base_url: str) -> bool:
        """Whether calls of this model at this endpoint have a price."""
        return self.cost(Usage(input_tokens=1, output_tokens=1), model=model, base_url=base_url) is not None

    def _free(self, model: str) -> bool:
        price = self._overrides.get(model)
        return price is not None and price.input == 0 and price.output == 0


def _listed_cost(usage: Usage, model: str, base_url: str) -> float | None:
    """
    Raises:
        LookupError: there is no such provider or model.
    """
    # The library takes half a second to import; commands without an endpoint must not wait for it.
    import genai_prices

    try:
        price = genai_prices.calc_price(
            genai_prices.Usage(
                input_tokens=usage.input_tokens,
                cache_read_tokens=min(usage.cached_input_tokens, usage.input_tokens),
                output_tokens=usage.output_tokens,
            ),
            model,
            provider_api_url=base_url,
        )
    except ValueError:  # the listed price needs counts that we do not have
        return None
    return float(price.total_price)
