"""In which dialect the model of a run plays, where the settings leave it to be found out.

What was found out once is kept, so that the same command goes on with the same run.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from envscaler.agents.dialects import choose_dialect
from envscaler.errors import UsageError
from envscaler.rollout.report import RunRecord
from envscaler.rollout.settings import RolloutSettings
from envscaler.store import Journal, RunStore

if TYPE_CHECKING:
    from envscaler.models import Models

FILE = "dialects.jsonl"


async def with_dialect(cache_dir: Path, settings: RolloutSettings, models: Models | None) -> RolloutSettings:
    """The settings with the dialect that is played in place of `auto`.

    Args:
        cache_dir: where it is kept what an endpoint can do.

    Raises:
        EndpointUnavailable: the endpoint did not answer.
        EndpointRejected: it refuses for good.
        BudgetExhausted: the limits given do not allow the question.
    """
    if settings.dialect != "auto":
        return settings
    if settings.agent != "model" or models is None:
        return settings.model_copy(update={"dialect": "native"})
    if settings.out is not None and (earlier := RunStore(settings.out).read_run(RunRecord)) is not None:
        return settings.model_copy(update={"dialect": earlier.settings.dialect})
    model = models.chat("agent")
    place = models.endpoints.get("agent")
    if place is None:
        return settings.model_copy(update={"dialect": "native"})
    journal = Journal(cache_dir / FILE)
    key = f"{place} {model.name}"
    name = journal.get(key)
    if not isinstance(name, str):
        name = await choose_dialect(model)
        with journal:
            journal.put(key, name)
    try:
        return RolloutSettings.model_validate({**settings.model_dump(), "dialect": name})
    except ValueError as error:
        raise UsageError(f"{journal.path}: {name!r} is no dialect; delete the file") from error
