"""`run_audit`: audits a library, environment after environment, and remembers what is done.

Scenarios are streamed and handed out in portions; a killed audit goes on where it was.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envscaler.audit.environments import audit_environment
from envscaler.audit.scenarios import audit_scenario
from envscaler.audit.solutions import Solutions
from envscaler.cores import usable_cores
from envscaler.engine import NullProgress, Progress, Serve, Tell, spread
from envscaler.errors import SandboxError, UsageError
from envscaler.evidence import SEVERITY, AuditFinding, AuditReport, AuditSummary, EnvironmentAudit, Proof
from envscaler.proof import METHOD as PROOF_METHOD
from envscaler.proof import is_stale, solution_digest
from envscaler.sandbox import Isolation, Limits, Sandbox
from envscaler.scenario import Scenario
from envscaler.skeleton import EnvSkeleton
from envscaler.state import digest
from envscaler.store import Journal, LibraryStore

METHOD = 3
"""Raised when what is looked for changes: older audits are stale then."""
STAGE = "audit"
_PORTION = 8
"""Scenarios that are handed out together."""
_EXPLORED = 12
"""Scenarios of an environment that its tools are tried from at most."""


@dataclass(frozen=True)
class _Work:
    """One portion: some scenarios of an environment, or its program."""

    skeleton: EnvSkeleton
    scenarios: tuple[Scenario, ...]
    proofs: tuple[Proof, ...] = ()
    of_program: bool = False

    @property
    def key(self) -> str:
        """Says when the findings of an earlier audit still hold."""
        parts = [[scenario.digest, solution_digest(scenario)] for scenario in self.scenarios]
        return f"audit:{digest([METHOD, PROOF_METHOD, self.skeleton.id, self.skeleton.digest, self.of_program, parts])}"


@dataclass(frozen=True)
class _Answer:
    """What was found in a portion."""

    summary: AuditSummary
    findings: tuple[AuditFinding, ...]
    lost: str | None = None
    """Why the machinery failed."""


async def run_audit(
    library: Path,
    *,
    env_id: str | None = None,
    workers: int | None = None,
    isolation: Isolation = "default",
    progress: Progress | None = None,
) -> AuditReport:
    """Audit a library, or one environment of it; each environment's audit is kept beside it.

    Args:
        workers: processes; None: as many as there are cores. The result is the same with any number.

    Raises:
        StoreError: if there is no such library or environment.
        SandboxError: if the machinery fails.
    """
    store = LibraryStore.open(library)
    names = (env_id,) if env_id is not None else store.env_ids()
    if not names:
        raise UsageError(f"{library} has no environments to audit")
    progress = progress or NullProgress()
    audits: list[EnvironmentAudit] = []
    with store.writing(), Journal(store.cache_dir / "audit.jsonl") as journal:
        solutions = Solutions.of(store)
        progress.stage(STAGE, sum(_scenarios_in(store, name) + 1 for name in names))
        stale = []
        for name in names:
            audit = store.read_audit(name)
            if audit is not None and audit.method == METHOD and _digests(store, name, solutions) == _of(audit):
                progress.advance(STAGE, _scenarios_in(store, name) + 1)
            else:
                stale.append(name)
        if stale:
            await _audit_each(store, stale, solutions, journal, workers or usable_cores(), isolation, progress)
        for name in names:
            kept = store.read_audit(name)
            assert kept is not None
            audits.append(kept)
    return merged(audits)


def merged(audits: Sequence[EnvironmentAudit]) -> AuditReport:
    """The report on a library: counts added up, the worst findings first."""
    summary = AuditSummary()
    for audit in audits:
        summary += audit.summary
    findings = [finding for audit in audits for finding in audit.findings]
    return AuditReport(summary=summary, findings=tuple(sorted(findings, key=_rank)))


def _rank(finding: AuditFinding) -> tuple[bool, int, str]:
    return finding.suspected, SEVERITY[finding.kind], finding.kind


async def _audit_each(
    store: LibraryStore,
    names: Sequence[str],
    solutions: Solutions,
    journal: Journal,
    workers: int,
    isolation: Isolation,
    progress: Progress,
) -> None:
    handed: list[_Work] = []
    made: dict[str, list[_Work]] = {}

    def settle() -> None:
        while handed and handed[0].key in journal:
            _finish(store, handed.pop(0), solutions, made, journal, progress)

    def wanted() -> Iterator[_Work]:
        for work in _portions(store, names, solutions):
            handed.append(work)
            settle()
            if work.key not in journal:
                yield work

    work = spread(f"{__name__}:serve", (workers, isolation), wanted(), workers=workers)
    async with aclosing(work) as answers:
        async for key, answer in answers:
            if answer.lost is not None:
                raise SandboxError(answer.lost)
            journal.put(key, {"summary": answer.summary.model_dump(), "findings": _dumped(answer.findings)})
            settle()


def _finish(
    store: LibraryStore,
    work: _Work,
    solutions: Solutions,
    made: dict[str, list[_Work]],
    journal: Journal,
    progress: Progress,
) -> None:
    """Count a portion that is done; with the last one, its program, the environment's audit is written."""
    progress.advance(STAGE, len(work.scenarios) if not work.of_program else 1)
    parts = made.setdefault(work.skeleton.id, [])
    parts.append(work)
    if work.of_program:
        del made[work.skeleton.id]
        digests = _digests(store, work.skeleton.id, solutions)
        store.write_audit(_put_together(work.skeleton.id, digests, [journal.get(part.key) for part in parts]))


def _put_together(env_id: str, digests: tuple[str, str], parts: Sequence[Any]) -> EnvironmentAudit:
    summary = AuditSummary(environments=1)
    findings: list[AuditFinding] = []
    for part in parts:
        summary += AuditSummary.model_validate(part["summary"])
        findings += [AuditFinding.model_validate(finding) for finding in part["findings"]]
    return EnvironmentAudit(
        env_id=env_id,
        env_digest=digests[0],
        scenarios_digest=digests[1],
        method=METHOD,
        summary=summary,
        findings=tuple(sorted(findings, key=_rank)),
        grades=_grades(summary, findings),
    )


def _grades(summary: AuditSummary, findings: Sequence[AuditFinding]) -> dict[str, Any]:
    """The properties that OpenEnv's `openenv validate` names, as far as they can be shown; None: not known."""
    kinds = {finding.kind for finding in findings if not finding.suspected}
    proved = summary.scenarios - summary.without_solution
    return {
        "isolation": "reset_incomplete" not in kinds,
        "determinism": "program_nondeterministic" not in kinds,
        "oracle_reaches_maximum": summary.proved == proved if proved else None,
        "floor_gap": not kinds & {"solved_at_reset", "true_at_reset"} if summary.checks else None,
        "verifier_determinism": not kinds & {"nondeterministic", "mutates"} if summary.checks else None,
        "replayability": not kinds & {"program_nondeterministic", "reset_incomplete", "unbounded"},
    }


# -- what is there ------------------------------------------------------------------------------------------


def _portions(store: LibraryStore, names: Sequence[str], solutions: Solutions) -> Iterator[_Work]:
    """Scenarios in portions, then the program of their environment."""
    for name in names:
        skeleton = store.read_environment(name)
        proofs = {proof.scenario_id: proof for proof in store.proofs(name, _pass_over)}
        first: list[Scenario] = []
        portion: list[Scenario] = []
        for scenario in map(solutions.filled, store.scenarios(name)):
            if len(first) < _EXPLORED:
                first.append(scenario)
            portion.append(scenario)
            if len(portion) == _PORTION:
                yield _portion(skeleton, portion, proofs)
                portion = []
        if portion:
            yield _portion(skeleton, portion, proofs)
        yield _Work(skeleton, tuple(first), of_program=True)


def _portion(skeleton: EnvSkeleton, scenarios: Sequence[Scenario], proofs: dict[str, Proof]) -> _Work:
    valid = [
        proofs[scenario.id]
        for scenario in scenarios
        if scenario.id in proofs and not is_stale(proofs[scenario.id], skeleton, scenario)
    ]
    return _Work(skeleton, tuple(scenarios), tuple(valid))


def _scenarios_in(store: LibraryStore, name: str) -> int:
    return sum(1 for _ in store.scenarios(name, _pass_over))


def _digests(store: LibraryStore, name: str, solutions: Solutions) -> tuple[str, str]:
    scenarios = map(solutions.filled, store.scenarios(name))
    parts = [[scenario.id, scenario.digest, solution_digest(scenario)] for scenario in scenarios]
    return store.read_environment(name).digest, digest(parts)


def _of(audit: EnvironmentAudit) -> tuple[str, str]:
    return audit.env_digest, audit.scenarios_digest


def _dumped(findings: Sequence[AuditFinding]) -> list[Any]:
    return [finding.model_dump(mode="json") for finding in findings]


def _pass_over(_: str) -> None:
    return None


# -- where it is done ---------------------------------------------------------------------------------------


@asynccontextmanager
async def serve(argument: tuple[int, Isolation]) -> AsyncIterator[Serve]:
    """Audits portions; entered once in each process."""
    processes, isolation = argument
    async with Sandbox(Limits(sandboxes=processes), isolation=isolation) as sandbox:

        async def answer(work: _Work, tell: Tell) -> tuple[str, _Answer]:
            try:
                return work.key, await _audited(work, sandbox)
            except SandboxError as error:
                return work.key, _Answer(AuditSummary(), (), lost=str(error))

        yield answer


async def _audited(work: _Work, sandbox: Sandbox) -> _Answer:
    async with sandbox.judge() as judge:
        if work.of_program:
            found = await audit_environment(work.skeleton, work.scenarios, sandbox, judge)
            return _Answer(AuditSummary(), tuple(found))
        proofs = {proof.scenario_id: proof for proof in work.proofs}
        summary = AuditSummary()
        findings: list[AuditFinding] = []
        for scenario in work.scenarios:
            audit = await audit_scenario(work.skeleton, scenario, sandbox, judge, proofs.get(scenario.id))
            summary += audit.summary
            findings += audit.findings
        return _Answer(summary, tuple(findings))
