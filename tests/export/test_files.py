"""Rows as files: JSON lines, JSON lists and Parquet that merges nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from export.episodes import NESTED, PARALLEL, stored, trajectory, turn

from envscaler.errors import UsageError
from envscaler.export import SFT_FORMATS, export_sft
from envscaler.export.files import Written, write_rows

pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is an extra")


def decoded(value: Any, column: Any) -> Any:
    """A value of a Parquet file as its trainer comes to it, the keys that it has not taken out."""
    if column == "json":
        return json.loads(value)
    if isinstance(column, list):
        return [decoded(part, column[0]) for part in value]
    if isinstance(column, dict):
        return {name: decoded(part, column[name]) for name, part in value.items() if part is not None}
    return value


@pytest.mark.parametrize(
    "name", [name for name, entry in SFT_FORMATS.items() if not entry.parquet_only and not entry.tokens]
)
def test_a_parquet_file_holds_the_rows_of_the_lines_beside_it(name: str, tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory(), trajectory(id="u", steps=PARALLEL))
    report = export_sft(run, tmp_path / "rows.jsonl", format=name, parquet=True)
    assert tmp_path / "rows.parquet" in report.files
    lines = (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()
    table = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    columns = SFT_FORMATS[name].columns
    assert [decoded(row, columns) for row in table] == [json.loads(line) for line in lines]
    assert set(report.card.files) == {"rows.jsonl", "rows.parquet"}


def test_a_file_named_parquet_is_parquet_alone(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory(), trajectory(steps=PARALLEL))
    report = export_sft(run, tmp_path / "rows.parquet", format="verl")
    table = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    assert len(table) == report.kept == 2
    assert set(table[0]) == {"messages"}
    assert all(set(message) == {"role", "content"} for message in table[0]["messages"])


def test_columns_that_hold_any_keys_are_described_for_datasets(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory())
    export_sft(run, tmp_path / "rows.parquet")
    described = json.loads(pq.read_schema(tmp_path / "rows.parquet").metadata[b"huggingface"])
    json_list = {"_type": "List", "feature": {"_type": "Json"}}
    assert described == {"info": {"features": {"messages": json_list, "tools": json_list}}}
    (row,) = pq.read_table(tmp_path / "rows.parquet").to_pylist()
    call = json.loads(row["messages"][4])["tool_calls"][0]
    assert call["function"]["arguments"] == NESTED


def test_half_a_character_does_not_end_an_export(tmp_path: Path) -> None:
    steps = (turn(("find_books", {"title": "\ud800"}), told="Go \udfff."), turn(says="Done."))
    run = stored(tmp_path / "run", trajectory(steps=steps))
    for name in (name for name, entry in SFT_FORMATS.items() if not entry.tokens):
        export_sft(run, tmp_path / f"{name}.parquet", format=name)
        assert pq.read_table(tmp_path / f"{name}.parquet").num_rows > 0


def test_many_rows_are_written_in_groups_and_all_come_back(tmp_path: Path) -> None:
    rows = [{"number": number, "text": str(number)} for number in range(1000)]
    write_rows(tmp_path / "rows.parquet", map(Written.of, rows), {"number": "int64", "text": "string"})
    file = pq.ParquetFile(tmp_path / "rows.parquet")
    assert file.num_row_groups > 1
    assert file.read().to_pylist() == rows


def test_no_rows_are_a_file_without_rows(tmp_path: Path) -> None:
    write_rows(tmp_path / "rows.parquet", (), {"text": "string"})
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 0
    write_rows(tmp_path / "rows.json", (), {}, as_list=True)
    assert json.loads((tmp_path / "rows.json").read_text()) == []


def test_a_list_is_lines_where_the_name_says_lines(tmp_path: Path) -> None:
    rows = [{"a": 1}, {"a": 2}]
    write_rows(tmp_path / "rows.json", map(Written.of, rows), {}, as_list=True)
    write_rows(tmp_path / "rows.jsonl", map(Written.of, rows), {}, as_list=True)
    assert json.loads((tmp_path / "rows.json").read_text()) == rows
    assert [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()] == rows


def test_a_missing_pyarrow_is_told_with_what_to_install(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path\n"
        "from envscaler.export.files import write_rows\n"
        "from envscaler.errors import UsageError\n"
        "try: write_rows(Path(sys.argv[1]), [], {})\n"
        "except UsageError as error: print(error)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "rows.parquet")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "pip install 'envscaler[parquet]'" in said


def test_a_parquet_file_beside_a_json_list_is_refused(tmp_path: Path) -> None:
    run = stored(tmp_path / "run", trajectory())
    with pytest.raises(UsageError, match=r"rows\.jsonl"):
        export_sft(run, tmp_path / "rows.json", format="released", parquet=True)
