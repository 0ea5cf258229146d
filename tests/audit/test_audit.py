"""The audit of the authors' release beside what a plain script counts and what a person found by reading."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from envscaler.audit.fix import write_fixed
from envscaler.audit.run import run_audit
from envscaler.evidence import AuditReport
from envscaler.ingest import ReleasedFiles, import_released
from envscaler.sandbox import BlockingSandbox
from envscaler.scenario import Check
from envscaler.state import Change, get, patched
from envscaler.store import LibraryStore

from .false_positives import FALSE_POSITIVES, SOUND
from .plain_counts import counts
from .resets import Reset


@pytest.fixture(scope="module")
def library(release: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("audit") / "released"
    files = ReleasedFiles(release / "environments.json", release / "scenarios.json")
    asyncio.run(import_released(files, folder, check=False))
    return folder


@pytest.fixture(scope="module")
def report(library: Path) -> AuditReport:
    return asyncio.run(run_audit(library))


def places(report: AuditReport, resets: dict[str, Reset], kind: str) -> set[tuple[str, int]]:
    """Scenario and index of the checks that have a finding of a kind that is not only suspected."""
    found = set()
    for finding in report.findings:
        if finding.kind == kind and not finding.suspected and finding.scenario_id is not None:
            checks = [check.description for check in resets[finding.scenario_id].scenario.checks]
            found.add((finding.scenario_id, checks.index(str(finding.check))))
    return found


def test_the_counts_are_those_of_a_plain_script(report: AuditReport, release: Path) -> None:
    plain = counts(release)
    ours = report.summary.model_dump()
    for name in ("environments", "scenarios", "checks", "true_at_reset", "raises", "not_bool"):
        assert ours[name] == plain[name], name


def test_the_report_begins_as_documented(report: AuditReport) -> None:
    dumped = json.loads(report.model_dump_json())
    assert list(dumped)[:2] == ["summary", "findings"]
    assert list(dumped["summary"])[:9] == [
        *("environments", "scenarios", "checks", "true_at_reset", "raises", "not_bool"),
        *("nondeterministic", "never_true", "false_positive"),
    ]
    assert {"env_id", "scenario_id", "check", "kind", "evidence"} <= set(dumped["findings"][0])


def test_checks_that_accept_a_wrong_state_are_those_that_a_person_found(
    report: AuditReport, released_resets: dict[str, Reset]
) -> None:
    found = places(report, released_resets, "false_positive")
    by_hand = {(known.task_id, known.check) for known in FALSE_POSITIVES}
    sound = {(known.task_id, known.check) for known in SOUND}
    assert report.summary.false_positive == len(found)
    assert len(found & by_hand) >= 50
    assert not found & sound
    # What it finds beyond that was read as well: each lets an old record pass for one that its sentence says was made,
    # or takes another person for the one that it names.
    assert found - by_hand <= {
        *(("env_154_rl-task_1", check) for check in (32, 33)),
        *(("env_154_rl-task_4", check) for check in (7, 35, 36)),
        *(("env_162_rl-task_5", check) for check in (8, 9)),
        *(("env_183_rl-task_1", check) for check in (6, 7)),
        ("env_183_rl-task_2", 8),
    }


def test_every_state_that_is_shown_is_accepted_by_the_check(
    report: AuditReport, released_resets: dict[str, Reset], judging: BlockingSandbox
) -> None:
    shown = 0
    for finding in report.findings:
        if finding.kind != "false_positive":
            continue
        reset = released_resets[str(finding.scenario_id)]
        check = next(check for check in reset.scenario.checks if check.description == finding.check)
        state = reset.state
        for pointer, *value in finding.evidence["state"]:
            if value:
                change = Change(pointer=pointer, kind="changed", after=value[0])
            else:
                change = Change(pointer=pointer, kind="removed", before=get(state, pointer))
            state = patched(state, [change])
        (outcome,) = judging.check(
            [check.source], initial_state=reset.state, final_state=state, clock=reset.scenario.clock
        )
        assert outcome.value is True, finding
        shown += 1
    assert shown > 70


def test_a_second_audit_says_the_same_and_does_nothing_and_one_worker_finds_what_two_find(
    library: Path, report: AuditReport, tmp_path: Path
) -> None:
    before = {path: path.stat().st_mtime_ns for path in library.rglob("audit.json")}
    assert asyncio.run(run_audit(library)) == report
    assert {path: path.stat().st_mtime_ns for path in library.rglob("audit.json")} == before
    other = tmp_path / "other"
    shutil.copytree(library, other)
    for path in other.rglob("audit.json"):
        path.unlink()
    (other / ".cache" / "audit.jsonl").unlink()
    assert asyncio.run(run_audit(other, workers=1)) == report


def test_an_audit_that_was_stopped_goes_on(library: Path, report: AuditReport, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(library, other)
    for path in other.rglob("audit.json"):
        path.unlink()
    journal = other / ".cache" / "audit.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))
    assert asyncio.run(run_audit(other)) == report
    assert len(journal.read_bytes().splitlines()) == len(lines)


def test_a_cleaned_library_has_guards_marked_and_broken_checks_taken_out(
    library: Path, report: AuditReport, tmp_path: Path
) -> None:
    fixed = write_fixed(library, tmp_path / "fixed", report)
    store, source = LibraryStore.open(tmp_path / "fixed"), LibraryStore.open(library)
    kept = [scenario for name in store.env_ids() for scenario in store.scenarios(name)]
    total = sum(len(scenario.checks) for name in source.env_ids() for scenario in source.scenarios(name))
    assert fixed.scenarios == len(kept)
    assert fixed.guards_marked > 40
    assert {check.kind for scenario in kept for check in scenario.checks} == {"goal", "guard"}
    assert sum(len(scenario.checks) for scenario in kept) == total - fixed.checks_removed
    assert any("accepts a wrong state" in note for scenario in kept for note in scenario.origin.dropped)
    again = asyncio.run(run_audit(tmp_path / "fixed"))
    assert again.summary.true_at_reset == 0
    assert not [finding for finding in again.findings if finding.kind == "always_true"]


def test_what_is_broken_is_taken_out_and_a_scenario_without_a_goal_left_out(release: Path, tmp_path: Path) -> None:
    files = ReleasedFiles(release / "environments.json", release / "scenarios.json")
    asyncio.run(import_released(files, tmp_path / "library", check=False))
    store = LibraryStore.open(tmp_path / "library")
    name = next(name for name in store.env_ids() if sum(1 for _ in store.scenarios(name)) > 1)
    first, second, *rest = store.scenarios(name)
    raising = Check(description="Is it there?", source="def check_func(final_state):\n    return final_state['no']\n")
    number = Check(description="How many?", source="def check_func(final_state):\n    return len(final_state)\n")
    changed = first.model_copy(update={"checks": (*first.checks, raising, number)})
    emptied = second.model_copy(update={"checks": (raising,)})
    store.replace_scenarios(name, [changed, emptied, *rest])
    report = asyncio.run(run_audit(tmp_path / "library", env_id=name))
    assert report.summary.raises == 2
    assert report.summary.not_bool == 1
    fixed = write_fixed(tmp_path / "library", tmp_path / "fixed", asyncio.run(run_audit(tmp_path / "library")))
    assert any(reason.startswith(second.id) for reason in fixed.dropped)
    written = {one.id: one for one in LibraryStore.open(tmp_path / "fixed").scenarios(name)}
    assert second.id not in written
    assert {"Is it there?", "How many?"}.isdisjoint(check.description for check in written[first.id].checks)
    assert sum("was taken out" in note for note in written[first.id].origin.dropped) >= 2
