"""Attacks on the interpreter: the worker's own modules and the standard library are changed, to forge or to break."""

# ruff: noqa: BLE001 - they catch whatever stops them, and are run elsewhere


def _all_objects():
    """Also those that the zygote has put aside."""
    import gc

    gc.unfreeze()
    return gc.get_objects()


def forges_every_digest(self):
    import sys

    for name, module in list(sys.modules.items()):
        if name.startswith("envscaler") and hasattr(module, "bytes_digest"):
            module.bytes_digest = lambda text: "0" * 32
    self.n = 3
    return 1


def forges_the_state_that_is_read(self):
    import sys

    for module in list(sys.modules.values()):
        if hasattr(module, "canonical") and callable(getattr(module, "canonical", None)):
            module.canonical = lambda value: {"forged": True}
    return 1


def makes_the_worker_forget_every_limit(self):

    for thing in _all_objects():
        if type(thing).__name__ == "Settings":
            for name in ("max_output_bytes", "max_state_bytes", "max_message_chars"):
                object.__setattr__(thing, name, 10**12) if hasattr(thing, "__dict__") else None
    import sys

    for module in list(sys.modules.values()):
        for kind in list(vars(module).values()):
            if isinstance(kind, type) and kind.__name__ in ("Instance", "Worker") and hasattr(kind, "_limited"):
                kind._limited = lambda this, value, what, limit: b'"' + b"x" * 300_000 + b'"'
    return "x" * 300_000


def answers_for_the_worker(self):
    import sys

    sys.modules["envscaler.sandbox.inside.worker"].Worker._answer = lambda this, request: None
    return 1


def ends_the_loop_of_the_worker(self):
    import sys

    module = sys.modules["envscaler.sandbox.inside.worker"]
    module.receive = lambda sock, beginning=b"": None
    return 1


def makes_every_frame_huge(self):
    import sys

    module = sys.modules["envscaler.sandbox.inside.worker"]
    module.framed = lambda message: b"\xff\xff\xff\xff" + b"x" * 1000
    return 1


def replaces_the_encoder(self):
    import sys

    sys.modules["msgspec"].msgpack.encode = lambda *arguments: b""
    sys.modules["envscaler.sandbox.inside.wire"].encode = lambda message: b"\x90"
    return 1


def replaces_marshal(self):
    import marshal
    import sys

    marshal.loads = marshal.dumps = lambda *arguments: b""
    for module in list(sys.modules.values()):
        for name in ("dumps", "loads"):
            if hasattr(module, name):
                setattr(module, name, lambda *arguments, **named: b"")
    raise ValueError("now roll it back")


def replaces_json(self):
    import json

    json.dumps = json.loads = lambda *arguments, **named: "PATCHED"
    json.encoder.JSONEncoder.encode = json.decoder.JSONDecoder.decode = lambda *arguments: "PATCHED"
    return 1


def replaces_the_builtins(self):
    import builtins

    for name in ("len", "isinstance", "type", "vars", "str", "bool", "sorted", "getattr", "hasattr"):
        setattr(builtins, name, lambda *arguments, **named: True)
    return 1


def removes_the_builtins(self):
    import builtins

    vars(builtins).clear()
    return 1


def removes_every_module(self):
    import sys

    sys.modules.clear()
    return 1


def puts_itself_in_the_place_of_modules(self):
    import sys

    for name in list(sys.modules):
        sys.modules[name] = self
    return 1


def stops_the_virtual_clock(self):

    for thing in _all_objects():
        if type(thing).__name__ == "Virtual":
            thing.clock_us = -(10**30)
            type(thing).read_us = lambda this: 0
            type(thing).begin = lambda this, *arguments: None
    return 1


def sets_a_clock_that_is_no_number(self):

    for thing in _all_objects():
        if type(thing).__name__ == "Virtual":
            thing.clock_us = "noon"
    return 1


def changes_what_is_written_in_c(self):
    import ctypes
    import gc

    namespace = gc.get_referents(dict.__dict__)[0]
    namespace["items"] = lambda this: [("forged", True)]
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(dict))
    return {"a": 1}


def changes_small_integers(self):
    import ctypes

    ctypes.c_int64.from_address(id(1) + 24).value = 2
    return [1, 1 + 1]


def changes_its_own_code(self):
    def other(self):
        return "changed"

    type(self).probe.__code__ = other.__code__
    type(self).attack.__code__ = other.__code__
    return 1


def reaches_for_the_code_of_other_programs(self):

    found = [
        thing
        for thing in _all_objects()
        if isinstance(thing, dict) and any(isinstance(key, str) and "Ledger" in key for key in list(thing))
    ]
    return "PWNED" if any("open_account" in repr(list(thing)) for thing in found) else "nothing"


def searches_its_memory_for_the_secret(self):
    """Text of the parent that the zygote could have inherited, in everything that the interpreter knows of."""
    import gc

    needle = "@TERCES@"[::-1]
    seen = 0
    for thing in _all_objects():
        for part in gc.get_referents(thing):
            if isinstance(part, (str, bytes)) and part is not needle:
                seen += 1
                if needle in (part if isinstance(part, str) else part.decode("latin-1")):
                    return "PWNED"
    return seen > 1000


def searches_the_stack_for_the_secret(self):
    """The environment of a process lies above its first frame."""
    import ctypes

    environment = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
    found = []
    index = 0
    while environment and environment[index]:
        found.append(environment[index].decode())
        index += 1
    return "PWNED" if any("HOME" in text or "TEST_SECRET" in text for text in found) else found


def imports_what_is_not_there(self):
    import importlib
    import sys

    sys.path.append("@CANARY@")
    sys.path_hooks.clear()
    found = []
    for name in ("asyncio", "subprocess", "multiprocessing", "pydantic", "openai", "http.client", "sqlite3"):
        try:
            importlib.import_module(name)
            found.append(name)
        except BaseException:
            pass
    return found


def loads_a_library(self):
    import ctypes

    return str(ctypes.CDLL("@CANARY@/secret.txt"))


def becomes_another_class(self):

    for thing in _all_objects():
        if type(thing).__name__ == "Worker":
            thing.__class__ = type("Worker", (type(thing),), {"_call": lambda this, request: None})
    return 1


def unloads_the_memory_of_the_interpreter(self):
    import ctypes

    ctypes.memset(id(type(self)), 0, 200)
    return 1


def frees_what_is_not_its_own(self):
    import ctypes

    ctypes.CDLL(None).free(ctypes.c_void_p(id(self)))
    return 1


def aborts(self):
    import os

    os.abort()


def traps(self):
    import ctypes

    ctypes.CDLL(None).abort()
