"""export sft and export rl on the command line."""

from __future__ import annotations

import json
import typing
from pathlib import Path

import pytest
from cli.conftest import Command
from env.lending import EFFECTS, SOURCE, scenario, skeleton

from envscaler.cli.export import RlFormatName, SftFormatName
from envscaler.export import RL_FORMATS, SFT_FORMATS, SftFormat
from envscaler.store import LibraryStore, held_out


def test_the_names_on_the_command_line_are_those_of_the_formats() -> None:
    assert [name.value for name in SftFormatName] == list(SFT_FORMATS)
    assert [name.value for name in RlFormatName] == list(RL_FORMATS)


@pytest.mark.parametrize(("command", "formats"), [("sft", SFT_FORMATS), ("rl", RL_FORMATS)])
def test_formats_are_told_with_a_sentence_each(cli: Command, command: str, formats: dict[str, SftFormat]) -> None:
    answer = cli("export", command, "--formats")
    assert answer.code == 0
    said = " ".join(answer.out.split())
    assert all(f"{name} {entry.summary[:30]}" in said for name, entry in formats.items())


@pytest.mark.parametrize("name", [name for name, entry in SFT_FORMATS.items() if not entry.tokens])
def test_every_format_is_written_with_its_cards(cli: Command, made_library: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / ("rows.parquet" if SFT_FORMATS[name].parquet_only else "rows.jsonl")
    answer = cli("export", "sft", made_library / "rollouts" / "oracle", "--out", out, "--format", name, "--json")
    assert answer.code == 0
    assert answer.json["format"] == name
    assert Path(f"{out}.card.json").is_file()
    assert f"in the format `{name}`" in Path(f"{out}.card.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", RL_FORMATS)
def test_scenarios_are_written_from_a_library_an_environment_or_a_run(
    cli: Command, made_library: Path, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "rows.jsonl"
    run = made_library / "rollouts" / "noop"
    texts = []
    for source in (made_library, f"{made_library}/lending-desk", run):
        answer = cli("export", "rl", source, "--out", out, "--format", name, "--json")
        assert (answer.code, answer.json["kept"]) == (0, 2)
        texts.append(out.read_text(encoding="utf-8"))
    assert len(set(texts)) == 1


def test_several_runs_are_one_file_and_people_are_told(cli: Command, made_library: Path, tmp_path: Path) -> None:
    runs = [made_library / "rollouts" / agent for agent in ("oracle", "noop")]
    answer = cli("export", "sft", *runs, "--out", tmp_path / "rows.jsonl", "--min-steps", "2")
    said = " ".join(answer.out.split())
    assert "2 rows from 1 environment, 2 dropped 2 fewer than 2 steps" in said
    assert "rows.jsonl.card.json" in said.replace(" ", "")


COUNTING = '''
    def count_books(self) -> Dict[str, Any]:
        """Count the books."""
        return {"success": True, "data": len(self.books)}
'''


def test_a_hold_out_is_drawn_once_and_then_respected(cli: Command, tmp_path: Path) -> None:
    store = LibraryStore.create(tmp_path / "L")
    for environment in (skeleton(), skeleton(SOURCE + COUNTING, {**EFFECTS, "count_books": "query"}, id="counting")):
        store.write_environment(environment, None, [scenario(environment)])
    store.write_index({})
    out = tmp_path / "rows.jsonl"
    first = cli("export", "rl", store.path, "--out", out, "--hold-out", "0.5", "--seed", "1", "--json")
    assert first.json["kept"] == 1
    (drawn,) = held_out(store)
    assert f"held out from training in {store.path}: {drawn}" in first.err
    again = cli("export", "rl", store.path, "--out", out, "--hold-out", "0.9", "--seed", "2", "--json")
    assert again.json["kept"] == 1
    assert "is split already" in again.err
    assert held_out(store) == {drawn}
    test = cli("export", "rl", store.path, "--out", out, "--split", "test", "--json")
    assert set(test.json["card"]["environments"]) == {drawn}


def test_a_template_cuts_conversations(cli: Command, made_library: Path, tmp_path: Path) -> None:
    template = tmp_path / "chat.jinja"
    template.write_text(
        "{%- for t in tools or [] -%}{{ t | tojson }}{%- endfor -%}"
        "{%- for m in messages -%}<{{ m.role }}>{{ mark }}{{ m.content }}"
        "{%- for c in m.tool_calls or [] -%}{{ c.function | tojson }}{%- endfor -%}</>{%- endfor -%}"
        "{%- if add_generation_prompt -%}<assistant>{{ mark }}{%- endif -%}"
    )
    run = made_library / "rollouts" / "oracle"
    arguments = ("export", "sft", run, "--out", tmp_path / "rows.jsonl", "--format", "trl-prompt-completion", "--json")
    alone = cli(*arguments).json
    cut = cli(*arguments, "--template", template, "--template-args", '{"mark": "!"}').json
    assert (alone["episodes"], cut["kept"]) == (2, 2)
    assert alone["kept"] > 2
    assert cut["card"]["template"] == "chat.jinja"
    other = cli(*arguments, "--template", template, "--template-args", '{"mark": "?"}').json
    assert other["card"]["template_digest"] != cut["card"]["template_digest"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--format", "verl"), ".parquet"),
        (("--split", "dev"), "no split 'dev'"),
        (("--template", "nowhere.jinja"), "nowhere.jinja"),
        (("--template", "x", "--template-args", "{"), "--template-args"),
        (("--template", "x", "--template-args", "[]"), "--template-args"),
        (("--hold-out", "1.5"), "between 0 and 1"),
        (("--hold-out", "0.5"), "too few environments"),
        (("--tokenizer", "nowhere"), "tokenizer"),
    ],
)
def test_wrong_use_is_one_sentence(
    cli: Command, made_library: Path, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    answer = cli("export", "sft", made_library / "rollouts" / "oracle", "--out", tmp_path / "rows.jsonl", *arguments)
    assert said in answer.refused()
    assert list(tmp_path.iterdir()) == []


def test_a_scenario_or_two_libraries_are_no_source_of_rows(cli: Command, made_library: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "rows.jsonl")
    assert "give LIBRARY or LIBRARY/ENV" in cli("export", "rl", f"{made_library}/lending-desk/0", *out).refused()
    assert "one library, or runs only" in cli("export", "rl", made_library, made_library, *out).refused()


def test_rows_of_scenarios_open_the_scenario(cli: Command, made_library: Path, tmp_path: Path) -> None:
    trl = pytest.importorskip("envscaler.adapters.trl")
    cli("export", "rl", made_library, "--out", tmp_path / "rows.jsonl")
    for line in (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        factories = trl.environment_factories(row["library"])
        environment = factories[row["environment"]]()
        lacking = environment.reset(**{name: value for name, value in row.items() if name != "environment"})
        assert lacking is None
        assert typing.cast(float, environment.get_reward()) < 1


def test_what_a_pipe_takes_has_no_card(cli: Command, made_library: Path) -> None:
    answer = cli("export", "sft", made_library / "rollouts" / "oracle", "--out", "/dev/null", "--json")
    assert answer.json["files"] == ["/dev/null"]
    assert not Path("/dev/null.card.json").exists()


@pytest.mark.parametrize("command", ["export sft {run}", "export rl {library}"])
def test_a_file_of_somebody_else_is_not_replaced_and_ones_own_is(
    cli: Command, library: Path, tmp_path: Path, command: str
) -> None:
    words = command.format(run=library / "rollouts" / "oracle", library=library).split()
    theirs, ours = tmp_path / "tasks.jsonl", tmp_path / "ours.jsonl"
    theirs.write_text('{"task": "mine"}\n')
    answer = cli(*words, "--out", theirs)
    assert (answer.code, theirs.read_text()) == (2, '{"task": "mine"}\n')
    assert "was not written by this command; name another file, or remove it" in " ".join(answer.err.split())
    assert cli(*words, "--out", ours).code == 0
    first = ours.read_bytes()
    assert cli(*words, "--out", ours).code == 0
    assert ours.read_bytes() == first


def test_a_parquet_file_of_somebody_else_is_not_replaced_either(cli: Command, library: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "rows.parquet"
    theirs.write_bytes(b"PAR1 theirs")
    answer = cli("export", "sft", library / "rollouts" / "oracle", "--out", tmp_path / "rows.jsonl", "--parquet")
    assert (answer.code, theirs.read_bytes()) == (2, b"PAR1 theirs")
    assert not (tmp_path / "rows.jsonl").exists()


def test_pages_and_curricula_replace_nothing_of_somebody_else(cli: Command, library: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "notes.html"
    theirs.write_text("my notes")
    for words in (
        ("show", library, "--html", theirs),
        ("audit", library, "--html", theirs),
        ("stats", library, "--out", theirs),
        ("calibrate", library, "--out", theirs, "--samples", "1"),
    ):
        answer = cli(*words)
        assert (answer.code, theirs.read_text()) == (2, "my notes")
        assert "name another file" in " ".join(answer.err.split())
    for words in (("show", library, "--html"), ("stats", library, "--out")):
        ours = tmp_path / f"{words[0]}.html"
        assert [cli(*words, ours).code for _ in range(2)] == [0, 0]
