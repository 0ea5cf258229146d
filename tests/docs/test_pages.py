"""What README and docs tell is true of the code: commands and options exist, links lead somewhere, Python runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from envscaler.cli.app import app
from envscaler.roles.role import ROLES

ROOT = Path(__file__).parents[2]
PAGES = (
    *sorted(ROOT.glob("README*.md")),
    ROOT / "CONTRIBUTING.md",
    *sorted(page for page in (ROOT / "docs").glob("*.md") if page.name != "architecture.md"),
)
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(envscaler [^`]+)`")
FLAG = re.compile(r"`(--[a-z][a-z-]*)[^`]*`")
LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
TARGET = re.compile(r"\bmake ([a-z][a-z0-9-]*)\b")
OTHERS_FLAGS = {"--strict"}
"""Flags of other programs that the pages name."""

COMMANDS: Any = typer.main.get_command(app)

by_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def shell_lines(page: Path) -> Iterator[str]:
    """Commands in shell blocks: comments and prompts taken off, continued lines joined."""
    for language, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if language in ("sh", "bash", "console"):
            for line in body.replace("\\\n", " ").splitlines():
                if language != "console" or line.startswith("$ "):
                    yield line.removeprefix("$ ").strip()


def words_of(line: str) -> list[str]:
    """The words of one envscaler command, up to a pipe or redirection; empty for another command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= set("|<>&;"):
            break
        words.append(word)
    while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
        words.pop(0)
    return words[1:] if words[:1] in (["envscaler"], [".venv/bin/envscaler"]) else []


def command_of(words: list[str]) -> tuple[Any, list[str]]:
    """The command that the words name, and its arguments."""
    command, rest = COMMANDS, list(words)
    while hasattr(command, "commands") and rest and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"there is no command {' '.join(words)!r}"
        command = command.commands[rest.pop(0)]
    return command, rest


def options_of(command: Any) -> set[str]:
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    below = (options_of(child) for child in getattr(command, "commands", {}).values())
    return own.union({"--help", "-h"}, *below)


@by_page
def test_every_command_in_a_block_is_accepted_by_the_command_line(page: Path) -> None:
    for line in shell_lines(page):
        words = words_of(line)
        if not words or "--help" in words or "--version" in words:
            continue
        command, rest = command_of(words)
        assert not hasattr(command, "commands"), f"{line!r} names no command"
        command.make_context("envscaler", rest)  # raises the error that a user would see


@by_page
def test_every_command_in_running_text_exists_with_its_options(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    for mention in INLINE.findall(prose):
        command, rest = command_of([word.strip("[]…") for word in mention.split()[1:]])
        for word in rest:
            if word.startswith("-"):
                assert word.split("=")[0] in options_of(command), f"{mention!r}: there is no {word}"


@by_page
def test_every_option_named_alone_belongs_to_some_command(page: Path) -> None:
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    assert set(FLAG.findall(prose)) <= options_of(COMMANDS) | OTHERS_FLAGS


@by_page
def test_every_link_to_a_file_leads_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if not link.startswith(("http://", "https://", "#")):
            assert (page.parent / link.split("#")[0]).exists(), link


@by_page
def test_every_make_target_exists(page: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    text = "\n".join([*shell_lines(page), *re.findall(r"`(make [^`]+)`", page.read_text(encoding="utf-8"))])
    for target in TARGET.findall(text):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_every_command_and_every_option_stands_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    leaves = [command for top in COMMANDS.commands.values() for command in getattr(top, "commands", {"": top}).values()]
    for command in leaves:
        for option in options_of(command) - {"--help", "-h"}:
            if option.startswith("--"):
                assert f"`{option}" in text, f"{command.name}: {option}"
    for top in COMMANDS.commands:
        assert f"envscaler {top}" in text


def test_every_role_stands_in_the_page_on_prompts() -> None:
    text = (ROOT / "docs" / "prompts.md").read_text(encoding="utf-8")
    assert all(f"`{role.name}`" in text for role in ROLES)


def test_modules_and_tests_of_the_paper_table_exist() -> None:
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    paths = re.findall(r"`((?:src|tests|docs)/[\w./*-]+|[a-z_]+/(?:[\w./-]+\.(?:py|md)))`", text)
    assert len(paths) > 20
    for path in paths:
        assert list((ROOT if path.startswith(("tests/", "docs/")) else ROOT / "src" / "envscaler").glob(path)), path


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small library of the offline model with a run, where the pages say that quickstart puts them."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "tasks.txt").write_text("Move twenty pallets from the north warehouse to the one in Leith.\n")
    for line in (
        "synth tasks.txt --library quickstart --rounds 10 --scenarios 2 --quiet",
        "rollout quickstart --agent oracle --out quickstart/rollouts/oracle --quiet",
    ):
        command = [sys.executable, "-m", "envscaler", *line.split()]
        finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
        assert finished.returncode == 0, finished.stderr
    return folder


@by_page
def test_python_of_a_page_runs_from_top_to_bottom(page: Path, request: pytest.FixtureRequest) -> None:
    blocks = [body for language, body in BLOCK.findall(page.read_text(encoding="utf-8")) if language == "python"]
    if not blocks:
        return
    folder = request.getfixturevalue("library")
    command = [sys.executable, "-c", "\n".join(blocks)]
    finished = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert finished.returncode == 0, finished.stderr
