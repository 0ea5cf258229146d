"""Help, version, usage errors, and what becomes of exceptions and signals."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from cli.conftest import Command
from typer.testing import CliRunner

from envscaler.cli.command import OutputFlags, boundary, command
from envscaler.errors import BudgetExhausted, EndpointUnavailable, EnvScalerError, StoreError, UsageError

COMMANDS = (
    ("synth",),
    ("assess",),
    ("scenarios",),
    ("rollout",),
    ("export",),
    ("export", "sft"),
    ("show",),
    ("play",),
    ("doctor",),
)


def started(*arguments: object, **options: object) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "FORCE"))}
    return subprocess.Popen(
        [sys.executable, "-m", "envscaler", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,  # type: ignore[call-overload]
    )


@pytest.mark.parametrize("name", COMMANDS, ids=" ".join)
def test_every_command_explains_itself(cli: Command, name: tuple[str, ...]) -> None:
    answer = cli(*name, "--help")
    assert answer.code == 0
    assert f"envscaler {' '.join(name)}" in " ".join(answer.out.split()) or "root" in answer.out
    assert answer.err == ""


def test_the_help_says_what_offline_is(cli: Command) -> None:
    assert "a procedural generator, not a language model" in " ".join(cli("--help").out.split())


def test_every_command_that_asks_models_takes_the_same_options(cli: Command) -> None:
    for name in ("synth", "assess", "scenarios", "rollout", "doctor"):
        out = cli(name, "--help").out
        for option in ("--model", "--base-url", "--max-cost", "--patience", "--json", "--prompts"):
            assert option in out, (name, option)


def test_the_version_is_printed(cli: Command) -> None:
    assert cli("--version").out.startswith("envscaler ")


@pytest.mark.parametrize(
    "arguments", [("nonsense",), ("show",), ("show", "x", "--nonsense"), ("rollout", "x", "-a", "me")]
)
def test_wrong_use_exits_with_2(cli: Command, arguments: tuple[str, ...]) -> None:
    answer = cli(*arguments)
    assert answer.code == 2
    assert answer.out == ""


def app_that(error: BaseException | None, code: int | None = None) -> typer.Typer:
    app = typer.Typer()
    app.callback()(lambda: None)

    @command(app, "act", panel="Test")
    def act(output: OutputFlags = OutputFlags()) -> int | None:  # noqa: B008 - a frozen value
        if error is not None:
            raise error
        return code

    return app


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("say what"), 2, "say what"),
        (StoreError("no file\nthere"), 2, "no file there"),
        (EnvScalerError("it failed"), 1, "it failed"),
        (BudgetExhausted("the limit of 3 calls is reached"), 3, "the same command resumes"),
        (EndpointUnavailable("no answer"), 1, "the same command resumes"),
        (KeyboardInterrupt(), 130, "the same command resumes"),
        (ZeroDivisionError("division"), 1, "this is a bug"),
        (PermissionError(13, "Permission denied", "secret/run.json"), 2, "secret/run.json cannot be used: Permission"),
        (OSError(24, "Too many open files"), 1, "this is a bug"),
        (MemoryError(), 1, "unexpected MemoryError; this is a bug"),
    ],
)
def test_an_exception_becomes_a_sentence_and_an_exit_code(error: BaseException, code: int, words: str) -> None:
    for flags in ((), ("--json",)):
        result = CliRunner().invoke(app_that(error), ["act", *flags])
        assert result.exit_code == code
        assert result.stdout == ""
        assert words in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert "Traceback" not in result.stderr


def test_debug_shows_the_traceback_of_a_bug() -> None:
    result = CliRunner().invoke(app_that(ZeroDivisionError()), ["act", "--debug"])
    assert "Traceback" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("code", [0, 1, 3])
def test_a_command_returns_its_exit_code(code: int) -> None:
    assert CliRunner().invoke(app_that(None, code), ["act"]).exit_code == code


def test_the_boundary_gives_the_signal_handler_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with boundary(debug=False):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_the_module_runs_as_the_command() -> None:
    out, err = started("--version").communicate()
    assert out.startswith("envscaler ")
    assert err == ""


def test_a_reader_that_goes_away_is_no_error(made_library: Path) -> None:
    process = started("show", f"{made_library}/lending-desk", "--json")
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    assert process.stderr.read() == ""
    assert process.wait() == 0


def ignoring_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def heeding_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("number", "before"),
    [
        (signal.SIGINT, heeding_interrupts),
        (signal.SIGTERM, heeding_interrupts),
        # As shells start what a script puts into the background.
        (signal.SIGTERM, ignoring_interrupts),
    ],
)
def test_a_signal_ends_a_session_with_a_sentence(
    made_library: Path, number: signal.Signals, before: Callable[[], None]
) -> None:
    process = started("play", f"{made_library}/lending-desk", preexec_fn=before)
    assert process.stdout is not None
    assert process.stdout.readline().strip() == "Lending desk"
    process.send_signal(number)
    assert process.stderr is not None
    said = process.stderr.readline()
    process.send_signal(number)  # it is on its way out, and stays on it
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "the same command resumes" in said
    assert err == ""


def test_work_in_the_background_of_a_script_is_ended_by_sigterm_and_goes_on_after(
    made_library: Path, tmp_path: Path
) -> None:
    library = shutil.copytree(made_library, tmp_path / "L")
    command = ("rollout", library, "--agent", "random", "--samples", 4_000, "--out", tmp_path / "run")
    process = started(*command, preexec_fn=ignoring_interrupts)
    for _ in range(600):
        if (tmp_path / "run" / "trajectories.jsonl").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "the same command resumes" in err
    assert (tmp_path / "run" / "run.json").exists()


def test_what_is_piped_holds_no_control_codes(made_library: Path) -> None:
    out, err = started("show", made_library).communicate()
    assert "lending-desk" in out
    assert "\x1b" not in out + err
