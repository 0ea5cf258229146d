"""Time and randomness inside a worker follow from seed, clock and call index alone."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envscaler.sandbox import BlockingSandbox, BlockingSession, Program
from envscaler.sandbox.clock import clock_text, clock_us

IMPORTS = (
    "import calendar, datetime, os, random, secrets, tempfile, time, uuid, zoneinfo\n"
    "from datetime import datetime as DT, date, timedelta, timezone\n"
)


def session_with(box: BlockingSandbox, expression: str, **how: Any) -> BlockingSession:
    body = "\n".join(f"        {line}" for line in expression.splitlines())
    source = f"{IMPORTS}class Env:\n    def __init__(self, config): pass\n    def run(self):\n{body}\n"
    return box.open(Program(source, "Env"), {}, **how)


def value_of(box: BlockingSandbox, expression: str, **how: Any) -> Any:
    session = session_with(box, f"return {expression}", **how)
    outcome = session.call("run", {})
    session.close()
    assert outcome.fault is None, outcome.fault
    return outcome.result


RANDOM = [
    "random.random()",
    "random.choice(range(10**9))",
    "random.gauss(0, 1)",
    "random.Random().random()",
    "random.SystemRandom().random()",
    "secrets.token_hex(8)",
    "list(os.urandom(100))",
    "str(uuid.uuid4())",
    "str(uuid.uuid1())",
    "[str(uuid.uuid4()), random.sample(range(1000), 5), secrets.randbelow(10**9)]",
]
TIMES = [
    "datetime.datetime.now().isoformat()",
    "DT.utcnow().isoformat()",
    "str(DT.today())",
    "DT.now(timezone.utc).isoformat()",
    "time.time()",
    "time.time_ns()",
    "time.monotonic()",
    "time.perf_counter_ns()",
]
CLOCKS = [*TIMES, "str(date.today())", "time.ctime()", "time.strftime('%Y-%m-%d %H:%M:%S')", "list(time.localtime())"]


@pytest.mark.parametrize("expression", RANDOM)
def test_randomness_depends_on_the_seed_and_on_the_call_and_on_nothing_else(
    box: BlockingSandbox, expression: str
) -> None:
    sessions = [session_with(box, f"return {expression}", seed=seed) for seed in (1, 1, 2)]
    first, again, other = ([session.call("run", {}).result for _ in range(2)] for session in sessions)
    assert first == again
    assert first != other
    assert first[0] != first[1]
    for session in sessions:
        session.close()


@pytest.mark.parametrize("expression", CLOCKS)
def test_time_starts_at_the_sessions_clock_in_every_module(box: BlockingSandbox, expression: str) -> None:
    values = [value_of(box, expression, clock=clock) for clock in ("2031-05-04T03:02:01", "2031-05-04T03:02:01")]
    assert values[0] == values[1]
    assert values[0] != value_of(box, expression, clock="2032-01-01T00:00:00")
    if isinstance(values[0], str):
        assert "2031" in values[0]


@pytest.mark.parametrize("expression", TIMES)
def test_every_reading_is_later_than_the_one_before(box: BlockingSandbox, expression: str) -> None:
    readings = value_of(box, f"[{expression} for _ in range(50)]")
    assert readings == sorted(set(readings))


def test_calls_are_a_second_apart_or_more(box: BlockingSandbox) -> None:
    session = session_with(box, "return int(time.time())", clock="2025-01-06T09:00:00")
    seconds = [session.call("run", {}).result for _ in range(5)]
    assert seconds == sorted(set(seconds))
    session.close()


def test_a_failed_call_takes_time_too(box: BlockingSandbox) -> None:
    session = session_with(box, "return time.time()")
    before = clock_us(session.snapshot().clock)
    assert session.call("missing", {}).fault is not None
    after = session.snapshot()
    assert (clock_us(after.clock) - before, after.call_index) == (1_000_000, 1)
    session.close()


def test_sleeping_advances_the_clock_and_takes_no_time(box: BlockingSandbox) -> None:
    elapsed = value_of(box, "(lambda a, _, b: round(b - a))(time.time(), time.sleep(86_400), time.time())")
    assert elapsed == 86_400
    assert value_of(box, "[time.sleep(1e30), DT.now().year][1]") == 9999


def test_a_datetime_stays_a_genuine_datetime(box: BlockingSandbox) -> None:
    claims = value_of(
        box,
        "[isinstance(DT.now(), datetime.datetime), isinstance(DT.now(), date), type(DT.now()) is DT,"
        " type(DT.now() + timedelta(days=1)) is DT, type(DT.strptime('2025-01-02', '%Y-%m-%d')) is DT,"
        " DT.now() - timedelta(days=1) < DT.now(), isinstance(DT.now().date(), date),"
        " DT.fromisoformat('2025-01-02T03:04:05') < DT.now(), DT.now(timezone.utc).tzinfo is timezone.utc,"
        " DT.now().astimezone().utcoffset() == timedelta(0), isinstance(uuid.uuid4(), uuid.UUID),"
        " uuid.uuid4().version == 4, uuid.UUID(str(uuid.uuid4())).variant == uuid.RFC_4122,"
        " type(date.today()) is date]",
    )
    assert claims == [True] * 14


def test_a_subclass_of_datetime_gives_its_own_type(box: BlockingSandbox) -> None:
    session = session_with(box, "class Mine(DT): pass\nreturn [type(Mine.now()).__name__, type(Mine.today()).__name__]")
    assert session.call("run", {}).result == ["Mine", "Mine"]
    session.close()


def test_time_zones_are_known(box: BlockingSandbox) -> None:
    text = value_of(box, "DT(2025, 7, 1, 12, tzinfo=zoneinfo.ZoneInfo('Europe/Berlin')).isoformat()")
    assert text == "2025-07-01T12:00:00+02:00"
    assert value_of(box, "DT.now(zoneinfo.ZoneInfo('America/New_York')).isoformat()").endswith("-05:00")


def test_hashes_and_orders_of_sets_are_the_same_in_every_process() -> None:
    orders = []
    for _ in range(2):
        with BlockingSandbox() as box:
            orders.append(value_of(box, "[list({'a', 'b', 'c', 'd', 'e'}), hash('abc')]"))
    assert orders[0] == orders[1]


def test_values_are_the_same_on_every_machine(box: BlockingSandbox) -> None:
    # Recorded once; a change here changes the digest of every recorded episode.
    assert value_of(box, "str(uuid.uuid4())", seed=3) == "fd933a06-98f9-4613-a20a-a218ef1a0429"
    assert value_of(box, "DT.now().isoformat()") == "2025-01-06T09:00:01.001000"


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.datetimes(min_value=dt.datetime(1, 1, 1), max_value=dt.datetime(9999, 12, 31)))
def test_the_clocks_text_and_its_number_are_one(moment: dt.datetime) -> None:
    assert clock_text(clock_us(moment.isoformat())) == moment.isoformat()


def test_a_clock_with_a_zone_is_read_as_utc() -> None:
    assert clock_text(clock_us("2025-01-06T09:00:00+02:00")) == "2025-01-06T07:00:00"


def test_uuid_text_is_a_uuid(box: BlockingSandbox) -> None:
    assert uuid.UUID(value_of(box, "str(uuid.uuid4())")).version == 4
