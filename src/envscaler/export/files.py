"""Rows as files: JSON lines, one JSON list, or Parquet, streamed and written atomically.

Parquet knows one type for a column: objects with other keys would be merged and the keys that one lacks become nulls
that a model learns. So whatever can have any keys is stored as JSON text there; where the column is described as
such, `datasets` gives objects back. Which columns there are is the business of the formats.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from envscaler.errors import UsageError
from envscaler.export.messages import Row
from envscaler.store import write_atomic
from envscaler.store.atomic import is_special, json_line, utf8

if TYPE_CHECKING:
    import pyarrow as pa

Column = str | list["Column"] | dict[str, "Column"]
"""Type of a column: `string`, `int64`, `float64`, `bool`; `json`: any value, as JSON text; `[of]` a list; `{name: of}`
an object with exactly these keys."""

_ROWS_AT_ONCE = 256


def is_parquet(path: Path) -> bool:
    """Whether a file is to be Parquet, by its name."""
    return path.suffix == ".parquet"


class Written(NamedTuple):
    """A row with its JSON text, which is also what its length is measured by, so that it is made only once."""

    row: Row
    line: str

    @classmethod
    def of(cls, row: Row) -> Written:
        """The row with its text."""
        return cls(row, json_line(row))


def write_rows(path: Path, rows: Iterable[Written], columns: Mapping[str, Column], *, as_list: bool = False) -> None:
    """Write rows to a file; its name decides whether it is Parquet.

    Args:
        as_list: one JSON list, an entry a line, unless the name ends in `.jsonl`.

    Raises:
        StoreError: if it cannot be written.
        UsageError: if it is Parquet and pyarrow is missing.
    """
    if is_parquet(path):
        require_parquet()
        write_atomic(path, _parquet((row.row for row in rows), columns))
    elif as_list and path.suffix != ".jsonl":
        write_atomic(path, _list(rows))
    else:
        write_atomic(path, (utf8(row.line) for row in rows))


def parquet_beside(path: Path, wanted: bool) -> Path | None:
    """The Parquet file that is written beside one that is not; None where there is none to write."""
    return path.with_suffix(".parquet") if wanted and not is_parquet(path) and not is_special(path) else None


def write_files(
    path: Path, rows: Iterable[Written], columns: Mapping[str, Column], *, as_list: bool = False, parquet: bool = False
) -> tuple[Path, ...]:
    """As `write_rows`, and a Parquet file beside it where that is wanted; returns what was written."""
    write_rows(path, rows, columns, as_list=as_list)
    beside = parquet_beside(path, parquet)
    if beside is None:
        return (path,)
    write_rows(beside, read_back(path), columns)
    return path, beside


def require_parquet() -> None:
    """
    Raises:
        UsageError: if Parquet cannot be written here.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise UsageError("Parquet needs the package pyarrow: pip install 'envscaler[parquet]'") from error


def read_back(path: Path) -> Iterator[Written]:
    """The rows of a JSONL file that `write_rows` wrote, streamed."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield Written(json.loads(line), line)


def _list(rows: Iterable[Written]) -> Iterator[bytes]:
    yield b"["
    for index, row in enumerate(rows):
        yield utf8(f"{',' if index else ''}\n{row.line.rstrip()}")
    yield b"\n]\n"


class _Sink:
    """Where pyarrow writes to, and what it has written since it was last asked."""

    closed = False

    def __init__(self) -> None:
        self._chunks: list[bytes] = []
        self._position = 0

    def write(self, chunk: Any) -> int:
        content = bytes(chunk)
        self._chunks.append(content)
        self._position += len(content)
        return len(content)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        self.closed = True

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False

    def taken(self) -> bytes:
        content = b"".join(self._chunks)
        self._chunks.clear()
        return content


def _parquet(rows: Iterable[Row], columns: Mapping[str, Column]) -> Iterator[bytes]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _type(column)) for name, column in columns.items()])
    if _holds_json(dict(columns)):
        # How `datasets` describes its columns; others read text.
        features = {"info": {"features": {name: _feature(column) for name, column in columns.items()}}}
        schema = schema.with_metadata({"huggingface": json.dumps(features)})
    sink = _Sink()
    stream = iter(rows)
    with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
        while group := list(islice(stream, _ROWS_AT_ONCE)):
            arrays = [
                _array([_encoded(row.get(name), column) for row in group], column) for name, column in columns.items()
            ]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


def _array(values: list[Any], column: Column) -> pa.Array:
    import pyarrow as pa

    if column == "json":
        return pa.ExtensionArray.from_storage(pa.json_(), pa.array(values, pa.string()))
    if column == ["json"]:
        # pyarrow makes no lists of JSON of Python's lists.
        ends = list(accumulate(map(len, values)))
        return pa.ListArray.from_arrays([0, *ends], _array(list(chain.from_iterable(values)), "json"))
    return pa.array(values, _type(column))


def _type(column: Column) -> pa.DataType:
    import pyarrow as pa

    if isinstance(column, list):
        return pa.list_(_type(column[0]))
    if isinstance(column, dict):
        return pa.struct([(name, _type(part)) for name, part in column.items()])
    return pa.json_() if column == "json" else pa.type_for_alias(column)


def _feature(column: Column) -> Any:
    if isinstance(column, list):
        return {"_type": "List", "feature": _feature(column[0])}
    if isinstance(column, dict):
        return {name: _feature(part) for name, part in column.items()}
    return {"_type": "Json"} if column == "json" else {"_type": "Value", "dtype": column}


def _holds_json(column: Column) -> bool:
    if isinstance(column, list):
        return _holds_json(column[0])
    if isinstance(column, dict):
        return any(map(_holds_json, column.values()))
    return column == "json"


def _encoded(value: Any, column: Column) -> Any:
    if column == "json":
        return utf8(json_line(value).rstrip("\n")).decode()
    if value is None:
        return None
    if isinstance(column, list):
        return [_encoded(part, column[0]) for part in value]
    if isinstance(column, dict):
        return {name: _encoded(value.get(name), part) for name, part in column.items()}
    # Arrow holds no half of a character; JSON lines have its escape, and so has this.
    return utf8(value).decode() if isinstance(value, str) else value
