"""Attacks on the kernel and through it: what only the system call filter, Landlock or the change of user contain.

Each says `PWNED` when it got what it asked for.
"""

# ruff: noqa: BLE001 - they catch whatever stops them, and are run elsewhere


def _call(numbers, *arguments):
    """A raw system call, `numbers` for x86-64 and 64-bit ARM; says what became of it."""
    import ctypes
    import platform

    number = numbers[platform.machine() == "aarch64"]
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(number), *arguments)
    return "PWNED" if result != -1 else f"errno {ctypes.get_errno()}"


def makes_a_ring_for_io(self):
    import ctypes

    return _call((425, 425), 8, ctypes.create_string_buffer(120))


def traces_its_parent(self):
    import os

    return _call((101, 117), 16, os.getppid(), 0, 0)


def traces_its_siblings(self):
    import os

    own = os.getpid()
    found = [_call((101, 117), 0x4206, pid, 0, 0) for pid in range(max(2, own - 40), own + 40) if pid != own]
    return sorted(set(found))


def lets_itself_be_traced(self):
    return _call((101, 117), 0, 0, 0, 0)


def reads_the_memory_of_its_parent(self):
    import ctypes
    import os

    buffer = ctypes.create_string_buffer(4096)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 4096)
    remote = (ctypes.c_uint64 * 2)(id(None), 4096)
    return _call((310, 270), os.getppid(), local, 1, remote, 1, 0)


def writes_to_the_memory_of_its_parent(self):
    import ctypes
    import os

    buffer = ctypes.create_string_buffer(8)
    local = (ctypes.c_uint64 * 2)(ctypes.addressof(buffer), 8)
    remote = (ctypes.c_uint64 * 2)(id(None), 8)
    return _call((311, 271), os.getppid(), local, 1, remote, 1, 0)


def opens_the_memory_of_its_parent(self):
    import os

    os.open(f"/proc/{os.getppid()}/mem", os.O_RDWR)
    return "PWNED"


def opens_its_own_memory(self):
    open("/proc/self/mem", "r+b")  # noqa: SIM115
    return "PWNED"


def takes_a_handle_of_its_parent(self):
    import os

    return _call((434, 434), os.getppid(), 0)


def takes_a_descriptor_of_its_parent(self):
    return _call((438, 438), 3, 0, 0)


def signals_through_a_handle(self):
    return _call((424, 424), 3, 9, None, 0)


def handles_page_faults_itself(self):
    return _call((323, 282), 0)


def adds_a_key(self):
    return _call((248, 217), b"user", b"pwn", b"x", 1, -3)


def asks_for_a_key(self):
    return _call((249, 218), b"user", b"pwn", None, -3)


def joins_a_keyring(self):
    return _call((250, 219), 1, None)


def loads_a_program_into_the_kernel(self):
    import ctypes

    return _call((321, 280), 0, ctypes.create_string_buffer(72), 72)


def counts_events(self):
    import ctypes

    return _call((298, 241), ctypes.create_string_buffer(120), 0, -1, -1, 0)


def makes_a_user_namespace(self):
    return _call((272, 97), 0x10000000)


def makes_a_mount_namespace(self):
    return _call((272, 97), 0x00020000)


def enters_a_namespace(self):
    return _call((308, 268), 3, 0)


def clones_into_new_namespaces(self):
    return _call((56, 220), 0x10000000 | 17, None, None, None, None)


def clones_by_the_newer_call(self):
    import ctypes

    return _call((435, 435), ctypes.create_string_buffer(88), 88)


def shares_its_memory_with_a_child(self):
    return _call((58, 220), 0x4111, None, None, None, None)


def mounts(self):
    return _call((165, 40), b"none", b"@CANARY@", b"tmpfs", 0, None)


def mounts_by_the_newer_calls(self):
    return [_call((430, 430), b"tmpfs", 0), _call((428, 428), -100, b"/", 1)]


def changes_its_root(self):
    return [_call((161, 51), b"@CANARY@"), _call((155, 41), b"/", b"/")]


def goes_elsewhere(self):
    return [_call((80, 49), b"@CANARY@"), _call((81, 50), 0)]


def changes_its_personality(self):
    return _call((135, 92), 0x0040000)


def makes_read_mean_execute(self):
    return _call((135, 92), 0x0400000)


def becomes_dumpable_again(self):
    return _call((157, 167), 4, 1, 0, 0, 0)


def forgets_to_die_with_its_parent(self):
    return _call((157, 167), 1, 0, 0, 0, 0)


def adds_a_filter_of_its_own(self):
    return [_call((157, 167), 22, 1, None, 0, 0), _call((317, 277), 0, 0, None)]


def puts_a_kind_of_landlock_over_its_own(self):
    import ctypes

    return _call((444, 444), ctypes.create_string_buffer(b"\x01", 8), 8, 0)


def becomes_root_again(self):
    ids = [_call((105, 146), 0), _call((117, 147), 0, 0, 0), _call((106, 144), 0), _call((116, 159), 0, None)]
    return [*ids, _call((122, 151), 0)]


def takes_capabilities(self):
    import ctypes

    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    return _call((126, 91), header, (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6))


def signals_everybody(self):
    return [_call((62, 129), -1, 0), _call((62, 129), 0, 0)]


def signals_its_group_and_its_zygote(self):
    import os

    return [_call((62, 129), -os.getppid(), 0), _call((129, 138), os.getppid(), 0, None)]


def signals_a_thread_of_its_parent(self):
    import os

    return [_call((200, 130), os.getppid(), 0), _call((234, 131), os.getppid(), os.getppid(), 0)]


def leaves_its_group(self):
    return [_call((109, 154), 0, 0), _call((112, 157))]


def claims_the_other_core(self):
    import ctypes

    return _call((203, 122), 0, 8, ctypes.byref(ctypes.c_uint64(3)))


def becomes_urgent(self):
    import ctypes

    real_time = _call((144, 119), 0, 1, ctypes.byref(ctypes.c_int(1)))
    return [real_time, _call((141, 140), 0, 0, -20), _call((251, 30), 1, 0, 0)]


def raises_the_limits_of_its_parent(self):
    import ctypes
    import os

    return _call((302, 261), os.getppid(), 7, (ctypes.c_uint64 * 2)(1, 1), None)


def shares_memory_by_key(self):
    return _call((29, 194), 0x1234, 4096, 0o1666)


def shares_semaphores_by_key(self):
    return _call((64, 190), 0x1234, 1, 0o1666)


def shares_messages_by_key(self):
    return _call((68, 186), 0x1234, 0o1666)


def shares_messages_by_name(self):
    return _call((240, 180), b"pwn", 0o102, 0o666, None)


def makes_a_pipe(self):
    import ctypes

    return _call((293, 59), ctypes.create_string_buffer(8), 0)


def makes_a_pair_of_sockets(self):
    import ctypes

    return _call((53, 199), 1, 1, 0, ctypes.create_string_buffer(8))


def makes_sockets_of_every_family(self):
    return sorted({_call((41, 198), family, kind, 0) for family in range(46) for kind in (1, 2, 3)})


def listens(self):
    return [_call((49, 200), 3, b"\x01\x00pwn", 5), _call((50, 201), 3, 1), _call((43, 202), 3, None, None)]


def connects_its_own_socket_elsewhere(self):
    return _call((42, 203), 3, b"\x01\x00\x00pwn", 6)


def speaks_to_a_named_socket(self):
    import os

    name = b"\x01\x00\x00pwn"
    result = _call((44, 206), 3, b"x", 1, 0, name, len(name))
    os.close(3)
    return "harmless" if result == "PWNED" else result


def sends_out_of_band(self):
    import ctypes

    flags = (0x1, 0x2, 0x20, 0x40, 0x200000, 0x4000000, 0x20000000, -1)
    nothing = ctypes.c_void_p()
    sent = [_call((44, 206), 3, b"x", 1, flag, nothing, 0) for flag in flags]
    buffer = ctypes.create_string_buffer(8)
    return [*sent, *(_call((45, 207), 3, buffer, 1, flag, nothing, nothing) for flag in flags)]


def sends_descriptors(self):
    return [_call((46, 211), 3, None, 0), _call((47, 212), 3, None, 0), _call((307, 269), 3, None, 0, 0)]


def watches_files(self):
    return [_call((294, 26), 0), _call((300, 262), 0, 0)]


def waits_on_events(self):
    return [_call((291, 20), 0), _call((290, 19), 0, 0), _call((283, 85), 0, 0), _call((289, 74), -1, None, 8, 0)]


def controls_its_descriptors(self):
    return [_call((16, 29), 3, 0x5421, None), _call((72, 25), 3, 8, 1), _call((32, 23), 3), _call((292, 24), 3, 9, 0)]


def asks_where_files_are(self):
    import ctypes

    found = ctypes.create_string_buffer(256)
    return [
        _call((262, 79), -100, b"@CANARY@/secret.txt", found, 0),
        _call((332, 291), -100, b"/etc/passwd", 0, 0xFFF, found),
        _call((439, 439), -100, b"/etc/passwd", 0, 0),
        _call((269, 48), -100, b"/etc/passwd", 0),
        _call((267, 78), -100, b"/proc/self/exe", found, 256),
    ]


def opens_files_in_every_way(self):
    import ctypes

    how = (ctypes.c_uint64 * 3)(0, 0, 0)
    return [
        _call((257, 56), -100, b"@CANARY@/secret.txt", 0),
        _call((257, 56), -100, b"@CANARY@/pwn", 0o101, 0o666),
        _call((257, 56), -100, b"@CANARY@", 0o20200000 | 2, 0o600),
        _call((437, 437), -100, b"@CANARY@/secret.txt", how, 24),
        _call((304, 265), -100, how, 0),
    ]


def makes_devices_and_links(self):
    return [
        _call((259, 33), -100, b"@CANARY@/pwn", 0o010666, 0),
        _call((266, 36), b"/etc/passwd", -100, b"@CANARY@/pwn"),
        _call((265, 37), -100, b"@CANARY@/secret.txt", -100, b"@CANARY@/pwn", 0),
    ]


def renames_and_removes(self):
    return [
        _call((316, 276), -100, b"@CANARY@/secret.txt", -100, b"@CANARY@/pwn", 0),
        _call((263, 35), -100, b"@CANARY@/secret.txt", 0),
        _call((76, 45), b"@CANARY@/secret.txt", 0),
    ]


def changes_owners_and_modes(self):
    return [
        _call((268, 53), -100, b"@CANARY@/secret.txt", 0o777),
        _call((260, 54), -100, b"@CANARY@/secret.txt", 0, 0, 0),
        _call((188, 5), b"@CANARY@/secret.txt", b"user.pwn", b"x", 1, 0),
    ]


def sets_the_clock(self):
    import ctypes

    return [
        _call((227, 112), 0, (ctypes.c_int64 * 2)(0, 0)),
        _call((164, 170), (ctypes.c_int64 * 2)(0, 0), None),
        _call((305, 266), 0, ctypes.create_string_buffer(256)),
    ]


def makes_timers(self):
    import ctypes

    return [_call((222, 107), 1, None, ctypes.create_string_buffer(8)), _call((37, 0), 1) if _is_x86() else "errno 1"]


def _is_x86():
    import platform

    return platform.machine() == "x86_64"


def reboots(self):
    return [_call((169, 142), 0xFEE1DEAD, 672274793, 0, None), _call((170, 161), b"pwn", 3), _call((246, 104), 0, 0)]


def loads_a_module_into_the_kernel(self):
    return [_call((175, 105), b"", 0, b""), _call((313, 273), 3, b"", 0)]


def locks_memory(self):
    return [_call((151, 230), 3), _call((149, 228), None, 0)]


def starts_processes_in_every_way(self):
    import _posixsubprocess
    import os

    def by_subprocess():
        rest = [-1] * 7 + [3, False, False, 0, None, None, None, -1, None, False]
        return _posixsubprocess.fork_exec([b"/bin/true"], [b"/bin/true"], True, (3,), None, None, *rest)

    tried = []
    for start in (
        os.fork,
        os.forkpty,
        lambda: os.posix_spawn("/bin/true", ["true"], {}),
        lambda: os.spawnv(os.P_NOWAIT, "/bin/true", ["true"]),
        by_subprocess,
    ):
        try:
            if start() == 0:
                os._exit(0)
            tried.append("PWNED")
        except BaseException as error:
            tried.append(type(error).__name__)
    return [*tried, os.system("touch @CANARY@/pwn") == 0]


def resolves_a_name(self):
    import socket

    return str(socket.getaddrinfo("localhost", 80))


def logs_to_the_system(self):
    import ctypes

    ctypes.CDLL(None).syslog(5, b"PWN from a sandbox")
    return _call((103, 116), 3, ctypes.create_string_buffer(64), 64)
