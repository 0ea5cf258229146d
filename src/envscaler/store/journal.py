"""`Journal`: what a long computation has done already, by key, so that the same command resumes.

Values are JSON and stay in memory while the journal is open. It is a cache: deleting the file costs work, not data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from envscaler.errors import StoreError
from envscaler.record import SCHEMA_VERSION
from envscaler.state import JsonValue
from envscaler.store.appending import LineFile
from envscaler.store.reading import check_version, json_object, unreadable


class Journal:
    """An append-only JSONL file of `{key, value}`; the last value of a key counts.

    `put` survives a kill once it has returned; a power cut can lose what came after the last `close`.
    """

    def __init__(self, path: Path | str) -> None:
        """Open the journal at `path`, which need not exist.

        Raises:
            StoreError: if a line other than a torn last one is no entry.
        """
        self.path = Path(path)
        self._lines = LineFile(self.path)
        self._values: dict[str, JsonValue] = {}
        if self.path.exists():
            self._load()

    def _load(self) -> None:
        try:
            with self.path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    where = f"{self.path}, line {number}"
                    try:
                        entry = json_object(line, where)
                    except StoreError:
                        if line.endswith(b"\n"):
                            raise
                        return
                    check_version(entry, where)
                    if not isinstance(entry.get("key"), str) or "value" not in entry:
                        raise StoreError(f"{where} is no journal entry: it needs `key` and `value`")
                    self._values[entry["key"]] = entry["value"]
        except OSError as error:
            raise unreadable(self.path, error) from error

    def __contains__(self, key: object) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[str]:
        """Keys in the order in which they were first put."""
        return iter(self._values)

    def get(self, key: str) -> JsonValue:
        """The value of `key`, or None."""
        return self._values.get(key)

    def put(self, key: str, value: JsonValue) -> None:
        """Keep `value` under `key`.

        Raises:
            StoreError: if the file cannot be written.
        """
        self._lines.append({"schema_version": SCHEMA_VERSION, "key": key, "value": value})
        self._values[key] = value

    def close(self) -> None:
        """Wait for the disk; idempotent. The journal can be used on."""
        self._lines.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
