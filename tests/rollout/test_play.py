from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from typing import Any

import pytest
from env.lending import EFFECTS, SOURCE, scenario, skeleton

from envscaler.agents import ModelAgent, NoopAgent, OracleAgent, UserSimulator, system_prompt
from envscaler.agents.dialects import DIALECTS, dialect_of
from envscaler.errors import (
    BudgetExhausted,
    EndpointRejected,
    EndpointUnavailable,
    RequestFailed,
    SandboxError,
    WorkerLost,
)
from envscaler.llm.chat import Completion, ModelRequest
from envscaler.llm.scripted import Scripted, ScriptedModel
from envscaler.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from envscaler.roles.role import Prompts
from envscaler.rollout import ScenarioWorld, play
from envscaler.rollout.slip_policy import CallPolicy, OnSlip
from envscaler.rollout.world import Score
from envscaler.sandbox import Limits, Sandbox
from envscaler.trajectory import StopReason, Trajectory, Usage

ENVIRONMENT = skeleton()
SCENARIO = scenario(ENVIRONMENT)


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    async with Sandbox() as opened:
        yield opened


def calls(*called: tuple[str, dict[str, Any]]) -> AssistantMessage:
    return AssistantMessage(
        reasoning="let me see", tool_calls=tuple(ToolCall(name=name, arguments=args) for name, args in called)
    )


LEND = ("lend_book", {"book_id": "B1", "member": "Ann"})


async def played(sandbox: Sandbox, *replies: Scripted, step_limit: int = 30, **options: Any) -> Trajectory:
    agent = ModelAgent(ScriptedModel({"agent_turn": list(replies)}, name="m"))
    return await play(ScenarioWorld(ENVIRONMENT, SCENARIO, sandbox, **options), agent, step_limit=step_limit)


@pytest.mark.anyio
async def test_episode_is_recorded_step_by_step(sandbox: Sandbox) -> None:
    trajectory = await played(sandbox, calls(("find_books", {})), calls(LEND), "Done.")
    assert trajectory.stop == StopReason.FINISHED
    assert trajectory.reward("gained") == 1.0
    assert trajectory.system_prompt == system_prompt(ENVIRONMENT.doc, "non-conversation")
    assert [tool.name for tool in trajectory.tools] == list(EFFECTS)
    first, second, final = trajectory.steps
    assert first.user == UserMessage(content=SCENARIO.task)
    assert first.assistant.reasoning == "let me see"
    assert second.user is None
    assert json.loads(second.observations[0].content)["success"]
    assert first.state_digest != second.state_digest == final.state_digest
    assert final.assistant.content == "Done."
    assert (trajectory.env_digest, trajectory.scenario_digest) == (ENVIRONMENT.digest, SCENARIO.digest)


@pytest.mark.anyio
async def test_calls_of_one_turn_run_in_order_and_each_is_answered(sandbox: Sandbox) -> None:
    trajectory = await played(
        sandbox, calls(LEND, ("nonsense", {}), ("return_book", {"loan_id": "L1"}), ("find_books", {})), "Done."
    )
    step = trajectory.steps[0]
    assert [seen.tool_call_id for seen in step.observations] == [call.id for call in step.assistant.tool_calls]
    assert [seen.is_error for seen in step.observations] == [False, True, False, False]
    assert "Emma" in step.observations[3].content
    assert trajectory.verdict is not None
    assert not trajectory.verdict.solved


@pytest.mark.anyio
async def test_malformed_arguments_are_answered_and_the_episode_goes_on(sandbox: Sandbox) -> None:
    broken = AssistantMessage(tool_calls=(ToolCall(name="lend_book", malformed='{"book_id": '),))
    trajectory = await played(sandbox, broken, calls(LEND), "Done.")
    assert trajectory.steps[0].observations[0].is_error
    assert trajectory.reward() == 1.0


@pytest.mark.anyio
async def test_step_limit_cuts_the_episode_and_what_was_reached_is_judged(sandbox: Sandbox) -> None:
    trajectory = await played(sandbox, calls(LEND), calls(LEND), step_limit=1)
    assert trajectory.stop == StopReason.STEP_LIMIT
    assert len(trajectory.steps) == 1
    assert trajectory.reward() == 1.0


@pytest.mark.anyio
async def test_final_message_at_the_step_limit_still_finishes(sandbox: Sandbox) -> None:
    assert (await played(sandbox, "Nothing to do.", step_limit=1)).stop == StopReason.FINISHED


@pytest.mark.anyio
async def test_reply_cut_at_the_token_limit_is_not_carried_out(sandbox: Sandbox) -> None:
    cut = Completion(message=calls(LEND), finish_reason="length", model="m")
    trajectory = await played(sandbox, cut)
    assert trajectory.stop == StopReason.TOKEN_LIMIT
    assert trajectory.steps[0].observations == ()
    assert trajectory.reward("gained") == 0.0


@pytest.mark.anyio
async def test_empty_reply_is_answered_and_three_in_a_row_end_the_episode(sandbox: Sandbox) -> None:
    trajectory = await played(sandbox, "  ", calls(LEND), "", "", "")
    assert [[slip.kind for slip in step.slips] for step in trajectory.steps] == [
        ["empty_reply"],
        [],
        *[["empty_reply"]] * 3,
    ]
    assert all(seen.is_error for seen in trajectory.steps[0].observations)
    assert trajectory.stop == StopReason.INVALID_ACTION
    assert trajectory.error
    assert trajectory.reward() == 1.0


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("failure", "stop"),
    [
        (EndpointUnavailable("down"), StopReason.INFRASTRUCTURE),
        (RequestFailed("always an error"), StopReason.INFRASTRUCTURE),
        (BudgetExhausted("used up"), StopReason.BUDGET),
    ],
)
async def test_failure_of_the_machinery_is_never_a_reward(
    sandbox: Sandbox, failure: Exception, stop: StopReason
) -> None:
    trajectory = await played(sandbox, calls(LEND), failure)
    assert trajectory.stop == stop
    assert trajectory.verdict is None
    assert trajectory.reward() is None
    assert trajectory.error == f"{type(failure).__name__}: {failure}"
    assert len(trajectory.steps) == 1


@pytest.mark.anyio
async def test_conversation_that_outgrew_the_context_ends_at_the_token_limit(sandbox: Sandbox) -> None:
    trajectory = await played(sandbox, calls(LEND), RequestFailed("refuses: maximum context length is 8192 tokens"))
    assert trajectory.stop == StopReason.TOKEN_LIMIT
    assert trajectory.reward() == 1.0


@pytest.mark.anyio
async def test_endpoint_that_refuses_for_good_ends_the_run(sandbox: Sandbox) -> None:
    with pytest.raises(EndpointRejected):
        await played(sandbox, EndpointRejected("wrong key"))


@pytest.mark.anyio
async def test_lost_worker_is_infrastructure_and_the_world_is_closed(sandbox: Sandbox) -> None:
    class Losing(ScenarioWorld):
        closed = 0

        async def call(self, call: ToolCall) -> ToolMessage:
            raise SandboxError("the worker is gone")

        async def close(self) -> None:
            self.closed += 1
            await super().close()

    world = Losing(ENVIRONMENT, SCENARIO, sandbox)
    trajectory = await play(world, OracleAgent(), step_limit=30)
    assert (trajectory.stop, trajectory.verdict) == (StopReason.INFRASTRUCTURE, None)
    assert world.closed == 1


@pytest.mark.anyio
async def test_failure_while_judging_is_infrastructure_too(sandbox: Sandbox) -> None:
    class Unjudged(ScenarioWorld):
        async def score(self) -> Score:
            raise SandboxError("no worker for checks")

    trajectory = await play(Unjudged(ENVIRONMENT, SCENARIO, sandbox), NoopAgent(), step_limit=30)
    assert (trajectory.stop, trajectory.verdict) == (StopReason.INFRASTRUCTURE, None)


@pytest.mark.anyio
async def test_oracle_solves_and_noop_gains_nothing(sandbox: Sandbox) -> None:
    solved = await play(ScenarioWorld(ENVIRONMENT, SCENARIO, sandbox), OracleAgent(), step_limit=30)
    assert solved.verdict is not None
    assert solved.verdict.solved
    assert solved.use == {}
    idle = await play(ScenarioWorld(ENVIRONMENT, SCENARIO, sandbox), NoopAgent(), step_limit=30)
    assert idle.reward("gained") == 0.0


@pytest.mark.anyio
async def test_tokens_and_cost_of_the_agent_are_recorded(sandbox: Sandbox) -> None:
    reply = Completion(
        message=AssistantMessage(content="Done."),
        usage=Usage(input_tokens=10, output_tokens=2),
        model="m",
        cost_usd=None,
    )
    use = (await played(sandbox, reply)).use["agent_turn"]
    assert (use.calls, use.input_tokens, use.output_tokens, use.cost_usd) == (1, 10, 2, None)


def user(*turns: str) -> UserSimulator:
    return UserSimulator(ScriptedModel({"user_turn": list(turns)}, name="u"), SCENARIO, prompts=Prompts())


@pytest.mark.anyio
async def test_conversation_goes_back_and_forth_until_the_user_stops(sandbox: Sandbox) -> None:
    speaker = user("I want a book.", "Emma, for Ann.", "Thanks!###STOP###")
    trajectory = await played(sandbox, "Which one?", calls(LEND), "Emma is lent.", user=speaker)
    assert (trajectory.stop, trajectory.mode) == (StopReason.USER_STOPPED, "conversation")
    assert [step.turn for step in trajectory.steps] == [0, 1, 1]
    assert [step.user.content if step.user else None for step in trajectory.steps] == [
        "I want a book.",
        "Emma, for Ann.",
        None,
    ]
    assert trajectory.reward() == 1.0
    assert trajectory.use["user_turn"].calls == 3
    assert trajectory.system_prompt == system_prompt(ENVIRONMENT.doc, "conversation")
    assert SCENARIO.task not in trajectory.model_dump_json()


@pytest.mark.anyio
async def test_user_that_gives_no_message_is_infrastructure(sandbox: Sandbox) -> None:
    trajectory = await played(sandbox, "Which one?", user=user("I want a book.", *[""] * 5))
    assert (trajectory.stop, trajectory.verdict) == (StopReason.INFRASTRUCTURE, None)


@pytest.mark.anyio
async def test_step_limit_of_a_conversation_is_not_followed_by_another_user_turn(sandbox: Sandbox) -> None:
    speaker = user("I want a book.")
    trajectory = await played(sandbox, "Which one?", user=speaker, step_limit=1)
    assert trajectory.stop == StopReason.STEP_LIMIT


@pytest.mark.anyio
async def test_agent_sees_the_observations_as_recorded(sandbox: Sandbox) -> None:
    seen: list[tuple[Message, ...]] = []

    def answer(request: ModelRequest) -> Scripted:
        seen.append(request.messages)
        return calls(("find_books", {"title": "œuvres"})) if len(seen) == 1 else "Done."

    trajectory = await play(
        ScenarioWorld(ENVIRONMENT, SCENARIO, sandbox), ModelAgent(ScriptedModel(answer)), step_limit=5
    )
    assert seen[1][-1] == trajectory.steps[0].observations[0]
    assert "Œuvres" in trajectory.steps[0].observations[0].content


@pytest.mark.anyio
async def test_tool_that_kills_its_worker_does_not_end_the_episode(sandbox: Sandbox) -> None:
    deadly = SOURCE + '\n    def vanish(self) -> Any:\n        """Vanish."""\n        import os\n        os._exit(3)\n'
    environment = skeleton(deadly, {**EFFECTS, "vanish": "query"})
    agent = ModelAgent(ScriptedModel({"agent_turn": [calls(("vanish", {})), calls(LEND), "Done."]}))
    trajectory = await play(ScenarioWorld(environment, scenario(environment), sandbox), agent, step_limit=9)
    assert trajectory.steps[0].observations[0].is_error
    assert trajectory.reward() == 1.0


# -- slips and several calls ---------------------------------------------------------------------------------


def hermes(*replies: Scripted) -> ModelAgent:
    return ModelAgent(ScriptedModel({"agent_turn": list(replies)}, name="m"), dialect=dialect_of("hermes"))


async def dialogue(sandbox: Sandbox, agent: ModelAgent, policy: CallPolicy | None = None) -> Trajectory:
    return await play(ScenarioWorld(ENVIRONMENT, SCENARIO, sandbox), agent, step_limit=30, policy=policy)


LENDS = '{"name": "lend_book", "arguments": {"book_id": "B1", "member": "Ann"}}'
UNCLOSED = f"<tool_call>\n{LENDS}"
CUT = '<tool_call>\n{"name": "lend_book", "arguments": {"book_id": "B'


@pytest.mark.anyio
async def test_dialect_and_the_reply_as_written_stand_in_the_record(sandbox: Sandbox) -> None:
    reply = f"<think>B1</think>\n<tool_call>\n{LENDS}\n</tool_call>"
    trajectory = await dialogue(sandbox, hermes(reply, "Done."))
    assert trajectory.dialect == "hermes"
    assert trajectory.steps[0].raw == reply
    assert trajectory.steps[0].assistant.reasoning == "B1"
    assert trajectory.steps[0].slips == ()
    assert trajectory.reward("gained") == 1.0
    assert (await played(sandbox, calls(LEND), "Done.")).dialect is None


@pytest.mark.anyio
async def test_certain_slip_is_put_right_and_marked(sandbox: Sandbox) -> None:
    trajectory = await dialogue(sandbox, hermes(UNCLOSED, "Done."))
    assert [(slip.kind, slip.repaired) for slip in trajectory.steps[0].slips] == [("unclosed_tag", True)]
    assert trajectory.reward("gained") == 1.0


@pytest.mark.anyio
async def test_under_error_the_model_is_told_its_slip_and_nothing_is_carried_out(sandbox: Sandbox) -> None:
    good = f"<tool_call>\n{LENDS}\n</tool_call>"
    agent = hermes(UNCLOSED, good, "Done.")
    trajectory = await dialogue(sandbox, agent, CallPolicy(on_slip="error"))
    first, second, _ = trajectory.steps
    assert [(slip.kind, slip.repaired) for slip in first.slips] == [("unclosed_tag", False)]
    assert first.observations[0].is_error
    assert "not closed" in first.observations[0].content
    assert "<tool_call>" in first.observations[0].content
    assert not second.observations[0].is_error
    assert trajectory.stop == StopReason.FINISHED


@pytest.mark.anyio
async def test_under_stop_the_first_slip_ends_the_episode(sandbox: Sandbox) -> None:
    trajectory = await dialogue(sandbox, hermes(UNCLOSED), CallPolicy(on_slip="stop"))
    assert trajectory.stop == StopReason.INVALID_ACTION
    assert trajectory.error == "the call is not closed"
    assert trajectory.steps[0].observations == ()
    assert trajectory.reward("gained") == 0.0


@pytest.mark.anyio
@pytest.mark.parametrize("on_slip", ["repair", "error"])
async def test_three_bad_replies_in_a_row_end_the_episode_and_a_good_one_between_them_does_not(
    sandbox: Sandbox, on_slip: OnSlip
) -> None:
    policy = CallPolicy(on_slip=on_slip)
    ended = await dialogue(sandbox, hermes(CUT, CUT, CUT), policy)
    assert (ended.stop, len(ended.steps)) == (StopReason.INVALID_ACTION, 3)
    look = '<tool_call>\n{"name": "find_books", "arguments": {}}\n</tool_call>'
    went_on = await dialogue(sandbox, hermes(CUT, CUT, look, CUT, CUT, "Sorry."), policy)
    assert (went_on.stop, len(went_on.steps)) == (StopReason.FINISHED, 6)
    assert all(len(step.observations) == len(step.assistant.tool_calls) for step in went_on.steps)


@pytest.mark.anyio
async def test_cut_call_changes_nothing_and_is_told(sandbox: Sandbox) -> None:
    trajectory = await dialogue(sandbox, hermes(CUT, "Done."))
    (call,) = trajectory.steps[0].assistant.tool_calls
    assert call.malformed == CUT
    assert "breaks off" in trajectory.steps[0].observations[0].content
    assert trajectory.reward("gained") == 0.0


@pytest.mark.anyio
async def test_after_a_call_that_cannot_be_read_no_other_of_the_reply_is_carried_out(sandbox: Sandbox) -> None:
    broken = '<tool_call>\n{"name": "lend_book", "arguments": ["B1", "Ann"]}\n</tool_call>'
    reply = f"{broken}\n<tool_call>\n{LENDS}\n</tool_call>"
    trajectory = await dialogue(sandbox, hermes(reply, "Done."))
    step = trajectory.steps[0]
    assert [seen.tool_call_id for seen in step.observations] == [call.id for call in step.assistant.tool_calls]
    assert [seen.is_error for seen in step.observations] == [True, True]
    assert trajectory.reward("gained") == 0.0


@pytest.mark.anyio
@pytest.mark.parametrize("on_slip", ["repair", "error"])
async def test_with_single_calls_the_first_is_carried_out_and_each_other_is_told_that_it_was_not(
    sandbox: Sandbox, on_slip: OnSlip
) -> None:
    agent = ModelAgent(ScriptedModel({"agent_turn": [calls(LEND, ("return_book", {"loan_id": "L1"}), LEND), "Done."]}))
    trajectory = await dialogue(sandbox, agent, CallPolicy(on_slip=on_slip, parallel=False))
    step = trajectory.steps[0]
    assert [seen.tool_call_id for seen in step.observations] == [call.id for call in step.assistant.tool_calls]
    assert [seen.is_error for seen in step.observations] == [False, True, True]
    assert [slip.kind for slip in step.slips] == ["second_call"]
    assert trajectory.reward("gained") == 1.0


@pytest.mark.anyio
async def test_with_single_calls_and_stop_the_second_call_ends_the_episode_before_the_first(sandbox: Sandbox) -> None:
    agent = ModelAgent(ScriptedModel({"agent_turn": [calls(LEND, LEND)]}))
    trajectory = await dialogue(sandbox, agent, CallPolicy(on_slip="stop", parallel=False))
    assert trajectory.stop == StopReason.INVALID_ACTION
    assert trajectory.reward("gained") == 0.0


@pytest.mark.anyio
async def test_call_in_the_content_of_a_native_reply_is_played_and_marked(sandbox: Sandbox) -> None:
    trajectory = await played(sandbox, f"```json\n{LENDS}\n```", "Done.")
    assert {slip.kind for slip in trajectory.steps[0].slips} == {"call_in_content", "fenced_call"}
    assert trajectory.steps[0].raw == f"```json\n{LENDS}\n```"
    assert trajectory.reward("gained") == 1.0


@pytest.mark.anyio
async def test_every_dialect_plays_an_episode_to_its_end(sandbox: Sandbox) -> None:
    for name in DIALECTS:
        dialect = dialect_of(name)
        if name == "native":
            script: list[Scripted] = [calls(LEND), "Done."]
        else:
            said = (calls(LEND).model_copy(update={"reasoning": None}), AssistantMessage(content="Done."))
            script = [dialect.text_of(message, {tool.name: tool for tool in ENVIRONMENT.tools}) for message in said]
        model = ScriptedModel({"agent_turn": script}, name="m")
        trajectory = await dialogue(sandbox, ModelAgent(model, dialect=dialect))
        assert (trajectory.stop, trajectory.reward("gained")) == (StopReason.FINISHED, 1.0), name
        assert [step.slips for step in trajectory.steps] == [(), ()]
        assert trajectory.steps[1].assistant.content == "Done."
        assert [bool(request.tools) for request in model.requests] == [name == "native"] * 2


# -- time-outs, and calls whose delivery is not known --------------------------------------------------------

SLOW = SOURCE + '\n    def spin(self) -> Any:\n        """Spin."""\n        while True:\n            pass\n'


@pytest.mark.anyio
async def test_three_timeouts_in_a_row_end_the_episode_and_it_is_judged() -> None:
    environment = skeleton(SLOW, {**EFFECTS, "spin": "query"})
    spin = calls(("spin", {}))
    async with Sandbox(Limits(cpu_s=0.1, cpu_kill_s=0.5)) as quick:
        agent = ModelAgent(ScriptedModel({"agent_turn": [calls(LEND), spin, calls(LEND), spin, spin, spin, "Done."]}))
        trajectory = await play(ScenarioWorld(environment, scenario(environment), quick), agent, step_limit=30)
    assert trajectory.stop == StopReason.ENVIRONMENT_TIMEOUT
    assert len(trajectory.steps) == 6
    assert [step.observations[0].fault for step in trajectory.steps][-1] == "timeout"
    assert trajectory.reward("gained") == 1.0


@pytest.mark.anyio
async def test_call_whose_worker_is_lost_is_handed_over_once_and_ends_the_episode(sandbox: Sandbox) -> None:
    class Lost(ScenarioWorld):
        handed_over = 0

        async def call(self, call: ToolCall) -> ToolMessage:
            self.handed_over += 1
            await super().call(call)
            raise WorkerLost("after the call had been carried out")

    world = Lost(ENVIRONMENT, SCENARIO, sandbox)
    agent = ModelAgent(ScriptedModel({"agent_turn": [calls(LEND, LEND), calls(LEND), "Done."]}))
    trajectory = await play(world, agent, step_limit=30)
    assert (world.handed_over, trajectory.stop, trajectory.verdict) == (1, StopReason.INFRASTRUCTURE, None)
    assert trajectory.steps == ()


@pytest.mark.anyio
async def test_worker_killed_in_the_middle_of_a_call_leaves_the_call_made_once(sandbox: Sandbox) -> None:
    class Killing(ScenarioWorld):
        async def call(self, call: ToolCall) -> ToolMessage:
            session = self._env._require_session()
            assert session.worker is not None
            made = asyncio.ensure_future(super().call(call))
            await asyncio.sleep(0)
            if session.worker is not None:
                os.kill(session.worker.pid, signal.SIGKILL)
            return await made

    agent = ModelAgent(ScriptedModel({"agent_turn": [calls(LEND), "Done."]}))
    trajectory = await play(Killing(ENVIRONMENT, SCENARIO, sandbox), agent, step_limit=30)
    # A second delivery would have found no copy left.
    assert json.loads(trajectory.steps[0].observations[0].content)["success"]
    assert trajectory.reward("gained") == 1.0
