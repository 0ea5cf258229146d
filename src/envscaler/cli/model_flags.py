"""Options that name models, endpoints and budgets, shared by every command that asks a model.

Reading the environment and `envscaler.toml`, and opening models, is the business of `models`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

_MODELS = "Models"
_BUDGET = "Budget and patience"

EmbeddingModelOption = Annotated[
    str | None,
    typer.Option(
        "--embedding-model",
        metavar="NAME",
        help="Embedding model at the endpoint; without it the built-in character n-grams are used.",
        rich_help_panel=_MODELS,
    ),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(
        "--base-url",
        metavar="URL",
        help="OpenAI-compatible endpoint; else OPENAI_BASE_URL.",
        rich_help_panel=_MODELS,
    ),
]


@dataclass(frozen=True)
class _NameFlags:
    """Which models are asked, and with which prompts."""

    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            "-m",
            metavar="NAME",
            help="Model for every role: a name at the endpoint, `offline` (the default: a procedural generator, "
            "not a language model) or `cached` (replies of earlier runs only).",
            rich_help_panel=_MODELS,
        ),
    ] = None
    role_model: Annotated[
        list[str],
        typer.Option(
            "--role-model",
            metavar="FAMILY=NAME",
            help="Another model for one family of roles: builder, tester, checker, scenario_writer, agent or user.",
            rich_help_panel=_MODELS,
        ),
    ] = field(default_factory=list)
    embedding_model: EmbeddingModelOption = None
    prompts: Annotated[
        Path | None,
        typer.Option(
            "--prompts",
            metavar="DIR",
            help="Folder with prompt files that replace the built-in ones.",
            rich_help_panel=_MODELS,
        ),
    ] = None


@dataclass(frozen=True)
class EndpointFlags:
    """Where a model is, how it samples, and how much of it may be used."""

    base_url: BaseUrlOption = None
    api_key: Annotated[
        str | None,
        typer.Option(
            "--api-key",
            metavar="KEY",
            help="Key of the endpoint; better given as OPENAI_API_KEY, which no process list shows.",
            rich_help_panel=_MODELS,
        ),
    ] = None
    temperature: Annotated[
        float | None, typer.Option("--temperature", min=0.0, help="Sampling temperature.", rich_help_panel=_MODELS)
    ] = None
    top_p: Annotated[
        float | None,
        typer.Option("--top-p", min=0.0, max=1.0, help="Nucleus sampling threshold.", rich_help_panel=_MODELS),
    ] = None
    reply_tokens: Annotated[
        int | None,
        typer.Option("--reply-tokens", min=1, help="Longest reply that a model may give.", rich_help_panel=_MODELS),
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Settings file; else envscaler.toml in the working folder.",
            rich_help_panel=_MODELS,
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", min=0.0, help="Spend at most so many US dollars now.", rich_help_panel=_BUDGET),
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option("--max-tokens", min=0, help="Use at most so many tokens now.", rich_help_panel=_BUDGET),
    ] = None
    max_calls: Annotated[
        int | None,
        typer.Option("--max-calls", min=0, help="Make at most so many model calls now.", rich_help_panel=_BUDGET),
    ] = None
    patience: Annotated[
        float | None,
        typer.Option(
            "--patience",
            min=0.0,
            metavar="SECONDS",
            help="Wait so long for an endpoint that is down before giving up (default 3600).",
            rich_help_panel=_BUDGET,
        ),
    ] = None
    max_in_flight: Annotated[
        int | None,
        typer.Option("--max-in-flight", min=1, help="Model calls at the same time.", rich_help_panel=_BUDGET),
    ] = None
    timeout: Annotated[
        float | None,
        typer.Option(
            "--timeout", min=0.1, metavar="SECONDS", help="Time-out of one model call.", rich_help_panel=_BUDGET
        ),
    ] = None


@dataclass(frozen=True)
class ProbeFlags(EndpointFlags, _NameFlags):
    """What the user said about models; None leaves it to the environment, the file, then the default."""


@dataclass(frozen=True)
class ModelFlags(ProbeFlags):
    """The same for commands that do their work with the models."""

    trace: Annotated[
        Path | None,
        typer.Option(
            "--trace",
            metavar="FILE",
            help="Add every question to a model and every reply to a file of JSON lines; `show FILE` reads it.",
            rich_help_panel=_MODELS,
        ),
    ] = None
