"""Which models a run uses and how they are reached: from flags, the environment and `envscaler.toml`, in this order.

Opening the models is `open_models`' business.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from envscaler.errors import UsageError
from envscaler.llm.prices import Price
from envscaler.llm.wire import combined
from envscaler.roles.role import Family
from envscaler.trajectory import Sampling

SETTINGS_FILE = "envscaler.toml"
OFFLINE = "offline"
CACHED = "cached"


class FamilySettings(BaseModel):
    """What one family of roles uses instead of the common settings; None: the common ones."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    sampling: Sampling | None = None

    @field_validator("base_url")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        return normal_url(value)


class ModelSettings(BaseModel):
    """Models, endpoints and limits of a run. Keys are secrets: they print as stars and are never recorded."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str = OFFLINE
    """`offline` (a procedural generator, no language model), `cached` (only replies that the cache holds;
    `cached:NAME` for those of one model), or the name of a model at the base URL."""
    base_url: str | None = None
    """OpenAI-compatible endpoint, usually ending in /v1. It may hold a user and a password: records are to show
    `Models.endpoints` instead."""
    api_key: SecretStr | None = None
    models: dict[Family, FamilySettings] = {}
    """What families of roles use instead: builder, tester, checker, scenario_writer, agent, user."""
    embedding_model: str | None = None
    """Name of an embedding model; None: the built-in character n-grams."""
    embedding_base_url: str | None = None
    """Endpoint of the embedding model; None: `base_url`."""
    embedding_api_key: SecretStr | None = None
    """Key of `embedding_base_url`; None: no key, or `api_key` where both URLs are the same."""
    prices: dict[str, Price] = {}
    """US dollars per million tokens by model name; they win over the built-in price list."""
    patience_s: float = Field(default=3600.0, ge=0)
    """How long an endpoint may give no answer before the run ends."""
    max_in_flight: int | None = Field(default=None, ge=1)
    """Requests that one endpoint works on at the same time, at most; None: as many as it answers the faster for."""
    timeout_s: float = Field(default=600.0, gt=0)
    """Longest time for one request."""
    sampling: Sampling = Sampling()
    """What requests use where they set nothing themselves."""
    headers: dict[str, SecretStr] = {}
    """Further HTTP headers, sent to `base_url` only; they may hold secrets."""
    body: dict[str, Any] = {}
    """Further fields of every request body to `base_url`, such as `reasoning_effort`."""

    @field_validator("base_url", "embedding_base_url")
    @classmethod
    def _is_url(cls, value: str | None) -> str | None:
        return normal_url(value)

    @classmethod
    def load(
        cls,
        flags: Mapping[str, Any] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        file: Path | None = None,
        folder: Path | None = None,
    ) -> ModelSettings:
        """The settings in force.

        Args:
            flags: values given on the command line by field name; None means not given.
            environ: environment variables; None: those of this process. `OPENAI_BASE_URL` and `OPENAI_API_KEY` count.
            file: a settings file; None: `envscaler.toml` in `folder`, if there is one.
            folder: working folder; None: that of this process.

        Raises:
            UsageError: naming the key, and where it was given, of what cannot be used.
        """
        environ = os.environ if environ is None else environ
        given = {name: value for name, value in (flags or {}).items() if value is not None}
        path = file or (folder or Path()) / SETTINGS_FILE
        from_file = _read(path) if file is not None or path.is_file() else {}
        _checked(from_file, str(path))
        from_environment = {
            name: environ[variable]
            for name, variable in (("base_url", "OPENAI_BASE_URL"), ("api_key", "OPENAI_API_KEY"))
            if environ.get(variable)
        }
        _checked(from_environment, "the environment (OPENAI_BASE_URL, OPENAI_API_KEY)")
        settings = _checked(_merged(_merged(from_file, from_environment), given), "the command line")
        if "base_url" in given and settings.model == OFFLINE and "model" not in {**from_file, **given}:
            raise UsageError(f"--base-url {settings.base_url}: say which model to ask there, with --model NAME")
        return settings

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every key, and whatever else must not get into a file: values of headers, passwords in URLs."""
        kept = [self.api_key, self.embedding_api_key, *self.headers.values()]
        kept += [family.api_key for family in self.models.values()]
        urls = [self.base_url, self.embedding_base_url, *(family.base_url for family in self.models.values())]
        passwords = [urlsplit(url).password for url in urls if url is not None]
        return tuple(filter(None, [*(secret.get_secret_value() for secret in kept if secret is not None), *passwords]))

    def of(self, family: Family) -> FamilySettings:
        """What a family uses, its own settings and the common ones put together.

        A key belongs to the endpoint it was given for: a family with a base URL of its own does not get the common one.
        """
        own = self.models.get(family, FamilySettings())
        elsewhere = own.base_url is not None and own.base_url != self.base_url
        return FamilySettings(
            model=own.model or self.model,
            base_url=own.base_url or self.base_url,
            api_key=own.api_key or (None if elsewhere else self.api_key),
            sampling=combined(own.sampling, self.sampling) if own.sampling is not None else self.sampling,
        )


def normal_url(value: str | None) -> str | None:
    """A base URL as endpoints are compared by it: no slash at the end, no path of a single method.

    Raises:
        ValueError: if it is no http(s) URL.
    """
    if value is None:
        return None
    url = value.strip().rstrip("/").removesuffix("/chat/completions").removesuffix("/embeddings")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{value!r} is no URL of the form http(s)://host/v1")
    return url


def is_local(base_url: str) -> bool:
    """Whether an endpoint is on this machine or in a private network, where keys are not usual."""
    host = urlsplit(base_url).hostname or ""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".internal", ".lan"))
    return address.is_private or address.is_loopback or address.is_unspecified


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such settings file") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: is not UTF-8 (byte {error.start})") from error
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from error


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on `under`, tables key by key."""
    out = dict(under)
    for key, value in over.items():
        below = out.get(key)
        out[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return out


def _checked(values: Mapping[str, Any], where: str) -> ModelSettings:
    try:
        return ModelSettings.model_validate(values)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in fault["loc"] if part != "[key]")
        if fault["type"] == "extra_forbidden":
            tables: dict[str, type[BaseModel]] = {"models": FamilySettings, "prices": Price, "sampling": Sampling}
            table = tables.get(str(fault["loc"][0]), ModelSettings)
            raise UsageError(
                f"{where}: unknown key {key}; known there: {', '.join(sorted(table.model_fields))}"
            ) from None
        # `from None`: the chained error would show the value, and the value may be a key.
        raise UsageError(f"{where}: {key}: {fault['msg'].removeprefix('Value error, ')}") from None
