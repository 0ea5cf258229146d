from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from cli.conftest import Command


def figure(answer_json: dict[str, list[dict[str, object]]], name: str) -> dict[str, object]:
    return next(row for row in answer_json["figures"] if row["name"] == name)


def test_a_library_is_counted_beside_the_paper(cli: Command, made_library: Path) -> None:
    answer = cli("stats", made_library)
    assert answer.code == 0
    rows = {line.split("  ")[0]: line.split() for line in answer.out.splitlines()}
    assert rows["query tools"][2:6] == ["1.00", "1", "1", "1"]
    assert "10.44" in " ".join(rows["query tools"])
    assert rows["scenarios an environment"][3:5] == ["2.00", "2"]
    assert rows["pairs of equal structure"][-1] == "–"


def test_the_same_as_json(cli: Command, made_library: Path) -> None:
    told = cli("stats", made_library, "--json").json
    assert figure(told, "environments")["value"] == 1
    assert figure(told, "update tools")["spread"] == {"count": 1, "mean": 2.0, "median": 2.0, "least": 2.0, "most": 2.0}
    assert figure(told, "lines of a program")["paper"] is None
    assert told["equal"] == []


@pytest.mark.parametrize(("name", "start"), [("table.md", "# Statistics\n"), ("table.html", "<!doctype html>")])
def test_the_table_is_written_with_the_command_that_made_it(
    name: str, start: str, cli: Command, made_library: Path, tmp_path: Path
) -> None:
    out = tmp_path / name
    answer = cli("stats", made_library, "--out", out)
    assert answer.code == 0
    text = out.read_text(encoding="utf-8")
    assert text.startswith(start)
    assert f"envscaler stats {made_library} --out {out}" in text
    assert "mean 10.44, median 10" in text


def test_another_kind_of_file_is_refused(cli: Command, made_library: Path, tmp_path: Path) -> None:
    assert "ends in .md or .html" in cli("stats", made_library, "--out", tmp_path / "table.pdf").refused()


def test_a_copy_under_another_name_is_told(cli: Command, library: Path) -> None:
    first = library / "environments/lending-desk"
    second = library / "environments/other-desk"
    second.mkdir()
    for name in ("program.py", "environment.json"):
        text = (first / name).read_text(encoding="utf-8").replace("lending-desk", "other-desk")
        (second / name).write_text(text.replace("There is no", "Nobody knows a"), encoding="utf-8")
    answer = cli("stats", library)
    assert "Equal but for names: lending-desk and other-desk" in answer.out
    told = cli("stats", library, "--json").json
    assert figure(told, "distance to the nearest structure")["spread"]["most"] == 0.0  # type: ignore[index]


def test_a_broken_scenario_is_left_out_and_named(cli: Command, library: Path) -> None:
    lines = library / "environments/lending-desk/scenarios.jsonl"
    lines.write_text(lines.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    answer = cli("stats", library)
    assert answer.code == 0
    assert "scenarios.jsonl, line 3 is not JSON" in answer.err
    assert "scenarios an environment" in answer.out


def test_an_empty_library_has_no_statistics(cli: Command, tmp_path: Path) -> None:
    from envscaler.store import LibraryStore

    LibraryStore.create(tmp_path / "empty").write_index({})
    assert cli("stats", tmp_path / "empty").code == 1


def test_the_data_of_the_map_is_written_without_any_package(cli: Command, made_library: Path, tmp_path: Path) -> None:
    data, table = tmp_path / "map.json", tmp_path / "map.csv"
    answer = cli("stats", made_library, "--map-data", data)
    assert (answer.code, answer.out) == (0, f"wrote {data}\n")
    (placed,) = json.loads(data.read_text(encoding="utf-8"))["coverage"]["environments"]
    assert cli("stats", made_library, "--map-data", table).code == 0
    assert table.read_text(encoding="utf-8").splitlines()[1].startswith(placed["env_id"])
    assert cli("stats", made_library, "--map-data", data).code == 0


def test_a_map_has_its_own_kinds_of_files(cli: Command, made_library: Path, tmp_path: Path) -> None:
    assert "ends in .png" in cli("stats", made_library, "--map", tmp_path / "map.svg").refused()
    assert "ends in .json or .csv" in cli("stats", made_library, "--map-data", tmp_path / "map.xml").refused()
    foreign = tmp_path / "foreign.json"
    foreign.write_text("{}", encoding="utf-8")
    assert "not written by this command" in cli("stats", made_library, "--map-data", foreign).refused()


def test_a_map_without_matplotlib_is_refused_in_one_sentence(
    cli: Command, made_library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    path = tmp_path / "map.png"
    assert "pip install 'envscaler[plots]'" in cli("stats", made_library, "--map", path).refused()
    assert not path.exists()
