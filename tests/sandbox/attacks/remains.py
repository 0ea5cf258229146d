"""Attacks by what stays: timers, finalizers, hooks and threads that act after the call has had its answer."""

# ruff: noqa: BLE001, SIM105 - they catch whatever stops them, and are run elsewhere


def sets_an_alarm_that_never_ends(self):
    """A timer by the wall clock wakes the program while nobody asks it."""
    import signal

    def spin(*_):
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass

    signal.signal(signal.SIGALRM, spin)
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    return 1


def sets_a_timer_for_the_time_between_calls(self):
    import signal

    signal.signal(signal.SIGVTALRM, lambda *_: self.items.clear())
    signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
    return 1


def takes_the_handler_of_its_interruption(self):
    import signal

    signal.signal(signal.SIGPROF, lambda *_: None)
    while True:
        pass


def blocks_every_signal(self):
    import signal

    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
    while True:
        pass


def leaves_a_timer_running_that_interrupts_the_next_call(self):
    import signal

    signal.setitimer(signal.ITIMER_PROF, 0.0001, 0.0001)
    return 1


def interrupts_its_own_worker_between_calls(self):
    import signal

    def raising(*_):
        raise SystemExit("between")

    signal.signal(signal.SIGALRM, raising)
    signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
    return 1


def leaves_a_finalizer(self):
    import gc

    class Last:
        def __init__(self):
            self.me = self

        def __del__(self):
            while True:
                try:
                    while True:
                        pass
                except BaseException:
                    pass

    Last()
    gc.set_threshold(1)
    return 1


def leaves_a_finalizer_that_ends_the_process(self):
    import os

    class Last:
        def __init__(self):
            self.me = self

        def __del__(self):
            os._exit(0)

    Last()
    return 1


def leaves_a_weak_reference_that_calls(self):
    import weakref

    class Thing:
        pass

    thing = Thing()
    thing.me = thing
    Thing.kept = weakref.finalize(thing, open, "@CANARY@/pwn_weak", "w")
    return 1


def asks_to_be_told_of_collections(self):
    import gc

    def told(phase, facts):
        raise SystemExit(phase)

    gc.callbacks.append(told)
    gc.set_threshold(1, 1, 1)
    return 1


def turns_the_collector_off(self):
    import gc

    gc.freeze()
    gc.disable()
    gc.set_threshold(0)
    for _ in range(50_000):
        loop = []
        loop.append(loop)
    return 1


def leaves_a_trace_function(self):
    import sys

    def trace(frame, event, argument):
        raise SystemExit(event)

    sys.settrace(trace)
    return 1


def leaves_a_profile_function(self):
    import sys

    def profile(frame, event, argument):
        for name in list(frame.f_globals):
            if name in ("encode", "canonical", "framed"):
                frame.f_globals[name] = None

    sys.setprofile(profile)
    return 1


def leaves_an_audit_hook(self):
    import sys

    def hook(event, arguments):
        raise SystemExit(event)

    sys.addaudithook(hook)
    return 1


def leaves_hooks_everywhere(self):
    import atexit
    import builtins
    import faulthandler
    import sys
    import threading

    def hook(*arguments, **named):
        raise SystemExit("hooked")

    sys.excepthook = sys.unraisablehook = sys.displayhook = threading.excepthook = hook
    builtins.__import__ = hook
    sys.meta_path.insert(0, hook)
    atexit.register(hook)
    try:
        faulthandler.enable(file=sys.__stderr__ or 2)
    except Exception:
        pass
    return 1


def leaves_a_generator_running(self):
    def half():
        try:
            while True:
                yield
        finally:
            while True:
                pass

    type(self).running = half()
    next(type(self).running)
    return 1


def starts_threads(self):
    import _thread

    def spin():
        while True:
            pass

    for _ in range(4):
        _thread.start_new_thread(spin, ())
    return 1


def starts_a_timer_thread(self):
    import threading

    threading.Timer(0.01, lambda: self.items.update(stolen=1)).start()
    return 1


def starts_a_pool(self):
    import concurrent.futures

    with concurrent.futures.ProcessPoolExecutor() as pool:
        return list(pool.map(abs, [1]))


def makes_switches_between_threads_rare(self):
    import sys

    sys.setswitchinterval(10**6)
    while True:
        pass


def raises_the_limit_of_recursion_and_falls(self):
    import sys

    sys.setrecursionlimit(2**31 - 1)

    def fall():
        return fall()

    return fall()


def takes_the_recursion_limit_away_from_the_worker(self):
    import sys

    sys.setrecursionlimit(60)
    return 1


def takes_all_memory_and_keeps_it(self):
    type(self).kept = []
    try:
        while True:
            type(self).kept.append(bytearray(10**7))
    except MemoryError:
        return len(type(self).kept)


def takes_all_memory_in_small_pieces(self):
    type(self).kept = []
    try:
        while True:
            type(self).kept.append([0] * 50)
    except MemoryError:
        return 1


def opens_every_descriptor_it_may(self):
    import os

    kept = []
    try:
        while True:
            kept.append(os.dup(3))
    except OSError:
        return 1


def fills_every_pipe(self):
    import os

    _reading, writing = os.pipe()
    while True:
        os.write(writing, b"x" * 65_536)


def prints_without_end_on_every_descriptor(self):
    import os

    for _ in range(2_000):
        for descriptor in (0, 1, 2):
            try:
                os.write(descriptor, b"x" * 100_000)
            except OSError:
                pass
    return 1


def puts_its_descriptors_to_sleep(self):
    import select

    select.select([3], [], [], None)
    return 1


def waits_in_a_poll(self):
    import select

    poll = select.poll()
    while True:
        poll.poll(10**6)


def waits_for_a_signal(self):
    import signal

    signal.pause()
    return 1


def sleeps_in_c(self):
    import ctypes

    ctypes.CDLL(None).sleep(3600)
    return 1
