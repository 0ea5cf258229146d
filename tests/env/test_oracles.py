from __future__ import annotations

import pytest
from env.lending import EFFECTS, SOURCE, STATE, skeleton

from envscaler.env import examine, reports_failure, try_call
from envscaler.env.conformance import check_env, examine_env
from envscaler.messages import ToolCall
from envscaler.sandbox import Outcome, Program, Sandbox, ToolFault
from envscaler.skeleton import EnvSkeleton

WITH_FAULTS = (
    SOURCE
    + '''
    def peek(self) -> Dict[str, Any]:
        """Look at the desk."""
        self.next_loan += 1
        return {"success": True}

    def charge(self, book_id: str) -> Dict[str, Any]:
        """Charge a fee."""
        self.books["B1"]["copies"] = 99
        return {"success": False, "error": "no such account"}

    def marker(self) -> Any:
        """Make a marker."""
        return object()

    def ticket(self) -> Dict[str, Any]:
        """Draw a ticket."""
        LendingDesk.drawn = getattr(LendingDesk, "drawn", 0) + 1
        return {"success": True, "data": LendingDesk.drawn}
'''
)
FAULTY_EFFECTS = {**EFFECTS, "peek": "query", "charge": "update", "marker": "query", "ticket": "query"}


def faulty() -> EnvSkeleton:
    return skeleton(WITH_FAULTS, FAULTY_EFFECTS)


def outcome(result: object = None, *, fault: ToolFault | None = None, digest: str = "same") -> Outcome:
    return Outcome(result=result, fault=fault, digest=digest, changed=digest != "same")


def oracles_of(name: str, made: Outcome, repeated: Outcome | None = None) -> list[str]:
    tool = skeleton().tool(name)
    assert tool is not None
    return [finding.oracle for finding in examine(tool, made, digest_before="same", repeated=repeated)]


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    made = outcome({"success": True}, digest="other")
    assert oracles_of("lend_book", made, made) == []
    assert oracles_of("lend_book", outcome({"success": False})) == []


def test_query_that_writes_is_found() -> None:
    assert oracles_of("find_books", outcome({"success": True}, digest="other")) == ["query_writes"]


def test_reported_failure_that_writes_is_found() -> None:
    assert oracles_of("lend_book", outcome({"success": False}, digest="other")) == ["failure_writes"]


def test_second_result_that_differs_is_found() -> None:
    assert oracles_of("find_books", outcome({"n": 1}), outcome({"n": 2})) == ["nondeterministic"]
    assert oracles_of("lend_book", outcome(1, digest="x"), outcome(1, digest="y")) == ["nondeterministic"]


def test_results_that_are_equal_in_python_only_differ() -> None:
    assert oracles_of("find_books", outcome({"n": 1}), outcome({"n": True})) == ["nondeterministic"]


def test_only_success_false_reports_a_failure() -> None:
    assert reports_failure({"success": False})
    assert not reports_failure({"success": 0})
    assert not reports_failure({})
    assert not reports_failure(None)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "arguments", "found"),
    [
        ("peek", {}, ["query_writes"]),
        ("charge", {"book_id": "B1"}, ["failure_writes"]),
        ("marker", {}, ["not_json"]),
        ("lend_book", {"book_id": "B1", "member": "Ann"}, []),
        ("return_book", {"loan_id": "L9"}, []),
    ],
)
async def test_call_in_the_sandbox_is_examined(name: str, arguments: dict[str, str], found: list[str]) -> None:
    environment = faulty()
    tool = environment.tool(name)
    assert tool is not None
    async with Sandbox() as sandbox:
        session = await sandbox.open(Program(environment.source, environment.class_name), STATE)
        examined = await try_call(session, tool, ToolCall(name=name, arguments=arguments))
        assert [finding.oracle for finding in examined.findings] == found
        assert examined.before == STATE
        assert examined.after == await session.state()
        await session.close()


@pytest.mark.anyio
async def test_what_a_program_keeps_outside_its_state_shows_as_another_result() -> None:
    environment = faulty()
    tool = environment.tool("ticket")
    assert tool is not None
    async with Sandbox() as sandbox:
        session = await sandbox.open(Program(environment.source, environment.class_name), STATE)
        findings = []
        for _ in range(2):
            findings += (await try_call(session, tool, ToolCall(name="ticket"))).findings
        await session.close()
    assert "nondeterministic" in [finding.oracle for finding in findings]


@pytest.mark.anyio
async def test_good_environment_conforms() -> None:
    async with Sandbox() as sandbox:
        assert await examine_env(skeleton(), STATE, sandbox, calls_per_tool=6) == ()


def test_faulty_environment_does_not_conform() -> None:
    oracles = {finding.oracle for finding in check_env(faulty(), STATE)}
    assert {"query_writes", "failure_writes", "not_json"} <= oracles


def test_program_that_does_not_load_is_a_finding() -> None:
    broken = skeleton().model_copy(update={"source": "class LendingDesk:\n    x = undefined_name\n"})
    assert "not_loadable" in {finding.oracle for finding in check_env(broken, STATE)}


def test_schema_that_differs_from_its_method_is_a_finding() -> None:
    own = skeleton()
    wrong = own.tools[0].model_copy(update={"parameters": {"type": "object", "properties": {"name": {}}}})
    findings = check_env(own.model_copy(update={"tools": (wrong, *own.tools[1:])}), STATE)
    assert "schema" in {finding.oracle for finding in findings}
