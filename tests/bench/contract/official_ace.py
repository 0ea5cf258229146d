"""evalscope's own rollout and scorer of ACEBench over recorded messages, run by the interpreter of its environment.

    PYTHON tests/bench/contract/official_ace.py CHECKOUT RECORDED VERDICTS

RECORDED has a line `{"id", "language", "split", "sample", "messages"}` for each episode, with what the agent writes to
whoever carries out calls. Its loop asks a model that writes these messages, and then that it is done; the scores in
VERDICTS are those of its adapter. Modules for asking models, which neither needs, are replaced by empty ones.
"""

from __future__ import annotations

import json
import sys
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DONE = "finish conversation"


class _Named(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class _Anything(metaclass=_Named):
    """Holds what it is given and does nothing."""

    id = ""
    name = ""
    total_usage = None

    def __init__(self, *_: Any, **given: Any) -> None:
        self.__dict__.update(given)

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


class _Empty(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (_Anything,), {})


spec = find_spec("evalscope")
assert spec is not None
assert spec.submodule_search_locations is not None
root = spec.submodule_search_locations[0]
for package in ("evalscope", "evalscope.benchmarks", "evalscope.third_party"):
    sys.modules[package] = types.ModuleType(package)
    sys.modules[package].__path__ = [str(Path(root, *package.split(".")[1:]))]
API = ("agent", "benchmark", "dataset", "evaluator", "messages", "metric", "model", "registry")
for module in (
    *("evalscope.api", "evalscope.constants", "evalscope.report", "evalscope.utils", "evalscope.utils.logger"),
    *(f"evalscope.api.{name}" for name in API),
):
    sys.modules[module] = _Empty(module)
sys.modules["evalscope.api.registry"].register_benchmark = lambda _: lambda adapter: adapter  # type: ignore[attr-defined]

from evalscope.benchmarks.acebench.acebench_adapter import AceBenchAdapter  # noqa: E402
from evalscope.benchmarks.acebench.rollout import run_rollout  # noqa: E402


class _Writer:
    """A model that writes what is recorded."""

    name = "recorded"

    def __init__(self, messages: list[str]) -> None:
        self._messages = iter(messages)

    def generate(self, _: Any) -> Any:
        text = next(self._messages, DONE)
        return _Anything(usage=None, completion=text, message=_Anything(content=text), stop_reason="stop")


def main(checkout: Path, recorded: Path, verdicts: Path) -> None:
    """Score every episode by itself."""
    tasks: dict[tuple[str, str], dict[str, Any]] = {}
    for file in checkout.glob("data_all/data_*/data_agent_*.json"):
        language = file.parent.name.removeprefix("data_")
        answers = {one["id"]: one for one in _lines(file.parent / "possible_answer" / file.name)}
        tasks |= {(language, one["id"]): {**one, **answers[one["id"]]} for one in _lines(file)}
    with verdicts.open("w", encoding="utf-8") as out:
        for episode in _lines(recorded):
            name = episode["id"].removeprefix(f"{episode['language']}_")
            task = tasks[episode["language"], name]
            told = {
                **{key: task[key] for key in ("question", "initial_config", "involved_classes", "ground_truth")},
                "functions": task["function"],
                "mile_stone": task["mile_stone"],
                "language": episode["language"],
                "test_category": f"agent_{episode['split']}",
            }
            done = run_rollout(_Writer(episode["messages"]), told, max_steps=400, user_model=_Writer([]))
            scores = AceBenchAdapter._score_agent(None, {**told, "process": done.process, "end_state": done.end_state})
            told = {"id": episode["id"], "sample": episode["sample"]}
            out.write(json.dumps({**told, "end": scores["acc"], "process": scores["process_acc"]}) + "\n")


def _lines(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
