"""Opens what a command that asks models needs: settings, prompts, models with a budget, and their progress display."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from envscaler.cli.model_flags import ModelFlags, ProbeFlags
from envscaler.cli.progress import Reporter, duration, reporter
from envscaler.cli.spending import spent_text
from envscaler.errors import UsageError

if TYPE_CHECKING:
    from envscaler.llm.metering import Budget
    from envscaler.llm.transport import EndpointState
    from envscaler.models import Models, ModelSettings
    from envscaler.roles.role import Prompts

ReportT = TypeVar("ReportT")

Work = Callable[["Models", "Prompts", Reporter], Awaitable[ReportT]]


def settings_of(flags: ProbeFlags) -> ModelSettings:
    """The settings in force: what the flags say, then the environment, then the settings file.

    Raises:
        UsageError: naming what cannot be used.
    """
    from envscaler.models import ModelSettings

    sampling = {"temperature": flags.temperature, "top_p": flags.top_p, "max_tokens": flags.reply_tokens}
    sampling = {name: value for name, value in sampling.items() if value is not None}
    values: dict[str, Any] = {
        "model": flags.model,
        "base_url": flags.base_url,
        "api_key": flags.api_key,
        "models": _role_models(flags.role_model) or None,
        "embedding_model": flags.embedding_model,
        "patience_s": flags.patience,
        "max_in_flight": flags.max_in_flight,
        "timeout_s": flags.timeout,
        "sampling": sampling or None,
    }
    return ModelSettings.load(values, file=flags.config)


def check_models(flags: ModelFlags) -> None:
    """Find out whether the models named can be opened, before anything is made for them.

    Raises:
        UsageError: as `ask_models`.
    """
    from envscaler.models import open_models
    from envscaler.roles.role import FAMILIES, Prompts

    settings = settings_of(flags)
    Prompts(flags.prompts)
    if flags.trace is not None:
        from envscaler.llm.tracing import is_trace
        from envscaler.store import require_replaceable

        require_replaceable(flags.trace, is_trace)
    names = {(settings.of(family).model or "offline").partition(":")[0] for family in FAMILIES}
    if names != {"offline"} and "cached" not in names:
        asyncio.run(open_models(settings, budget=_budget(flags)).aclose())


def ask_models(flags: ModelFlags, library: Path, work: Work[ReportT], *, quiet: bool) -> ReportT:
    """Run `work` with opened models; replies are cached in the library, and progress is shown meanwhile."""
    from envscaler.store import LibraryStore

    return ask_with_cache(flags, LibraryStore.open(library).cache_dir, work, quiet=quiet)


def ask_with_cache(flags: ModelFlags, folder: Path, work: Work[ReportT], *, quiet: bool) -> ReportT:
    """As `ask_models`, with replies cached in a folder."""
    from envscaler.cli.command import complain
    from envscaler.llm.spans import open_tracer
    from envscaler.models import open_models
    from envscaler.roles.role import Prompts

    settings = settings_of(flags)
    prompts = Prompts(flags.prompts)
    tracer = open_tracer(lambda text: complain(f"warning: {text}"))
    cache = folder / "replies.sqlite"

    async def main() -> ReportT:
        with reporter(quiet=quiet) as display:
            async with open_models(
                settings,
                cache_path=cache,
                budget=_budget(flags),
                on_outage=lambda state: display.note(_outage(state)),
                trace=flags.trace,
                tracer=tracer,
            ) as models:
                display.spending = lambda: _spent(models)
                return await work(models, prompts, display)

    try:
        return asyncio.run(main())
    finally:
        tracer.close()


def _budget(flags: ModelFlags) -> Budget:
    from envscaler.llm.metering import Budget

    return Budget(max_cost=flags.max_cost, max_tokens=flags.max_tokens, max_calls=flags.max_calls)


def _outage(state: EndpointState) -> str:
    if state.up:
        return f"{state.base_url} answers again; going on"
    why = f" ({state.fault.detail})" if state.fault is not None else ""
    return (
        f"{state.base_url} has given no answer for {duration(state.down_for_s)}{why}; "
        f"waiting, for {duration(state.gives_up_in_s)} more at most"
    )


def _spent(models: Models) -> str:
    use = models.meter.report().spent
    return spent_text(use.calls, use.input_tokens + use.output_tokens, use.cost_usd)


def _role_models(given: list[str]) -> dict[str, dict[str, str]]:
    from envscaler.roles.role import FAMILIES

    out: dict[str, dict[str, str]] = {}
    for text in given:
        family, equals, name = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--role-model {text}: write FAMILY=NAME, such as builder=gpt-4.1")
        if family.strip() not in FAMILIES:
            raise UsageError(f"--role-model {text}: {family.strip()!r} is no family; they are {', '.join(FAMILIES)}")
        out[family.strip()] = {"model": name.strip()}
    return out
