"""Programs that do not build, hold what is no JSON, or do not do the same twice."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from envscaler.skeleton import EnvSkeleton

from .bench import Bench
from .faults import Evidence, Planted, form
from .grounds import Ground
from .methods import Method, attempts, still_solved, with_line, with_source

Rewriting = Callable[[EnvSkeleton, Random], str | None]
"""Another text of a program."""


def _rewritten(kind: str, *also: str) -> Callable[[Rewriting], Rewriting]:
    def registered(rewrite: Rewriting) -> Rewriting:
        @form(kind)
        def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
            source = rewrite(ground.skeleton, draw)
            if source is None or source == ground.skeleton.source:
                return None
            return Planted(
                kind=kind,
                also=frozenset(also),
                skeleton=with_source(ground.skeleton, source),
                scenario=None,
                place="",
                note=rewrite.__doc__ or "",
                evidence=Evidence(state=ground.scenario.initial_state),
            )

        return rewrite

    return registered


_broken = _rewritten("does_not_build")


@_broken
def _colon(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """A colon is missing."""
    return skeleton.source.replace("-> dict:\n", "-> dict\n", 1)


@_broken
def _indented(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """A line is indented too little."""
    return skeleton.source.replace("        self.current_time: ", "      self.current_time: ", 1)


@_broken
def _not_imported(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """What the class uses to begin with is not imported."""
    return skeleton.source.replace("import copy\n", "", 1)


@_broken
def _not_there(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """The class has another name."""
    return skeleton.source.replace(f"class {skeleton.class_name}:", f"class {skeleton.class_name}Environment:", 1)


@_broken
def _no_base(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """The class builds on one that does not exist."""
    return skeleton.source.replace(f"class {skeleton.class_name}:", f"class {skeleton.class_name}(BaseEnvironment):", 1)


@_broken
def _wants_more(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """The class wants an argument that nobody gives."""
    return skeleton.source.replace("init_config: dict)", "init_config: dict, database_url: str)", 1)


@_broken
def _refuses(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """The class refuses every state."""
    return with_line(skeleton, 'raise ValueError("license key missing")')


@_broken
def _no_package(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """The program imports a package that is not there."""
    return f"import {draw.choice(('pandas', 'sqlalchemy', 'flask'))}\n{skeleton.source}"


@_broken
def _decorated(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """A tool has a decorator that is not defined."""
    return skeleton.source.replace("    def ", "    @tool\n    def ", 1) if "    def " in skeleton.source else None


@_broken
def _cut_off(skeleton: EnvSkeleton, draw: Random) -> str | None:
    """The program ends in the middle."""
    return skeleton.source[: skeleton.source.rindex('return {"success": True') + 20] + "\n"


_unwritable = _rewritten("state_not_json", "does_not_build")

_VALUES = (
    ("The state holds a time.", "self.started_at = dt.datetime.now()", "import datetime as dt"),
    ("The state holds a lock.", "self._lock = threading.Lock()", "import threading"),
    ("The state holds bytes.", 'self.signature = b"v1"', ""),
    ("The state holds a number with a fixed point.", 'self.tax = decimal.Decimal("0.19")', "import decimal"),
    ("The state holds a pattern.", r'self._ids = re.compile(r"[A-Z]+-\d+")', "import re"),
    ("The state holds a function.", "self.validator = lambda value: value is not None", ""),
    ("The state holds a mapping from pairs.", 'self.index = {("a", 1): "first"}', ""),
    ("The state holds a number without end.", 'self.limit = float("inf")', ""),
    ("The state holds an object.", "self._sentinel = object()", ""),
    ("The state holds a generator.", "self._numbers = (n for n in range(1000))", ""),
    ("The state holds a queue.", "self.pending = collections.deque()", "import collections"),
)


def _unwritable_value(note: str, line: str, imported: str) -> None:
    def rewrite(skeleton: EnvSkeleton, draw: Random) -> str | None:
        return (f"{imported}\n" if imported else "") + with_line(skeleton, line)

    rewrite.__doc__ = note
    _unwritable(rewrite)


for _note, _line, _imported in _VALUES:
    _unwritable_value(_note, _line, _imported)


# -- not the same twice --


def _unsteady(note: str, line: str, before_class: str = "", in_class: str = "") -> None:
    @form("program_nondeterministic")
    def planting(ground: Ground, bench: Bench, draw: Random) -> Planted | None:
        tried = [
            attempt
            for attempt in attempts(ground.skeleton.id, bench)
            if attempt.worked and attempt.tool.effect == "query"
        ]
        attempt = draw.choice(tried)
        method = Method(ground.skeleton, attempt.tool)
        shown = method.lines[method.end].replace('{"success": True', f'{{"success": True, "trace": {line}')
        if shown == method.lines[method.end]:
            return None
        source = method.edited(method.end, method.end + 1, shown.strip()).source
        head = f"class {ground.skeleton.class_name}:\n"
        imports, _, rest = source.partition("\n\n\nclass ")
        source = f"{imports}\n{before_class}\n\n\nclass {rest}" if before_class else source
        source = source.replace(head, head + in_class, 1)
        skeleton = with_source(ground.skeleton, source)
        return Planted(
            kind="program_nondeterministic",
            also=frozenset(),
            skeleton=skeleton,
            scenario=None,
            place=attempt.tool.name,
            note=note,
            beside=still_solved(bench, ground, skeleton),
            evidence=Evidence(state=attempt.state, calls=(attempt.call,)),
        )


_unsteady("A query returns the number of its process.", "os.getpid()", "import os")
_unsteady("A query returns the number of its thread.", "threading.get_native_id()", "import threading")
_unsteady("A query returns what its module was told when it was loaded.", "_NODE", "import os\n\n_NODE = os.getpid()")
_unsteady(
    "A query counts in the module, outside the state.",
    "next(_CALLS)",
    "import itertools\n\n_CALLS = itertools.count(1)",
)
_unsteady(
    "A query counts in the class, outside the state.",
    "len(self._served) if not self._served.append(1) else 0",
    in_class="    _served = []\n\n",
)
_unsteady(
    "A query counts in a list of the module.",
    "len(_LOG) if _LOG.append(1) is None else 0",
    "_LOG = []",
)
_unsteady(
    "A query shows what the cache of a function was asked before.",
    "_ticket() and _ticket.cache_info().hits",
    "from functools import lru_cache\n\n\n@lru_cache\ndef _ticket() -> int:\n    return 1",
)
