"""`perf` measures what it says: all processes are counted, all differences found, and sides make the same calls."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from envscaler.state import canonical
from perf.baseline import AuthorsWay, differences
from perf.latency_server import replies_of
from perf.machine import LARGE_S, SMALL_S, Machine
from perf.recorded import Call, question_key, running
from perf.rollouts import endpoint, step
from perf.sides import Bare
from perf.synth_calls import _busy, _chain
from perf.targets import Target
from perf.usage import measured
from perf.workloads import desk, released

BUSY = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ntime.sleep(60)"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("ended", [False, True], ids=["alive", "killed"])
def test_cpu_of_a_process_below_is_counted_alive_or_killed(ended: bool) -> None:
    with measured() as spent:
        process = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"done\n"
        if ended:
            process.kill()
            process.wait()
    process.kill()
    process.wait()
    process.stdout.close()
    assert spent.cpu_s - spent.parent_s >= 0.28  # a clock tick less than it used is what the system may tell


def test_differences_name_every_part_that_changed() -> None:
    before = {"a": {"x": 1, "y": [1, 2]}, "b": 1, "same": {"deep": [{"k": 1}]}}
    after = {"a": {"x": 2, "y": [1, 3, 4]}, "c": 1, "same": {"deep": [{"k": 1}]}}
    found = {place for place, _, _ in differences(before, after)}
    assert found == {".a.x", ".a.y[1]", ".a.y", ".b", ".c"}
    assert differences(before, before) == []


@pytest.mark.anyio
@pytest.mark.parametrize("large", [False, True])
async def test_our_program_comes_back_to_its_state_after_its_calls(large: bool) -> None:
    workload = desk(large=large)
    opened = Bare(workload)
    for name, arguments in workload.calls:
        await opened.call(name, arguments)
    lent = sum(name == "lend" for name, _ in workload.calls)
    assert vars(opened._instance) == {**workload.state, "next_loan_number": 1 + lent}


@pytest.mark.anyio
async def test_baseline_and_bare_side_come_to_the_same_state() -> None:
    workload = desk()
    theirs, ours = AuthorsWay(workload), Bare(workload)
    changes = 0
    for name, arguments in workload.calls:
        await theirs.call(name, arguments)
        await ours.call(name, arguments)
        changes += bool(theirs.last["changes"])
        assert canonical(vars(theirs._instance)) == canonical(vars(ours._instance))
    assert changes == 20  # two of three calls write


def test_a_target_is_met_from_its_own_side() -> None:
    assert Target("step", 10, 15, "µs").met
    assert not Target("rate", 10, 15, "a second", at_least=True).met
    assert Target("memory", None, 15, "MB").met is None


def test_a_figure_is_told_for_another_speed_where_it_is_a_time_or_a_rate() -> None:
    assert Target("step", 30, 15, "µs CPU").at_speed(2) == 15
    assert Target("reset", 3, 1, "ms").at_speed(2) == 1.5
    assert Target("rate", 10, 15, "a second", at_least=True).at_speed(2) == 20
    assert Target("memory", 3, 2.5, "MB").at_speed(2) is None
    assert Target("less CPU", 3, 8, "times", at_least=True).at_speed(2) is None
    assert Target("reset", None, 1, "ms").at_speed(2) is None


def test_of_two_ratios_the_speed_is_the_one_that_excuses_less() -> None:
    assert Machine(3 * SMALL_S, 2 * LARGE_S).slower == Machine(2 * SMALL_S, 3 * LARGE_S).slower == 2


def test_released_workloads_have_states_calls_and_checks(shared_data: Path) -> None:
    workloads = released()
    assert len(workloads) == 8
    assert all(workload.state and workload.calls and workload.checks for workload in workloads)


def test_a_server_of_constant_latency_and_a_model_in_process_play_whole_episodes() -> None:
    served = endpoint(0.05, 4, 6)
    assert served["calls"] == sum(map(replies_of, range(6)))
    assert served["mean_rate"] > 0 < served["share"]
    stepped = step(4, 3)
    assert (stepped["episodes"], stepped["steps"]) == (3, 12)
    assert stepped["cpu_s"] >= stepped["parent_s"] > 0


def test_what_depends_on_each_other_is_the_longest_row_of_one_environment_behind_its_task() -> None:
    calls = [Call("e", 0, 1), Call("e", 0, 1), Call("e", 1, 2), Call("e", 1.5, 2.5), Call("f", 0, 1)]
    found = [Call("task: a", 0, 1), Call("task: a", 1, 2)]
    assert _chain(calls + found) == 2 + 2


def test_an_endpoint_is_busy_while_enough_calls_are_in_flight() -> None:
    assert _busy([Call("e", 0, 4), Call("e", 1, 4), Call("e", 2, 6)], 2) == (3, 2 / 3)
    assert _busy([Call("e", 0, 4)], 2) == (0, 0)


def test_a_recorded_reply_is_given_again_and_no_other_is_made_up(tmp_path: Path) -> None:
    question = [{"role": "system", "content": "Judge."}, {"role": "user", "content": "Is it right?"}]
    record = tmp_path / "replies.jsonl"
    reply = {"key": question_key(question), "for": "desk", "reply": "Yes."}
    record.write_text(json.dumps({"funnel": {}}) + "\n" + json.dumps(reply) + "\n", encoding="utf-8")

    def asked(url: str, messages: list[dict[str, str]]) -> str:
        body = json.dumps({"messages": messages}).encode()
        with urllib.request.urlopen(f"{url}/chat/completions", body) as answer:
            text: str = json.load(answer)["choices"][0]["message"]["content"]
            return text

    with running(record, 0.01) as url:
        again = [*question, {"role": "assistant", "content": "?"}, {"role": "user", "content": "That cannot be used."}]
        assert asked(url, question) == asked(url, again) == "Yes."
        with pytest.raises(urllib.error.HTTPError, match="400"):
            asked(url, question[:1])
        with urllib.request.urlopen(url) as answer:
            told = json.load(answer)
    assert [call[0] for call in told["calls"]] == ["desk", "desk"]
    assert (told["refused"], told["unknown"]) == (0, 1)
    with running(record, 0.01, 0) as url, pytest.raises(urllib.error.HTTPError, match="429"):
        asked(url, question)
