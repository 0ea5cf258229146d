"""BFCL's own scorer over recorded calls, run by the interpreter of the benchmark's environment.

    PYTHON tests/bench/contract/official.py TASKS RECORDED VERDICTS

TASKS is the folder of BFCL's tasks. RECORDED has a line `{"id", "sample", "turns"}` for each episode, where a turn is a
list of steps and a step a list of `{name: arguments}`. What is written to VERDICTS is what `multi_turn_runner` says,
after BFCL's own `convert_to_function_call` has made texts of the calls. Modules for asking models, which neither needs,
are replaced by empty ones.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import types
from pathlib import Path
from typing import Any

os.environ["BFCL_PROJECT_ROOT"] = tempfile.mkdtemp()


class _Anything(types.ModuleType):
    """A module that has whatever is asked for."""

    __all__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: lambda function: function


for module in (
    *("numpy", "pandas", "dotenv", "tqdm", "tenacity", "overrides"),
    *("bfcl_eval.constants.model_config", "bfcl_eval.eval_checker.ast_eval.ast_checker"),
    *("bfcl_eval.eval_checker.agentic_eval.agentic_checker",),
    *("bfcl_eval.model_handler.parser.java_parser", "bfcl_eval.model_handler.parser.js_parser"),
):
    sys.modules[module] = _Anything(module)

from bfcl_eval.eval_checker import eval_runner  # noqa: E402
from bfcl_eval.model_handler.utils import convert_to_function_call  # noqa: E402


class _Handler:
    """Reads recorded calls as BFCL's handlers for function calling read them."""

    def decode_execute(self, step: list[dict[str, Any]], *_: Any, **__: Any) -> list[str]:
        texts: list[str] = convert_to_function_call(step)
        return texts


def main(tasks: Path, recorded: Path, verdicts: Path) -> None:
    """Score every episode by itself."""
    entries, answers = {}, {}
    for file in tasks.glob("BFCL_v*_multi_turn_*.json"):
        entries |= {entry["id"]: entry for entry in _lines(file)}
        answers |= {answer["id"]: answer for answer in _lines(tasks / "possible_answer" / file.name)}
    with verdicts.open("w", encoding="utf-8") as out:
        for number, episode in enumerate(_lines(recorded)):
            name = episode["id"]
            result = {"id": name, "result": episode["turns"]}
            # BFCL keeps instances by model and task for ever, so that each episode is another model's.
            accuracy, _ = eval_runner.multi_turn_runner(
                _Handler(),
                [result],
                [dict(entries[name])],
                [answers[name]],
                f"model{number}",
                name.rpartition("_")[0],
                Path(tempfile.gettempdir()),
            )
            out.write(json.dumps({"id": name, "sample": episode["sample"], "valid": accuracy == 1.0}) + "\n")


def _lines(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
