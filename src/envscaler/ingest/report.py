"""What an import did, as records. How they are shown is the command line's business."""

from __future__ import annotations

from typing import Literal

from envscaler.assessment import Finding
from envscaler.record import Record
from envscaler.rollout.settings import Folder

Outcome = Literal["added", "unchanged", "replaced", "kept"]
"""`kept`: the library has another one of that id, which stays."""


class ImportedEnvironment(Record):
    """One environment of the published file."""

    env_id: str
    outcome: Outcome
    tools: int
    scenarios: int
    """Scenarios that the library holds of it now."""
    checked_on: str | None = None
    """Scenario whose state it was checked on; None: on an empty state, because it has no scenario, or not at all."""
    findings: tuple[Finding, ...] | None = None
    """What breaks the contract of environments (`check_env`); None: not checked."""
    notes: tuple[str, ...] = ()
    """What is missing or contradictory in what was published, one sentence each."""

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings other than published schemas that differ from the methods, which calls are not held to."""
        return tuple(finding for finding in self.findings or () if finding.oracle != "schema")


class Counts(Record):
    """What became of the entries of one file."""

    added: int = 0
    unchanged: int = 0
    replaced: int = 0
    kept: int = 0
    """Left as the library has them, which is different."""
    skipped: int = 0
    """Entries that cannot be used; `ImportReport.skipped` says why."""


class ImportReport(Record):
    """What one import did."""

    library: Folder
    environments: Counts = Counts()
    scenarios: Counts = Counts()
    trajectories: Counts = Counts()
    imported: tuple[ImportedEnvironment, ...] = ()
    """The environments of the file, in its order."""
    run: Folder | None = None
    """Folder of the run that holds the imported episodes."""
    skipped: tuple[str, ...] = ()
    """Entries that cannot be used, with file, entry and field."""

    @property
    def taken(self) -> int:
        """Entries that the library has now."""
        parts = (self.environments, self.scenarios, self.trajectories)
        return sum(part.added + part.unchanged + part.replaced + part.kept for part in parts)
