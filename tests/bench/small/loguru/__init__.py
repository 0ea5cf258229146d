"""As much of a logger as the small benchmark has use for."""

from collections.abc import Callable


class _Logger:
    def __init__(self) -> None:
        self._sinks: list[Callable[[str], object]] = []

    def remove(self) -> None:
        self._sinks.clear()

    def add(self, sink: Callable[[str], object], level: str, format: str) -> None:
        self._sinks.append(sink)

    def warning(self, text: str) -> None:
        for sink in self._sinks:
            sink(text)


logger = _Logger()
