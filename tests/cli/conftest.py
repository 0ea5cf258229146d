"""A small library with runs, and the command line called in this process."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli import recorded_synthesis
from env.lending import scenario, skeleton
from typer.testing import CliRunner

from envscaler.assessment import Assessment, TestCase
from envscaler.cli.app import app
from envscaler.env import open_library
from envscaler.messages import ToolCall
from envscaler.rollout import RolloutSettings, run_rollout
from envscaler.store import LibraryStore


@dataclass(frozen=True)
class Answer:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output, which must be one JSON value and nothing else."""
        return json.loads(self.out)

    def refused(self, code: int = 2) -> str:
        """The one sentence on standard error of a command that failed as it should."""
        assert self.code == code, self.err
        assert self.out == ""
        assert "Traceback" not in self.err
        lines = self.err.strip().splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("envscaler: ")
        return lines[0]


Command = Callable[..., Answer]


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """A command that was interrupted leaves its process deaf to what would interrupt it again: it is about to end."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Command:
    """Calls the command line; standard output and error are apart, no variable of this machine plays a part."""
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ENVSCALER_DEBUG", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments: object, stdin: str | None = None) -> Answer:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        return Answer(result.exit_code, result.stdout, result.stderr)

    return call


@pytest.fixture(scope="session")
def made_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One environment, two scenarios, and a run of each agent that needs no model."""
    path = tmp_path_factory.mktemp("libraries") / "desk"
    store = LibraryStore.create(path)
    environment = skeleton()
    cases = tuple(
        TestCase(
            round=number,
            call=ToolCall(name="lend_book", arguments={"book_id": "B1", "member": "Ann"}),
            case="positive",
            before="a",
            after="b",
            verdict="fail" if number == 3 else "pass",
            reason="it lent what was gone" if number == 3 else "as it should",
        )
        for number in range(10)
    )
    assessment = Assessment(env_id=environment.id, env_digest=environment.digest, rounds=10, cases=cases)
    second = scenario(environment, 2, task="Lend <b>Emma</b> to Ann,\x1b[31m please!")
    store.write_environment(environment, assessment, [scenario(environment), second])
    store.write_index({})
    with open_library(path) as library:
        for agent in ("oracle", "noop"):
            asyncio.run(run_rollout(library, RolloutSettings(agent=agent, out=path / "rollouts" / agent)))
    return path


@pytest.fixture
def library(made_library: Path, tmp_path: Path) -> Path:
    """A library of the test's own."""
    return Path(shutil.copytree(made_library, tmp_path / "desk"))


@pytest.fixture(scope="session")
def synth_tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tasks of the recorded synthesis."""
    path = tmp_path_factory.mktemp("tasks") / "tasks.jsonl"
    recorded_synthesis.write_tasks(path)
    return path


@pytest.fixture(scope="session")
def replies(synth_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What is said in the recorded synthesis, by question."""
    return recorded_synthesis.replies_to(synth_tasks, tmp_path_factory.mktemp("recorded") / "L")
