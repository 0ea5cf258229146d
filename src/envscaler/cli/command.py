"""Turns a function into a command: shared groups of options, one boundary for every error, exit codes.

Exit codes: 0 the result asked for exists; 1 it does not, or a verifying command found what it looks for;
2 wrong use; 3 a budget ended the run; 130 interrupted. What a command does is not this module's business.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import os
import signal
import sys
import traceback
import typing
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from envscaler.errors import BudgetExhausted, EndpointUnavailable, EnvScalerError, exception_text

if TYPE_CHECKING:
    from rich.console import Console

EXIT_OK = 0
EXIT_NO_RESULT = 1
EXIT_USAGE = 2
EXIT_BUDGET = 3
EXIT_INTERRUPTED = 130

CommandFunction = Callable[..., int | None]
ReportT = TypeVar("ReportT")


@dataclasses.dataclass(frozen=True)
class OutputFlags:
    """How a command speaks."""

    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object on standard output.", rich_help_panel="Output")
    ] = False
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show no progress on standard error.", rich_help_panel="Output")
    ] = False
    debug: Annotated[
        bool,
        typer.Option(
            "--debug",
            envvar="ENVSCALER_DEBUG",
            help="Show the traceback of an unexpected error.",
            rich_help_panel="Output",
        ),
    ] = False


def command(app: typer.Typer, name: str, *, panel: str) -> Callable[[CommandFunction], CommandFunction]:
    """Register a function as the command `name`.

    A parameter whose type is a dataclass stands for one option per field of it. The function returns its exit
    code, None meaning 0; whatever it raises becomes one sentence on standard error and the right exit code.
    """

    def register(function: CommandFunction) -> CommandFunction:
        app.command(name, rich_help_panel=panel)(_flattened(function))
        return function

    return register


def _flattened(function: CommandFunction) -> Callable[..., None]:
    hints = typing.get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name in groups:
            parameters.extend(_options_of(typing.cast(type, groups[parameter.name])))
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(function)
    def run(**given: Any) -> None:
        arguments = dict(given)
        output = OutputFlags()
        for name, group in groups.items():
            fields = [field.name for field in dataclasses.fields(typing.cast(Any, group))]
            value = typing.cast(type, group)(**{field: arguments.pop(field) for field in fields})
            arguments[name] = value
            if isinstance(value, OutputFlags):
                output = value
        with boundary(debug=output.debug):
            code = function(**arguments)
        if code:
            raise typer.Exit(code)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    del run.__wrapped__  # or typer would read the original's parameters
    return run


def _options_of(group: type) -> Iterator[inspect.Parameter]:
    hints = typing.get_type_hints(group, include_extras=True)
    for field in dataclasses.fields(group):
        default = field.default_factory() if field.default_factory is not dataclasses.MISSING else field.default
        yield inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
        )


@contextmanager
def boundary(*, debug: bool) -> Iterator[None]:
    """Turn what a command raises into one sentence on standard error and an exit code."""
    _prepare_streams()
    # A run under a supervisor ends by SIGTERM: it has to leave as tidily as one ended by hand.
    previous = {signal.SIGTERM: signal.signal(signal.SIGTERM, _interrupt)}
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_stdout()
        raise typer.Exit(EXIT_OK) from None
    except KeyboardInterrupt:
        # Asked to end once more it has nothing left to do, and would die by that signal while Python shuts down.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        previous.clear()
        complain("interrupted; what was finished is kept, and the same command resumes")
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except EnvScalerError as error:
        complain(sentence(error))
        if debug:
            traceback.print_exc()
        raise typer.Exit(error.exit_code) from None
    except OSError as error:
        if not isinstance(error.filename, str | bytes):
            _unexpected(error, debug=debug)
            raise typer.Exit(EXIT_NO_RESULT) from None
        # A folder that may not be entered, a name that is too long: of the machine that this runs on, and no bug.
        complain(f"{os.fsdecode(error.filename)} cannot be used: {error.strerror or error}")
        if debug:
            traceback.print_exc()
        raise typer.Exit(EXIT_USAGE) from None
    except Exception as error:  # the last boundary: a user is shown a sentence, never a traceback
        if type(error).__module__.startswith("typer"):
            raise
        _unexpected(error, debug=debug)
        raise typer.Exit(EXIT_NO_RESULT) from None
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _unexpected(error: Exception, *, debug: bool) -> None:
    complain(
        f"unexpected {exception_text(type(error).__name__, _one_line(str(error)))}; this is a bug"
        + ("" if debug else ": please report it with what --debug shows")
    )
    if debug:
        traceback.print_exc()


def _interrupt(*_: object) -> None:
    # Shells start what a script puts into the background with SIGINT ignored, and SIGTERM has to end that, too.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


def sentence(error: EnvScalerError) -> str:
    """The error as one sentence that says what to do next."""
    text = _one_line(str(error)) or type(error).__name__
    if isinstance(error, BudgetExhausted | EndpointUnavailable) and "the same command" not in text:
        text = f"{text.rstrip('.')}; what was finished is kept, and the same command resumes"
    return text


def complain(text: str) -> None:
    """Write one sentence to standard error."""
    try:
        print(f"envscaler: {text}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        return


def show_report(report: ReportT, output: OutputFlags, show: Callable[[ReportT, Console], None]) -> None:
    """Print what a command did: as JSON where that was asked for, else as `show` words it."""
    from envscaler.cli.output import console, emit_json

    if output.json:
        emit_json(report)
    else:
        show(report, console())


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _prepare_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # Task texts hold any character, lone surrogates included; none of them may end a run.
            reconfigure(errors="backslashreplace")


def _silence_stdout() -> None:
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return
