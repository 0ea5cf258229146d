"""The oracle: it plays what is recorded, or another way to the same end, and says truly what it did."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from env.lending import STATE, scenario, skeleton
from hypothesis import given
from hypothesis import strategies as st

from envscaler.agents import Briefing, OracleAgent
from envscaler.env import Homes, Library, open_library
from envscaler.llm.chat import Completion
from envscaler.messages import NOT_MADE, Message, ToolCall, ToolMessage, UserMessage
from envscaler.models import ModelSettings, open_models
from envscaler.roles.role import Prompts
from envscaler.rollout import ScenarioWorld, play
from envscaler.sandbox import Sandbox
from envscaler.scenario import Scenario, SolutionCall
from envscaler.synth import SynthSettings, run_synth
from envscaler.trajectory import StopReason, Trajectory

ENVIRONMENT = skeleton()
SCENARIO = scenario(ENVIRONMENT)
START: list[Message] = [UserMessage(content=SCENARIO.task)]
TASKS = (
    "Move twenty pallets from the north warehouse to the one in Leith.",
    "Reschedule my dental appointment with Dr. Amari to next Tuesday morning.",
    "请把孙俊杰借的《安静的引擎》续借一周。",
)
SAMPLES = 16


def briefing(played: Scenario = SCENARIO, *, sample: int = 0, language: str = "en") -> Briefing:
    return Briefing(
        mode="non-conversation",
        sample=sample,
        seed=0,
        scenario=played,
        entities=ENVIRONMENT.entities,
        language=language,
    )


def answered(completion: Completion, content: str) -> list[Message]:
    (call,) = completion.message.tool_calls
    assert call.id is not None
    return [completion.message, ToolMessage(content=content, tool_call_id=call.id, name=call.name)]


@pytest.mark.anyio
async def test_oracle_puts_real_results_into_the_recorded_calls() -> None:
    player = OracleAgent().start(briefing())
    first = await player.act(START, ENVIRONMENT.tools)
    conversation = START + answered(first, json.dumps({"data": [{"book_id": "B7"}]}))
    second = await player.act(conversation, ENVIRONMENT.tools)
    assert second.message.tool_calls[0].arguments == {"book_id": "B7", "member": "Ann"}
    final = await player.act(conversation + answered(second, "{}"), ENVIRONMENT.tools)
    assert final.message.content
    assert not final.message.tool_calls


@pytest.mark.anyio
@pytest.mark.parametrize("observation", ["Error: nothing", "{'data': []}", '{"data": []}'])
async def test_oracle_keeps_the_recorded_value_where_the_real_one_is_missing(observation: str) -> None:
    player = OracleAgent().start(briefing())
    first = await player.act(START, ENVIRONMENT.tools)
    second = await player.act(START + answered(first, observation), ENVIRONMENT.tools)
    assert second.message.tool_calls[0].arguments == {"book_id": "B1", "member": "Ann"}


@pytest.mark.anyio
async def test_oracle_reads_observations_in_the_released_style() -> None:
    player = OracleAgent().start(briefing())
    first = await player.act(START, ENVIRONMENT.tools)
    second = await player.act(START + answered(first, "{'data': [{'book_id': 'B8'}], 'ok': True}"), ENVIRONMENT.tools)
    assert second.message.tool_calls[0].arguments["book_id"] == "B8"


def test_oracle_cannot_play_without_a_solution() -> None:
    assert OracleAgent().unplayable(scenario(ENVIRONMENT, solution=None)) == "no recorded solution"
    assert OracleAgent().unplayable(scenario(ENVIRONMENT, solution=())) is None


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=3))
def test_resolving_bindings_leaves_the_recorded_call_alone(result: dict[str, int]) -> None:
    assert SCENARIO.solution is not None
    recorded = SCENARIO.solution[1]
    recorded.resolved([{"data": [{"book_id": str(result)}]}])
    assert recorded.arguments == {"book_id": "B1", "member": "Ann"}
    assert STATE["next_loan"] == 1


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as opened:
        yield opened


async def varied(sandbox: Sandbox, played: Scenario = SCENARIO, *, sample: int = 1) -> Trajectory:
    return await play(ScenarioWorld(ENVIRONMENT, played, sandbox, sample=sample), OracleAgent("varied"), step_limit=30)


def made(trajectory: Trajectory) -> list[ToolCall]:
    return [call for step in trajectory.steps for call in step.assistant.tool_calls]


def sketch(trajectory: Trajectory) -> list[tuple[str, str]]:
    return [(call.name, json.dumps(call.arguments)) for call in made(trajectory)]


@pytest.mark.anyio
async def test_first_sample_is_the_plain_solution_and_the_others_vary(sandbox: Sandbox) -> None:
    first = await varied(sandbox, sample=0)
    assert [call.name for call in made(first)] == ["find_books", "lend_book"]
    others = [sketch(await varied(sandbox, sample=sample)) for sample in range(1, 13)]
    assert all(other != sketch(first) for other in others)
    assert len({str(other) for other in others}) > 4
    assert others[2] == sketch(await varied(sandbox, sample=3))


@pytest.mark.anyio
async def test_mistakes_are_refused_and_put_right_at_once(sandbox: Sandbox) -> None:
    seen = 0
    for sample in range(1, 16):
        trajectory = await varied(sandbox, sample=sample)
        assert trajectory.reward("solved") == 1.0
        for step, following in zip(trajectory.steps, trajectory.steps[1:], strict=False):
            if "corrected" in following.assistant.content:
                seen += 1
                (wrong,), (right,) = step.assistant.tool_calls, following.assistant.tool_calls
                assert wrong.name == right.name
                assert wrong.arguments != right.arguments
                refused = "refused" in following.assistant.content
                assert refused == (step.observations[0].is_error or '"success":false' in step.observations[0].content)
    assert seen > 3


@pytest.mark.anyio
async def test_calls_of_one_episode_have_ids_of_their_own(sandbox: Sandbox) -> None:
    ids = [call.id for call in made(await varied(sandbox, sample=2))]
    assert len(set(ids)) == len(ids)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "Done: lend book (Emma, Ann). I changed nothing else."),
        ("zh", "已办理：lend_book of the desk（Emma、Ann）。其他内容没有改动。"),
        ("de", "Done: lend book (Emma, Ann). I changed nothing else."),
    ],
)
async def test_last_message_says_what_was_done_in_the_language_of_the_task(language: str, said: str) -> None:
    player = OracleAgent().start(briefing(language=language))
    conversation = list(START)
    for content in (json.dumps({"data": [{"book_id": "B1"}]}), json.dumps({"success": True})):
        conversation += answered(await player.act(conversation, ENVIRONMENT.tools), content)
    assert (await player.act(conversation, ENVIRONMENT.tools)).message.content == said


@pytest.mark.anyio
@pytest.mark.parametrize(
    "content", ['{"success": false, "error": "no copy"}', "{'success': False, 'error': 'no copy'}"]
)
async def test_what_was_refused_is_not_said_to_be_done(content: str) -> None:
    player = OracleAgent().start(briefing())
    conversation = list(START)
    for observation in ("{}", content):
        conversation += answered(await player.act(conversation, ENVIRONMENT.tools), observation)
    final = (await player.act(conversation, ENVIRONMENT.tools)).message.content
    assert final == "Not possible: lend book (Emma, Ann). I changed nothing else."


@pytest.mark.anyio
async def test_where_nothing_is_to_be_done_nothing_is_said_to_be_done() -> None:
    for style in ("plain", "varied"):
        player = OracleAgent(style).start(briefing(scenario(ENVIRONMENT, solution=()), sample=1))
        completion = await player.act(START, ENVIRONMENT.tools)
        assert completion.message.content == "Nothing had to be changed, and I changed nothing."


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    """What the offline model makes of three tasks, one of them Chinese."""
    folder = tmp_path_factory.mktemp("oracle")
    (folder / "tasks.txt").write_text("\n".join(TASKS), encoding="utf-8")
    settings = SynthSettings(tasks=folder / "tasks.txt", library=folder / "library", rounds=2, scenarios=4, workers=1)

    async def synth() -> None:
        async with open_models(ModelSettings()) as models:
            await run_synth(settings, models, Prompts())

    asyncio.run(synth())
    return open_library(folder / "library")


@pytest.mark.anyio
async def test_every_variation_of_every_scenario_ends_solved(library: Library) -> None:
    kinds: Counter[str] = Counter()
    episodes = 0
    async with Sandbox(isolation="shared") as sandbox:
        homes = Homes(sandbox, "shared", library.store.cache_dir)
        for env_id in library.env_ids:
            skeleton = library.skeleton(env_id)
            for played in library.scenarios(env_id):
                await homes.settle(skeleton, played)
                for sample in range(SAMPLES):
                    world = ScenarioWorld(skeleton, played, sandbox, sample=sample)
                    trajectory = await play(world, OracleAgent("varied"), step_limit=30)
                    assert trajectory.stop == StopReason.FINISHED
                    assert trajectory.reward("solved") == 1.0, trajectory
                    episodes += 1
                    longer = len(made(trajectory)) - len(played.solution or ())
                    kinds["longer"] += longer > 0
                    kinds["refused"] += any(seen.is_error for step in trajectory.steps for seen in step.observations)
    assert episodes >= 100
    assert kinds["longer"] > episodes / 2
    assert kinds["refused"] > episodes / 5


@pytest.mark.anyio
async def test_what_is_recorded_by_turn_is_made_at_once_and_made_again_where_it_was_not_carried_out() -> None:
    gold = ((SolutionCall(name="a", arguments={"x": 1}), SolutionCall(name="b")), (), (SolutionCall(name="c"),))
    player = OracleAgent().start(Briefing(mode="non-conversation", sample=0, seed=0, task="t", gold=gold))
    conversation: list[Message] = [UserMessage(content="first")]

    async def step(*faults: str | None) -> list[str]:
        message = (await player.act(conversation, ())).message
        conversation.append(message)
        for call, fault in zip(message.tool_calls, faults, strict=True):
            conversation.append(ToolMessage(content="", tool_call_id=call.id or "", name=call.name, fault=fault))
        return [call.name for call in message.tool_calls]

    assert await step(None, NOT_MADE) == ["a", "b"]
    assert await step("raised") == ["b"]
    assert await step() == []
    conversation.append(UserMessage(content="second"))
    assert await step() == []
    conversation.append(UserMessage(content="third"))
    assert await step(None) == ["c"]
    conversation.append(UserMessage(content="more than is recorded"))
    assert await step() == []
