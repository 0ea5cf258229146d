"""Time zones from memory: a worker can open no file, and `zoneinfo` reads one for each zone that it meets."""

from __future__ import annotations

import io
import zoneinfo
import zoneinfo._common


def preload() -> None:
    """Read every time zone that this machine knows and have `zoneinfo` take them from there, for good."""
    zones: dict[str, bytes] = {}
    for key in zoneinfo.available_timezones():
        path = zoneinfo._tzpath.find_tzfile(key)
        if path is not None:
            with open(path, "rb") as file:
                zones[key] = file.read()
        else:
            with zoneinfo._common.load_tzdata(key) as file:
                zones[key] = file.read()

    def from_memory(key: str) -> io.BytesIO:
        if key not in zones:
            raise zoneinfo.ZoneInfoNotFoundError(f"No time zone found with key {key}")
        return io.BytesIO(zones[key])

    zoneinfo._common.load_tzdata = from_memory  # type: ignore[assignment]
    zoneinfo.reset_tzpath(to=())
