"""ACEBench by a small package of our own: what is recorded, both scores, both languages, and conversations."""

from __future__ import annotations

import asyncio
import keyword
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.small_ace import LONG, MINT, PLUG, small_ace
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envscaler.agents import ModelAgent, UserInstructions, UserSimulator
from envscaler.bench.catalogue import benchmark_named
from envscaler.bench.comparison import compare_bench
from envscaler.bench.contents import contents_of
from envscaler.bench.crew import Crew
from envscaler.bench.inside.ace_calls import read, written
from envscaler.bench.installation import VARIABLE, Installation
from envscaler.bench.installing import install
from envscaler.bench.report import bench_report
from envscaler.bench.run import run_bench
from envscaler.bench.world import BenchWorld, rules_of
from envscaler.errors import UsageError
from envscaler.llm.scripted import ScriptedModel
from envscaler.messages import AssistantMessage, ToolCall
from envscaler.report.bench import tables_of
from envscaler.roles.role import Prompts
from envscaler.rollout import RolloutReport, RolloutSettings, play
from envscaler.trajectory import StopReason, Trajectory

pytestmark = pytest.mark.anyio
Reply = str | Sequence[tuple[str, dict[str, Any]]]
POUR = ("pour", {"guest": "Ada", "kind": "mint"})
PLUG_IN: tuple[str, dict[str, Any]] = ("plug_in", {})


@pytest.fixture(scope="module")
def tea(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp("ace")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, str(folder / "environments"))
        yield asyncio.run(small_ace(folder / "checkout"))


@pytest.fixture
async def crew(tea: Installation) -> AsyncIterator[Crew]:
    async with tea.crew() as opened:
        yield opened


def said(reply: Reply) -> AssistantMessage:
    if isinstance(reply, str):
        return AssistantMessage(content=reply)
    return AssistantMessage(tool_calls=tuple(ToolCall(name=name, arguments=given) for name, given in reply))


async def played(
    tea: Installation, crew: Crew, task: str, *replies: Reply, user: Sequence[str] | None = None, play_as: str = "alone"
) -> tuple[Trajectory, list[UserInstructions]]:
    (found,) = (one for one in tea.installed.tasks if one.id == task)
    told: list[UserInstructions] = []

    def make(instructions: UserInstructions) -> UserSimulator:
        told.append(instructions)
        return UserSimulator(ScriptedModel({"play_user": list(user or ())}, name="u"), instructions, prompts=Prompts())

    options = {"language": "en"} if user is not None else {"language": "en", "play": play_as}
    agent = ModelAgent(ScriptedModel({"agent_turn": [said(reply) for reply in replies]}, name="m"))
    world = BenchWorld("ace", "v", found, crew, rules=rules_of(tea), options=options, mode="conversation", user=make)
    return await play(world, agent, step_limit=20), told


async def run(tea: Installation, out: Path, agent: str, **more: Any) -> RolloutReport:
    options = more.pop("options", None)
    settings = RolloutSettings.model_validate({"agent": agent, "out": out, **more})
    return await run_bench(tea, settings, options=options)


async def test_what_is_recorded_is_played_by_the_way_that_leads_there_and_faults_are_found(tea: Installation) -> None:
    found = {name: one for name, one in tea.installed.recorded.items() if not name.startswith("zh_")}
    assert {name.removeprefix("agent_multi_"): one.passes for name, one in found.items()} == {
        "step_0": True,
        "step_1": True,
        "step_2": True,
        "step_3": False,
        "turn_0": True,
        "turn_1": True,
    }
    assert [name for name, one in found.items() if one.noop] == ["agent_multi_step_3"]
    assert [name for name, one in found.items() if one.early] == ["agent_multi_turn_1"]
    tasks = {task.id: task for task in tea.installed.tasks}
    assert tasks["agent_multi_step_3"].gold is None  # one of its milestones is no call
    gold = tasks["agent_multi_step_1"].gold
    assert gold is not None
    assert gold[0][1].arguments == {"guest": "Aunt O'Hara", "kind": "Earl's green"}


async def test_tasks_need_a_checkout_that_the_user_names(tea: Installation) -> None:
    with pytest.raises(UsageError, match="needs --data DIR: a checkout of"):
        await install(benchmark_named("ace"))
    assert tea.installed.version == "0.1"


async def test_each_language_is_a_whole_benchmark_and_runs_of_both_are_not_compared(
    tea: Installation, tmp_path: Path
) -> None:
    english = await run(tea, tmp_path / "en", "noop")
    chinese = await run(tea, tmp_path / "zh", "noop", options={"language": "zh"})
    assert (english.played, chinese.played) == (6, 6)
    with pytest.raises(UsageError, match="language is 'en' in the first and 'zh' in the second"):
        compare_bench(english.run, chinese.run)
    with pytest.raises(UsageError, match="no task 'zh_agent_multi_step_0'"):
        await run_bench(tea, RolloutSettings(agent="noop", out=tmp_path / "x"), names=("zh_agent_multi_step_0",))
    for runs, published in (([english.run], True), ([chinese.run], False)):
        rows = next(tables_of(bench_report(runs))).rows
        assert any("published" in row[0] for row in rows) == published


async def test_recorded_solutions_and_doing_nothing_are_ceiling_and_floor(tea: Installation, tmp_path: Path) -> None:
    runs = [(await run(tea, tmp_path / agent, agent)).run for agent in ("oracle", "noop")]
    oracle, noop = bench_report(runs).runs
    assert (oracle.total.official.value, oracle.total.tasks) == (1.0, 5)  # one has no solution that can be played
    assert oracle.violations == {}
    assert noop.parts["multi_step"].official.value == 0.25
    assert noop.parts["multi_turn"].official.value == 0.0
    assert (noop.parts["multi_step"].floor, noop.parts["multi_step"].ceiling) == (0.25, 0.75)
    assert noop.total.further["part.process"].value == 0.125
    assert next(tables_of(bench_report(runs))).head == ("model", "Multi-Step", "Multi-Turn", "ACE", "process")


async def test_the_process_counts_messages_in_their_order_and_is_whole_at_the_right_end(
    tea: Installation, crew: Crew
) -> None:
    async def scores(task: str, *replies: Reply) -> tuple[float, float]:
        found, _ = await played(tea, crew, task, *replies)
        return found.scores["official"], found.scores["part.process"]

    wrong = ("pour", {"guest": "Ada", "kind": "black"})
    assert await scores("agent_multi_step_0", [PLUG_IN], [wrong], "Done.") == (0.0, 0.5)
    assert await scores("agent_multi_step_0", [PLUG_IN, wrong], "Done.") == (0.0, 0.0)  # one message, and no milestone
    assert await scores("agent_multi_step_0", [POUR], [PLUG_IN], "Done.") == (0.0, 0.5)  # too early
    assert await scores("agent_multi_step_0", [wrong, PLUG_IN], [POUR], "Done.") == (1.0, 1.0)  # a way of its own
    both = [POUR, ("pour", {"guest": "Bo", "kind": "mint"})]
    first, _ = await played(
        tea, crew, "agent_multi_turn_1", [PLUG_IN], both, [("pour", {"guest": "Cy", "kind": "x"})], "."
    )
    assert first.scores["part.process"] == pytest.approx(2 / 3)


async def test_a_call_that_fails_is_told_and_one_of_an_unknown_tool_is_refused_and_counted(
    tea: Installation, crew: Crew
) -> None:
    found, _ = await played(
        tea, crew, "agent_multi_turn_1", [POUR], [("smash", {})], [("play", {"song": "x"})], [("pour", {"cup": 1})], "."
    )
    seen = [step.observations[0] for step in found.steps[:-1]]
    assert '"no power"' in seen[0].content
    assert [one.is_error for one in seen] == [False, True, True, True]
    assert "in pieces" in seen[1].content
    assert "no tool named 'play'" in seen[2].content
    assert found.scores["violation.unknown_tool"] == 1.0


async def test_what_one_trial_left_behind_is_not_there_in_the_next(tea: Installation, crew: Crew) -> None:
    first, _ = await played(tea, crew, "agent_multi_step_0", [PLUG_IN], [POUR], "Done.")
    await played(tea, crew, "agent_multi_step_0", [PLUG_IN], [POUR], [("smash", {})], "Done.")
    nothing, _ = await played(tea, crew, "agent_multi_step_0", [POUR], "Done.")
    again, _ = await played(tea, crew, "agent_multi_step_0", [PLUG_IN], [POUR], "Done.")
    assert '"no power"' in nothing.steps[0].observations[0].content
    assert (first.scores, again.scores) == (again.scores, first.scores)
    assert [step.state_digest for step in first.steps] == [step.state_digest for step in again.steps]
    assert (again.scores["official"], nothing.scores["official"]) == (1.0, 0.0)


async def test_a_conversation_has_a_user_with_instructions_and_an_agent_with_rules_but_no_form(
    tea: Installation, crew: Crew
) -> None:
    found, told = await played(
        tea, crew, "agent_multi_turn_0", "What tea?", [PLUG_IN], [POUR], "Here.", user=["Tea!", "Mint.", "###STOP###"]
    )
    assert told == [UserInstructions(text="You want mint tea, and are Ada.", greeting="Tea?", language="en")]
    assert found.system_prompt == "It is tea time."
    assert (found.stop, found.scores["official"]) == (StopReason.USER_STOPPED, 1.0)
    assert [step.user.content for step in found.steps if step.user is not None] == ["Tea!", "Mint."]


async def test_the_agent_ends_a_conversation_by_the_words_that_the_benchmark_has_for_it(
    tea: Installation, crew: Crew
) -> None:
    found, _ = await played(
        tea, crew, "agent_multi_turn_0", [PLUG_IN], [POUR], "So the tea is served.", user=["Mint, for Ada."]
    )
    assert (found.stop, found.scores["official"]) == (StopReason.FINISHED, 1.0)


async def test_a_task_of_several_steps_is_told_at_once_and_nobody_answers(tea: Installation, crew: Crew) -> None:
    found, told = await played(tea, crew, "agent_multi_step_0", "Which tea?", user=[])
    assert told == []
    assert (found.system_prompt, found.stop) == ("", StopReason.FINISHED)
    assert found.steps[0].user is not None
    assert found.steps[0].user.content == "Mint tea for Ada."


async def test_a_library_can_be_compared_with_it(tea: Installation) -> None:
    contents = await contents_of(tea)
    tools = {one.name: {tool.name for tool in one.tools} for one in contents.environments}
    own = {"BaseApi": {"plug_in"}, "Kettle": {"plug_in", "pour", "smash"}, "Radio": {"plug_in", "play"}}
    assert tools == own
    assert contents.tasks[0].said == ("Mint tea for Ada.",)


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=9)
ARGUMENTS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3).filter(lambda name: not keyword.iskeyword(name)),
    VALUES | st.lists(VALUES, max_size=2) | st.dictionaries(st.text(max_size=3), VALUES, max_size=2),
    max_size=3,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.sampled_from(["pour", "plug_in"]), ARGUMENTS), min_size=1, max_size=2))
def test_what_is_written_is_read_as_the_same_calls(calls: list[tuple[str, dict[str, Any]]]) -> None:
    assert read(written(calls)) == calls


def test_recorded_messages_are_read_as_what_they_say() -> None:
    assert read(PLUG) == [("plug_in", {})]
    assert written(read(MINT)) == MINT
    assert read(LONG) == [("pour", {"guest": "Aunt O'Hara", "kind": "Earl's green"})]
    assert read("[note(text='It's \"quoted\", isn't it', items=[{'name':'a'}])] ") == [
        ("note", {"text": "It's \"quoted\", isn't it", "items": [{"name": "a"}]})
    ]
    for wrong in ("[:-)]", "plug_in()", "[plug_in]", "[pour('Ada')]", "[house.pour()]"):
        with pytest.raises(ValueError, match=r"holds|is no list"):
            read(wrong)
