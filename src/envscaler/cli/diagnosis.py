"""Tries what a run needs: Python, cores, memory, disk, the sandbox, the models. Nothing is changed on the machine."""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from envscaler.cli.asking import settings_of
from envscaler.cli.model_flags import ProbeFlags
from envscaler.cli.output import text_of
from envscaler.errors import EnvScalerError, exception_text
from envscaler.llm.embedding import EmbeddingModel
from envscaler.llm.transport import RetryPolicy
from envscaler.models import EndpointReport, ModelSettings, open_models, probe_endpoint
from envscaler.record import Record
from envscaler.roles.role import FAMILIES
from envscaler.sandbox import Limits, Program, Sandbox

Status = Literal["ok", "note", "bad"]

_GIB = 1024**3
_PROGRAM = """\
class Counter:
    def __init__(self, state):
        self.total = state.get("total", 0)

    def add(self, amount: int):
        self.total += amount
        return {"success": True, "data": self.total}

    def hang(self):
        while True:
            pass
"""
_CHECK = "def check_func(final_state):\n    return final_state['total'] == 5 and initial_state['total'] == 2\n"


class Finding(Record):
    """What one look at the machine showed."""

    subject: str
    status: Status
    """`bad`: something that a run needs does not work; `note`: worth knowing."""
    detail: str
    advice: str | None = None


class Diagnosis(Record):
    """Everything that was looked at."""

    version: str
    findings: tuple[Finding, ...]
    ok: bool
    """Whether all that a run needs works."""


def diagnose(flags: ProbeFlags, library: Path) -> Diagnosis:
    """Look at everything; a part that fails is a finding and hinders no other.

    Raises:
        UsageError: if the settings themselves cannot be used.
    """
    settings = settings_of(flags)
    findings = [_python(), _cores(), _memory(), _disk(library)]
    findings += asyncio.run(_sandbox())
    findings += asyncio.run(_models(settings))
    return Diagnosis(
        version=metadata.version("envscaler"),
        findings=tuple(findings),
        ok=all(finding.status != "bad" for finding in findings),
    )


def show_diagnosis(diagnosis: Diagnosis, out: Console) -> None:
    """One line a finding."""
    marks = {"ok": Text("ok", "green"), "note": Text("note", "yellow"), "bad": Text("bad", "bold red")}
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column()
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for finding in diagnosis.findings:
        detail = text_of(finding.detail)
        if finding.advice:
            detail.append(f"\n{finding.advice}", "dim")
        table.add_row(marks[finding.status], finding.subject, detail)
    out.print(f"envscaler {diagnosis.version}")
    out.print(table)
    out.print(Text("All that a run needs works." if diagnosis.ok else "Something that a run needs does not work."))


def _python() -> Finding:
    detail = (
        f"{platform.python_implementation()} {platform.python_version()} on {platform.system()} {os.uname().machine}"
    )
    fine = sys.version_info >= (3, 11)
    return Finding(
        subject="Python",
        status="ok" if fine else "bad",
        detail=detail,
        advice=None if fine else "Install Python 3.11 or newer.",
    )


def _cores() -> Finding:
    affinity = getattr(os, "sched_getaffinity", None)
    usable = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return Finding(subject="Cores", status="ok", detail=f"{usable} usable")


def _memory() -> Finding:
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return Finding(subject="Memory", status="note", detail="unknown on this system")
    low = total < 2 * _GIB
    return Finding(
        subject="Memory",
        status="note" if low else "ok",
        detail=f"{total / _GIB:.1f} GiB",
        advice="Less than 2 GiB: keep libraries small." if low else None,
    )


def _disk(library: Path) -> Finding:
    place = library.resolve()
    while not place.exists():
        place = place.parent
    if not place.is_dir():
        detail = f"{place} is a file; a library is a folder"
        return Finding(subject="Disk", status="bad", detail=detail, advice="Name another folder: --library.")
    free = shutil.disk_usage(place).free
    if not os.access(place, os.W_OK):
        return Finding(
            subject="Disk", status="bad", detail=f"{place} cannot be written", advice="Name another folder: --library."
        )
    low = free < _GIB
    return Finding(
        subject="Disk",
        status="note" if low else "ok",
        detail=f"{free / _GIB:.1f} GiB free at {place}",
        advice="Less than 1 GiB is left." if low else None,
    )


async def _sandbox() -> list[Finding]:
    """Loads a program, calls it, ends one that hangs, and runs a check: what every episode relies on."""
    try:
        async with Sandbox(limits=Limits(cpu_s=0.2, cpu_kill_s=1.0, wall_s=10.0)) as sandbox:
            session = await sandbox.open(Program(_PROGRAM, "Counter"), {"total": 2})
            added = await session.call("add", {"amount": 3})
            hung = await session.call("hang", {})
            state = await session.state()
            checked = await sandbox.check([_CHECK], initial_state={"total": 2}, final_state=state)
            await session.close()
            isolation = sandbox.isolation
    except (EnvScalerError, OSError) as fault:
        return [Finding(subject="Sandbox", status="bad", detail=exception_text(type(fault).__name__, str(fault)))]
    faults = []
    if added.result != {"success": True, "data": 5} or state != {"total": 5}:
        faults.append(f"a call gave {added.result!r} and left {state!r}")
    if hung.fault is None or hung.fault.kind not in ("timeout", "killed"):
        faults.append("a call that hangs was not ended")
    if checked[0].value is not True:
        faults.append(f"a check function said {checked[0].value!r} ({checked[0].error})")
    if faults:
        return [Finding(subject="Sandbox", status="bad", detail="; ".join(faults))]
    hardened = isolation.level == "hardened"
    return [
        Finding(subject="Sandbox", status="ok", detail="runs programs, ends a call that hangs, runs checks"),
        Finding(
            subject="Isolation",
            status="ok" if hardened else "note",
            detail=f"{isolation.level}" + (f"; missing: {', '.join(isolation.missing)}" if isolation.missing else ""),
            advice=None if hardened else "Contains accidents, not attacks: run programs of models you trust.",
        ),
    ]


async def _models(settings: ModelSettings) -> list[Finding]:
    findings = [await _endpoint(one) for one in _endpoints(settings)]
    if not findings:
        findings.append(
            Finding(
                subject="Model",
                status="ok",
                detail="offline: a procedural generator, not a language model; it needs no endpoint",
                advice="A real model: --model NAME --base-url URL.",
            )
        )
    # One failed try is enough to know; a run would wait with patience.
    try:
        async with open_models(
            settings.model_copy(update={"model": "offline", "models": {}}), retry=RetryPolicy(patience_s=0.0)
        ) as models:
            findings.append(await _embedding(models.embedder))
    except EnvScalerError as fault:
        findings.append(Finding(subject="Embedding", status="bad", detail=str(fault)))
    return findings


def _endpoints(settings: ModelSettings) -> list[ModelSettings]:
    """One setting for each different pair of model and endpoint that a role would use."""
    seen: dict[tuple[str | None, str | None], ModelSettings] = {}
    for family in FAMILIES:
        use = settings.of(family)
        if use.model is None or use.model.split(":")[0] in ("offline", "cached"):
            continue
        one = settings.model_copy(update={"model": use.model, "base_url": use.base_url, "api_key": use.api_key})
        seen.setdefault((use.model, use.base_url), one)
    return list(seen.values())


async def _endpoint(settings: ModelSettings) -> Finding:
    try:
        found = await probe_endpoint(settings)
    except EnvScalerError as fault:
        return Finding(subject="Model", status="bad", detail=f"{settings.model}: {fault}")
    if not found.reachable or found.error is not None:
        return Finding(
            subject="Model",
            status="bad",
            detail=f"{found.model} at {found.base_url}: {found.error}",
            advice=_other(found),
        )
    offers = {
        "JSON schema": found.json_schema,
        "JSON mode": found.json_mode,
        "tool calls": found.tools,
        "reasoning apart": found.reasoning,
        "token counts": found.usage,
    }
    has = ", ".join(name for name, there in offers.items() if there) or "plain text only"
    lacks = ", ".join(name for name, there in offers.items() if there is False)
    return Finding(
        subject="Model",
        status="ok",
        detail=f"{found.model} at {found.base_url} answers in {found.latency_s or 0:.1f} s; {has}"
        + (f" (not: {lacks})" if lacks else ""),
        advice=None if found.tools else "Without parsed tool calls it cannot play as an agent.",
    )


def _other(found: EndpointReport) -> str | None:
    if found.models and not found.model_listed:
        return f"The endpoint lists: {', '.join(found.models[:8])}."
    return None if found.reachable else "Is the server running, and is the URL right (it usually ends in /v1)?"


async def _embedding(embedder: EmbeddingModel) -> Finding:
    vectors = await embedder.embed(["library lending desk", "图书馆借阅"])
    return Finding(subject="Embedding", status="ok", detail=f"{embedder.name}, {vectors.shape[1]} dimensions")
