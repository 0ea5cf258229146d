"""`assess_and_repair`: an environment assessed, methods whose calls fail written anew, and what changed assessed again.

What is done with an environment that still is not good enough is the pipeline's business.

Source: ours; the paper (3.3) filters and repairs nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from envscaler.assessment import Assessment, Counts, Finding, Repair, TestCase
from envscaler.engine import bounded_map
from envscaler.env.aliasing import ALIASED
from envscaler.env.tool_examination import ToolExamination
from envscaler.errors import ProgramError, ReplyError
from envscaler.program import analyze, method_source, remove_method, replace_method
from envscaler.program.copied_results import with_copied_results
from envscaler.roles import types as t
from envscaler.sandbox import Program, Sandbox
from envscaler.skeleton import EnvSkeleton, ToolSpec
from envscaler.synth.asking import Asking
from envscaler.synth.assess import Examination, Terms, Trial
from envscaler.synth.complaint import complaint
from envscaler.synth.design import rules_left
from envscaler.synth.judging import CallJudge
from envscaler.synth.methods import asked_method
from envscaler.synth.regression import made_again
from envscaler.synth.smoke import smoke
from envscaler.synth.states import known_of

_AT_ONCE = 16
_LEAST_CALLS = 4
"""Calls of a tool at least before it is given up."""


async def assess_and_repair(
    skeleton: EnvSkeleton, terms: Terms, *, repairs: int, seed: int, asking: Asking, sandbox: Sandbox
) -> tuple[EnvSkeleton, Assessment]:
    """The environment as it is after repairs, and its assessment.

    A new method takes the place of one whose calls fail, or of which something was found without test calls, only if
    it is as sound by all that can be tried without a model, its failing calls no longer fail, and all calls that
    passed, of whichever tool, still do. Fresh rounds then tell how good it is. A tool that cannot be repaired and
    mostly fails, or keeps a fault that was found without test calls, is given up where the others are good.

    Args:
        repairs: versions of one method asked for at most; 0: assess it as it is.

    Raises:
        ReplyError: if no test state can be had.
        ProgramError: if the program cannot be loaded.
    """
    examination = await Examination.begin(skeleton, terms, seed=seed, asking=asking, sandbox=sandbox)
    if not repairs:
        await examination.carry_on()
        return skeleton, examination.assessment()
    repairing = _Repairing(examination, terms, repairs, seed, asking, sandbox)
    await repairing.run()
    order = [tool.name for tool in skeleton.tools]
    return examination.skeleton, examination.assessment(repairing.records(order))


class _Repairing:
    """The repairs of one environment."""

    def __init__(
        self, examination: Examination, terms: Terms, repairs: int, seed: int, asking: Asking, sandbox: Sandbox
    ) -> None:
        self._examination = examination
        self._terms = terms
        self._repairs = repairs
        self._seed = seed
        self._asking = asking
        self._sandbox = sandbox
        self._attempts: Counter[str] = Counter()
        self._accepted: Counter[str] = Counter()
        self._refused: dict[str, list[str]] = defaultdict(list)
        self._before: dict[str, list[TestCase]] = defaultdict(list)
        self._found: dict[str, list[Finding]] = defaultdict(list)
        self._dropped: dict[str, str] = {}
        self._exhausted: set[str] = set()
        """Tools whose writer has nothing else to offer."""
        self._needed: set[str] = set()
        """Tools that the others cannot do without."""
        self._kept: dict[str, tuple[Trial, ...]] = {}
        """Calls of earlier versions of repaired tools, which no later version may fail."""

    async def run(self) -> None:
        """Repair and assess until nothing is left to be tried."""
        await self._copy_results()
        await self._examination.carry_on()
        while True:
            if again := self._to_repair():
                fresh = await self._repaired(again)
                if not fresh:
                    continue
                await self._examination.test_again(fresh)
            elif not await self._gave_up_one():
                return
            await self._examination.carry_on()

    def records(self, order: Sequence[str]) -> tuple[Repair, ...]:
        """What was tried, in that order of the tools."""
        return tuple(
            Repair(
                tool=name,
                attempts=self._attempts[name],
                accepted=self._accepted[name],
                refused=tuple(self._refused[name]),
                before=tuple(self._before[name]),
                found=tuple(self._found[name]),
                dropped=self._dropped.get(name),
            )
            for name in order
            if self._attempts[name] or self._accepted[name] or name in self._dropped
        )

    def _to_repair(self) -> list[str]:
        """Tools of which another version may be asked for."""
        return [
            name for name in self._failing() if name not in self._exhausted and self._attempts[name] < self._repairs
        ]

    def _failing(self) -> list[str]:
        failed = {trial.case.call.name for trial in self._examination.trials if trial.case.verdict == "fail"}
        names = [tool.name for tool in self._examination.skeleton.tools]
        return [name for name in names if name in failed or self._faults(name)]

    def _faults(self, name: str) -> Mapping[str, Finding]:
        """What was found of a tool without test calls."""
        return self._examination.examined[name].faults

    # -- by code --

    async def _copy_results(self) -> None:
        """Have methods whose results are parts of the state return copies; nobody needs to be asked for that."""
        skeleton = self._examination.skeleton
        source, copying = skeleton.source, []
        for name, seen in self._examination.examined.items():
            if ALIASED not in seen.findings:
                continue
            code = with_copied_results(method_source(source, skeleton.class_name, name))
            if code is not None:
                source = replace_method(source, skeleton.class_name, name, code)
                copying.append(name)
        if not copying:
            return
        candidate = skeleton.model_copy(update={"source": source})
        try:
            examined = await self._examination.examine(candidate)
        except ProgramError:
            return
        if _new_fault(skeleton, candidate) is not None or self._found_in_others(examined, "") is not None:
            return
        for name in copying:
            if ALIASED not in examined[name].findings:
                self._accepted[name] += 1
                self._found[name].append(self._examination.examined[name].findings[ALIASED])
        self._examination.exchange(candidate, (), examined)

    # -- another version of a method --

    async def _repaired(self, names: Sequence[str]) -> dict[str, int]:
        """Have another version of each of these methods written, and take those that are better.

        Returns:
            How many fresh rounds each tool that was repaired is to have.
        """
        skeleton = self._examination.skeleton
        tools = [tool for tool in skeleton.tools if tool.name in names]
        # The questions go out side by side; the answers are tried one after the other, each on top of those taken.
        written = [version async for version in bounded_map(self._version, tools, limit=_AT_ONCE)]
        fresh: dict[str, int] = {}
        for tool, (code, why) in zip(tools, written, strict=True):
            self._attempts[tool.name] += 1
            calls = len(self._of(tool.name))
            refused = await self._refusal(tool, code) if code is not None else why
            if refused is not None:
                self._refused[tool.name].append(_short(refused))
            else:
                self._accepted[tool.name] += 1
                fresh[tool.name] = max(2, calls)
        return fresh

    async def _version(self, tool: ToolSpec) -> tuple[str | None, str]:
        """The code of another version, or None and why there is none."""
        skeleton = self._examination.skeleton
        class_source = skeleton.source
        for other in skeleton.tools:
            class_source = remove_method(class_source, skeleton.class_name, other.name)
        failing = [trial for trial in self._of(tool.name) if trial.case.verdict == "fail"]
        inputs = t.WriteMethodInputs(
            **dict(known_of(skeleton)),
            class_source=class_source,
            class_name=skeleton.class_name,
            tool=tool,
            fault=complaint(failing, self._refused[tool.name], self._examination.examined[tool.name]),
            previous=method_source(skeleton.source, skeleton.class_name, tool.name),
        )
        try:
            return await asked_method(self._asking, inputs), ""
        except ReplyError as fault:
            return None, str(fault)

    async def _refusal(self, tool: ToolSpec, code: str) -> str | None:
        """Why a version is not taken; None: it has taken the place of the one before."""
        skeleton, name = self._examination.skeleton, tool.name
        try:
            source = replace_method(skeleton.source, skeleton.class_name, name, code)
        except ProgramError as fault:
            return str(fault)
        if source == skeleton.source:
            self._exhausted.add(name)
            return "the method was written as it had been"
        candidate = skeleton.model_copy(update={"source": source})
        fault_found = _new_fault(skeleton, candidate) or await self._smoke_fault(candidate, tool)
        if fault_found is not None:
            return fault_found
        try:
            examined = await self._examination.examine(candidate)
        except ProgramError as fault:
            return str(fault)
        fault_found = self._found_in_others(examined, name) or self._found_again(examined, name)
        if fault_found is not None:
            return fault_found
        earlier = [trial for trials in self._kept.values() for trial in trials]
        try:
            kept = await self._made_again([*self._examination.trials, *earlier], candidate, name)
        except ReplyError as fault:
            return str(fault)
        if isinstance(kept, str):
            return kept
        self._kept[name] = kept
        self._found[name] += self._faults(name).values()
        self._before[name] += self._examination.exchange(candidate, [name], examined)
        return None

    def _found_in_others(self, examined: Mapping[str, ToolExamination], changed: str) -> str | None:
        """What is found of tools that were not changed and was not found before."""
        for name, seen in examined.items():
            new = [finding for oracle, finding in seen.faults.items() if oracle not in self._faults(name)]
            if new and name != changed:
                return f"{name} no longer does what was right: {new[0].detail}"
        return None

    def _found_again(self, examined: Mapping[str, ToolExamination], name: str) -> str | None:
        """What is found of the changed tool, unless it is the rest of what was found before."""
        before, now = self._faults(name), examined[name].faults
        new = [finding for oracle, finding in now.items() if oracle not in before]
        if new or (now and len(now) == len(before) and not any(t.case.verdict == "fail" for t in self._of(name))):
            return "; ".join(finding.detail for finding in new or now.values())
        return None

    async def _smoke_fault(self, candidate: EnvSkeleton, tool: ToolSpec) -> str | None:
        program = Program(candidate.source, candidate.class_name)
        state = self._examination.state
        try:
            found = await smoke(program, state, [tool], candidate.entities, self._seed, self._sandbox)
        except ProgramError as fault:
            return str(fault)
        return next((fault.message for fault in found if fault.grave), None)

    async def _made_again(
        self, trials: Iterable[Trial], candidate: EnvSkeleton, changed: str
    ) -> tuple[Trial, ...] | str:
        return await made_again(
            trials,
            candidate,
            changed,
            state=self._examination.state,
            sandbox=self._sandbox,
            judge=CallJudge(candidate, self._asking, self._terms.judge, self._sandbox),
        )

    def _of(self, name: str) -> list[Trial]:
        return [trial for trial in self._examination.trials if trial.tried.tool.name == name]

    # -- giving up --

    async def _gave_up_one(self) -> bool:
        """Give up one tool that mostly fails, if what is left is good without those that do."""
        for name in self._hopeless():
            if not self._faults(name) and (lacking := _LEAST_CALLS - len(self._of(name))) > 0:
                await self._examination.test_again({name: lacking})
        hopeless = self._hopeless()
        rest = Counts.of(trial.case for trial in self._examination.trials if trial.case.call.name not in hopeless)
        rate = rest.rate(self._terms.by)
        if rate is None or rate < self._terms.threshold:
            return False
        for name in hopeless:
            candidate = await self._without(name)
            if candidate is None:
                self._needed.add(name)
                continue
            self._dropped[name] = _short(self._why_hopeless(name))
            self._kept.pop(name, None)
            self._found[name] += self._faults(name).values()
            examined = {other: seen for other, seen in self._examination.examined.items() if other != name}
            self._before[name] += self._examination.exchange(candidate, [name], examined)
            return True
        return False

    def _hopeless(self) -> list[str]:
        """Tools that mostly fail, or have a fault for certain, and may be given up."""
        counts = {name: Counts.of(trial.case for trial in self._of(name)) for name in self._failing()}
        return [
            name
            for name, one in counts.items()
            if (2 * one.failed > one.calls or self._faults(name)) and name not in self._needed
        ]

    def _why_hopeless(self, name: str) -> str:
        counts = Counts.of(trial.case for trial in self._of(name))
        if 2 * counts.failed > counts.calls:
            first = next(trial.case for trial in self._of(name) if trial.case.verdict == "fail")
            return f"{counts.failed} of {counts.calls} test calls failed: {first.reason}"
        return next(iter(self._faults(name).values())).detail

    async def _without(self, name: str) -> EnvSkeleton | None:
        """The environment without a tool; None if the rest is no environment, or does not do without it."""
        skeleton = self._examination.skeleton
        tools = tuple(tool for tool in skeleton.tools if tool.name != name)
        if {tool.effect for tool in tools} != {"query", "update"}:
            return None
        source = remove_method(skeleton.source, skeleton.class_name, name)
        rules = rules_left(skeleton.rules, tools)
        candidate = skeleton.model_copy(update={"source": source, "tools": tools, "rules": rules})
        if _new_fault(skeleton, candidate) is not None:
            return None
        others = [trial for trial in self._examination.trials if trial.tried.tool.name != name]
        kept = await self._made_again(others, candidate, name)
        return None if isinstance(kept, str) else candidate


def _new_fault(before: EnvSkeleton, after: EnvSkeleton) -> str | None:
    """What static analysis finds in a program and did not find in the one before."""
    known = {
        (fault.tool, fault.kind, fault.message) for fault in analyze(before.source, before.class_name, before.tools)
    }
    found = analyze(after.source, after.class_name, after.tools)
    return next((fault.message for fault in found if (fault.tool, fault.kind, fault.message) not in known), None)


def _short(text: str) -> str:
    return " ".join(text.split())[:500]
