"""`Walkthrough`: what the authors' pipeline and GPT-4.1 made of one task, as replies to our roles.

The recorded forms are not ours: what has a counterpart is mapped by code, completed names stand in `completed`,
and a question that nothing was recorded for gets a reply that cannot be used, and is counted.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from envscaler.llm.chat import ModelRequest
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.record import Record
from envscaler.released import skeleton_of
from envscaler.roles import types as t
from envscaler.skeleton import EnvSkeleton
from envscaler.state import State, encode

NOTHING = "nothing was recorded for this question"


class Walkthrough:
    """One environment as it was recorded, stage by stage."""

    def __init__(self, folder: Path) -> None:
        built = json.loads((folder / "environment_build.json").read_text(encoding="utf-8"))
        self._built: dict[str, Any] = {"env_id": "walkthrough", **built}
        self._scenarios: list[dict[str, Any]] = json.loads((folder / "scenarios.json").read_text(encoding="utf-8"))
        tested = self._built["func_test_result"]["func_test_cases"]["details"]
        self.cases = sorted(
            ({**case, "tool": name} for name, part in tested.items() for case in part["cases"]),
            key=lambda case: case["step"],
        )
        """The test calls that were made, in their order, each with the tool."""
        self.unanswered: Counter[str] = Counter()
        """Questions that nothing was recorded for, by role."""

    @property
    def task(self) -> str:
        return str(self._built["task"])

    @property
    def first_state(self) -> State:
        """The state before the first test call; the one stored beside the program is that after the last."""
        state: State = self.cases[0]["state_before_call"]
        return state

    @property
    def imported(self) -> EnvSkeleton:
        """What our reader of the published format makes of it."""
        return skeleton_of(self._built, "walkthrough", source="environment_build.json")

    @property
    def completed(self) -> tuple[str, ...]:
        """Names of the recorded state space that are cut off, with what the recorded class calls them."""
        words = []
        plan = {entity.name: entity for entity in self.imported.entities}
        for part in self._built["state_space_definition"]:
            said = [name.strip() for name in part["attributes"].split(",")]
            names = [attribute.name for attribute in plan[part["entity"]].attributes]
            words += [f"{cut} -> {name}" for cut, name in zip(said, names, strict=True) if cut != name]
        return tuple(words)

    def model(self) -> ScriptedModel:
        """A model that answers as was recorded."""
        answers = {role: getattr(self, f"_{role}") for role in _ROLES}

        def answer(request: ModelRequest) -> Scripted:
            reply: Scripted | None = answers[request.role](request.inputs)
            if reply is None:
                self.unanswered[request.role] += 1
            return NOTHING if reply is None else reply

        return ScriptedModel(answer)

    # -- discovery and design --

    def _filter_task(self, inputs: t.FilterTaskInputs) -> Record:
        return t.FilterTaskReply(reason=self._built["judge_analysis"], stateful=self._built["judge_result"])

    def _infer_environment(self, inputs: t.InferEnvironmentInputs) -> Record:
        return t.InferEnvironmentReply(
            summary=self._built["environment_summary"],
            introduction=self._built["environment_introduction"],
            **self._built["metrics"],
        )

    def _plan_state(self, inputs: t.PlanStateInputs) -> Record:
        """The entities with the types of the recorded class; the first attribute of each is its key."""
        imported = self.imported
        entities = [entity.model_copy(update={"key": entity.attributes[0].name}) for entity in imported.entities]
        return t.PlanStateReply(entities=tuple(entities), rules=imported.rules)

    def _plan_tools(self, inputs: t.PlanToolsInputs) -> Record:
        """The operations, with the parameters that the recorded methods have."""
        said = {part["operation_name"]: part["operation_description"] for part in self._built["operation_list"]}
        tools = [tool.model_copy(update={"description": said[tool.name]}) for tool in self.imported.tools]
        return t.PlanToolsReply(tools=tuple(tools))

    # -- program --

    def _write_class(self, inputs: t.WriteClassInputs) -> str:
        return _fenced(self._built["class_definition"])

    def _code(self, name: str) -> str:
        return str(next(part["code"] for part in self._built["operation_list"] if part["operation_name"] == name))

    def _write_methods(self, inputs: t.WriteMethodsInputs) -> str:
        return "\n\n".join(_fenced(self._code(question.tool.name)) for question in inputs.questions)

    def _write_method(self, inputs: t.WriteMethodInputs) -> str | None:
        """The method as it was written; nothing was ever repaired."""
        return _fenced(self._code(inputs.tool.name)) if inputs.fault is None else None

    # -- assessment --

    def _test_call(self, inputs: t.TestCallInputs) -> Record | None:
        made = {text.encode() for text in inputs.history}
        for case in self.cases:
            same = (case["tool"], case["case_type"]) == (inputs.tool.name, inputs.case)
            if same and encode(case["parameters"]) not in made:
                return t.TestCallReply(intent=case["thought"], arguments=case["parameters"])
        return None

    def _judge_call(self, inputs: t.JudgeCallInputs) -> Record | None:
        """The verdict on the recorded call of that tool with these arguments."""
        for case in self.cases:
            if case["tool"] == inputs.tool.name and case["parameters"] == inputs.call.arguments:
                return t.JudgeCallReply(reason=case["check_reason"], verdict=case["status"])
        return None

    # -- scenarios --

    def _write_state(self, inputs: t.WriteStateInputs) -> Record:
        state = self.first_state if inputs.purpose == "assessment" else self._scenarios[inputs.index]["init_config"]
        return t.WriteStateReply(state=state)

    def _write_task(self, inputs: t.WriteTaskInputs) -> Record:
        return t.WriteTaskReply(task=self._scenarios[inputs.index]["task"])

    def _write_checklist(self, inputs: t.WriteChecklistInputs) -> Record:
        checks = self._scenarios[inputs.index]["checklist_with_func"]
        return t.WriteChecklistReply(checklist=tuple(part["check_item"] for part in checks))

    def _check(self, inputs: t.WriteChecklistInputs, position: int) -> str:
        return str(self._scenarios[inputs.index]["checklist_with_func"][position]["check_func"])

    def _write_check(self, inputs: t.WriteCheckInputs) -> str | None:
        return _fenced(self._check(inputs, inputs.position)) if inputs.fault is None else None

    def _write_checks(self, inputs: t.WriteChecksInputs) -> str:
        """The functions, under the names that they are asked for by."""
        sources = [(self._check(inputs, asked.position), asked.function) for asked in inputs.questions]
        return "\n\n".join(_fenced(re.sub(r"\bcheck_func\b", name, source, count=1)) for source, name in sources)


_ROLES = (
    "filter_task", "infer_environment", "plan_state", "plan_tools", "write_class", "write_methods", "write_method",
    "test_call", "judge_call", "write_state", "write_task", "write_checklist", "write_check", "write_checks",
)  # fmt: skip


def _fenced(code: str) -> str:
    return f"```python\n{code.strip()}\n```"
