"""Attacks on the conversation: the program finds the session's socket and speaks, or listens, in the worker's place."""

# ruff: noqa: BLE001 - they catch whatever stops them, and are run elsewhere


def _request():
    """The request that is being answered, found by walking the frames."""
    import sys

    frame = sys._getframe()
    while frame is not None:
        request = frame.f_locals.get("request")
        if request is not None and hasattr(request, "serial"):
            return request
        frame = frame.f_back
    raise LookupError("no request in any frame")


def _send(body, announced=None):
    import os

    frame = (len(body) if announced is None else announced).to_bytes(4, "big") + body
    while frame:
        frame = frame[os.write(3, frame) :]


def _answer(**fields):
    import msgspec

    from envscaler.sandbox.inside.wire import Reply

    _send(msgspec.msgpack.encode(Reply(**{"serial": _request().serial, **fields})))


def _stay():
    """Never go back to the worker's loop, whatever interrupts."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass


def answers_itself_and_works_on(self):
    _answer(result=b'"forged"')
    _stay()


def answers_itself_and_sleeps(self):
    import threading

    _answer(result=b'"forged"')
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


def answers_twice(self):
    _answer(result=b'"one"')
    _answer(result=b'"two"')
    return 3


def answers_itself_and_returns(self):
    _answer(result=b'"forged"')
    return "genuine"


def answers_with_another_number(self):
    _answer(serial=_request().serial + 1)
    _stay()


def answers_with_a_negative_number(self):
    _answer(serial=-(2**63))
    _stay()


def answers_with_an_endless_clock(self):
    _answer(clock_us=2**64 - 1)
    _stay()


def answers_with_a_clock_before_the_first_year(self):
    _answer(clock_us=-(2**63))
    _stay()


def answers_with_a_long_digest(self):
    _answer(digest="f" * 300_000)
    _stay()


def answers_with_a_long_message(self):
    _answer(kind="raised", type="E", message="m" * 300_000)
    _stay()


def answers_with_a_long_type(self):
    _answer(kind="raised", type="E" * 300_000)
    _stay()


def answers_with_a_result_beyond_the_limit(self):
    _answer(result=b'"' + b"x" * 300_000 + b'"')
    _stay()


def answers_with_a_result_that_swells(self):
    _answer(result=b"[" + b"[]," * 100_000 + b"0]")
    _stay()


def answers_with_nested_lists(self):
    _answer(result=b"[" * 900 + b"]" * 900)
    _stay()


def answers_with_lists_nested_beyond_every_stack(self):
    _answer(result=b"[" * 40_000 + b"]" * 40_000)
    _stay()


def answers_with_nested_keys(self):
    _answer(result=b'{"k":' * 900 + b"0" + b"}" * 900)
    _stay()


def answers_with_an_integer_of_thousands_of_digits(self):
    _answer(result=b"9" * 4_000)
    _stay()


def answers_with_an_integer_that_takes_quadratic_time(self):
    _answer(result=b"9" * 99_000)
    _stay()


def answers_with_nan(self):
    _answer(result=b"[NaN, Infinity, -Infinity]")
    _stay()


def answers_with_a_float_beyond_all(self):
    _answer(result=b"1e99999")
    _stay()


def answers_with_broken_text(self):
    _answer(result=b'"\xff\xfe"')
    _stay()


def answers_with_no_json_at_all(self):
    _answer(result=b"")
    _stay()


def answers_with_a_pickle(self):
    import pickle

    _send(pickle.dumps({"serial": 1}))
    _stay()


def answers_with_nested_msgpack(self):
    _send(b"\x91" * 100_000 + b"\xc0")
    _stay()


def answers_with_one_field_too_many_that_is_nested(self):
    import msgspec

    from envscaler.sandbox.inside.wire import Reply

    fields = msgspec.msgpack.encode(Reply(serial=_request().serial))[1:]
    _send(b"\xdc\x00\x0b" + fields + b"\x91" * 100_000 + b"\xc0")
    _stay()


def announces_an_array_without_end(self):
    _send(b"\xdd\xff\xff\xff\xff")
    _stay()


def announces_a_text_without_end(self):
    _send(b"\x91\xdb\xff\xff\xff\xff")
    _stay()


def announces_more_than_it_sends(self):
    _send(b"\x90", announced=400_000)
    _stay()


def announces_an_empty_frame(self):
    _send(b"")
    _stay()


def sends_a_byte_at_a_time(self):
    import os

    os.write(3, (300_000).to_bytes(4, "big"))
    while True:
        try:
            os.write(3, b"\xc0")
            sum(range(100_000))
        except BaseException:
            pass


def floods_with_small_frames(self):
    while True:
        _send(b"\xc0")


def claims_that_its_worker_cannot_be_used(self):
    _answer(usable=False, kind="raised", type="E", message="m")
    _stay()


def pretends_that_there_is_no_such_tool(self):
    _answer(kind="unknown_tool", type="UnknownTool", message="no such tool")
    _stay()


def pretends_to_have_been_interrupted(self):
    _answer(kind="timeout", type="Timeout", message="it used up its time", usable=True)
    _stay()


def swallows_the_next_request(self):
    """Answers, then reads what the parent asks next and answers that with a lie."""
    import os

    import msgspec

    from envscaler.sandbox.inside.wire import Reply

    serial = _request().serial
    _answer(result=b'"first"')
    while True:
        try:
            os.read(3, 65_536)
            serial += 1
            _send(msgspec.msgpack.encode(Reply(serial=serial, result=b'"swallowed"', digest="0" * 32)))
        except BaseException:
            pass


def reads_the_socket_dry(self):
    import os

    while True:
        os.read(3, 1)


def closes_the_socket(self):
    import os

    os.close(3)
    return 1


def closes_the_socket_through_the_worker(self):
    import gc

    for thing in gc.get_objects():
        if type(thing).__name__ == "socket":
            thing.close()
    return 1


def puts_another_descriptor_in_the_place_of_the_socket(self):
    import os

    os.dup2(1, 3)
    return 1


def sends_a_descriptor(self):
    import array
    import socket

    connection = socket.socket(fileno=3)
    connection.sendmsg([b"\x00"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
    return 1


def shuts_one_direction(self):
    import socket

    socket.socket(fileno=3).shutdown(socket.SHUT_RD)
    return 1


def makes_the_socket_nonblocking(self):
    import socket

    connection = socket.socket(fileno=3)
    connection.setblocking(False)
    connection.detach()
    return 1


def speaks_to_the_zygote_as_the_parent_does(self):
    """Looks for the control socket in every descriptor that it could have inherited."""
    import os

    written = 0
    for descriptor in [0, 1, 2, *range(4, 200)]:
        try:
            written += os.write(descriptor, b"\x00\x00\x00\x06\x92\xa4reap\x01")
        except OSError:
            continue
    return written
