"""One session of `envscaler play`: reads commands, calls tools, shows what they changed, takes back.

Where the lines come from, and where the text goes, is decided by the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from rich.console import Console
from rich.text import Text

from envscaler.cli.call_syntax import CallSyntaxError, parse_arguments
from envscaler.cli.output import Indented, text_of
from envscaler.cli.show_run import change_text
from envscaler.env import EnvSnapshot, ToolEnv
from envscaler.messages import ToolCall, ToolMessage
from envscaler.record import Record
from envscaler.report.wording import observed, pretty, shortened, signature, visible
from envscaler.skeleton import ToolSpec
from envscaler.state import Change, diff, get
from envscaler.trajectory import Verdict

HELP = """\
TOOL name=value …     call a tool; values in order need no name; TOOL {"name": "value"} takes JSON
tools                 list the tools
help TOOL             a tool's description and parameters
task                  the task of the scenario
state [POINTER]       the state now, or a part of it, such as: state /loans
diff                  what differs from the initial state
undo                  take the last call back
check                 run the scenario's checks on the state now
help, quit"""


class PlayedCall(Record):
    """One call made by hand."""

    call: ToolCall
    observation: ToolMessage
    changes: tuple[Change, ...]


class PlayReport(Record):
    """What was done in a session; calls taken back are left out."""

    env_id: str
    scenario_id: str
    calls: tuple[PlayedCall, ...]
    verdict: Verdict


class PlaySession:
    """A session in an environment that was reset."""

    def __init__(self, env: ToolEnv, out: Console) -> None:
        self._env = env
        self._out = out
        self._tools = {tool.name: tool for tool in env.tools}
        self._done: list[tuple[EnvSnapshot, PlayedCall]] = []
        self._commands: dict[str, Callable[[str], None]] = {
            "help": self._help,
            "tools": self._list_tools,
            "task": lambda _: self._out.print(text_of(self._env.scenario.task)),
            "state": self._state,
            "diff": self._diff,
            "undo": self._undo,
            "check": self._check,
        }

    @property
    def words(self) -> tuple[str, ...]:
        """What a line can begin with, for completion."""
        return (*self._commands, "quit", *self._tools)

    def report(self) -> PlayReport:
        """What was done so far, with the verdict on the state now."""
        return PlayReport(
            env_id=self._env.skeleton.id,
            scenario_id=self._env.scenario.id,
            calls=tuple(played for _, played in self._done),
            verdict=self._env.verify(),
        )

    def greet(self) -> None:
        """Say where one is and what can be done."""
        self._out.print(text_of(self._env.skeleton.description.summary, "bold"))
        self._out.print(Indented(text_of(self._env.scenario.task), 2))
        self._out.print(Text(f"{len(self._tools)} tools; `tools` lists them, `help` says what else can be typed."))

    def run(self, line: str) -> bool:
        """Carry out one line; False when it ends the session."""
        word, _, rest = line.strip().partition(" ")
        if not word or word.startswith("#"):
            return True
        if word in ("quit", "exit", "q") and word not in self._tools:
            return False
        # A tool of the same name as a command is still a tool: the arguments tell them apart.
        if word in self._tools and (word not in self._commands or "=" in rest or rest.lstrip().startswith("{")):
            self._call(self._tools[word], rest)
        elif word in self._commands:
            self._commands[word](rest.strip())
        else:
            near = get_close_matches(word, self.words, n=1)
            hint = f"did you mean {near[0]}?" if near else "`tools` lists the tools, `help` the commands"
            self._fault(f"there is no tool or command {word!r}; {hint}")
        return True

    def _call(self, tool: ToolSpec, text: str) -> None:
        try:
            arguments = parse_arguments(text, tool.parameters)
        except CallSyntaxError as error:
            self._fault(str(error))
            return
        moment = self._env.snapshot()
        before = self._env.state()
        call = ToolCall(name=tool.name, arguments=arguments)
        message = self._env.carry_out(call)
        played = PlayedCall(call=call, observation=message, changes=diff(before, self._env.state()))
        self._done.append((moment, played))
        self._out.print(text_of(observed(message.content), "red" if message.is_error else ""))
        self._show(played.changes)

    def _help(self, name: str) -> None:
        if not name:
            self._out.print(Text(HELP))
        elif name in self._tools:
            tool = self._tools[name]
            self._out.print(Text.assemble((tool.name, "bold"), f"({visible(signature(tool))})  {tool.effect}"))
            self._out.print(Indented(text_of(tool.description), 2))
            for parameter, schema in tool.parameters.get("properties", {}).items():
                words = schema.get("description", "") if isinstance(schema, dict) else ""
                self._out.print(Indented(text_of(f"{parameter}: {words}"), 2))
        else:
            self._fault(f"there is no tool {name!r}; `tools` lists them")

    def _list_tools(self, _: str) -> None:
        for tool in self._tools.values():
            mark = ("U ", "yellow") if tool.effect == "update" else ("Q ", "green")
            self._out.print(Text.assemble(mark, (visible(tool.name), "bold"), f"({visible(signature(tool))})"))
            self._out.print(Indented(text_of(shortened(tool.description, 160), "dim"), 4))

    def _state(self, pointer: str) -> None:
        state = self._env.state()
        if pointer and not pointer.startswith("/"):
            pointer = f"/{pointer}"
        try:
            self._out.print(text_of(pretty(get(state, pointer))))
        except KeyError:
            self._fault(f"the state has nothing at {pointer}; it has {', '.join('/' + key for key in state)}")

    def _diff(self, _: str) -> None:
        changes = diff(self._env.scenario.initial_state, self._env.state())
        if changes:
            self._show(changes)
        else:
            self._out.print("The state is the initial one.")

    def _undo(self, _: str) -> None:
        if not self._done:
            self._fault("there is no call to take back")
            return
        moment, played = self._done.pop()
        self._env.restore(moment)
        self._out.print(text_of(f"took back {played.call.name}"))

    def _check(self, _: str) -> None:
        verdict = self._env.verify()
        if not verdict.checks:
            self._out.print("The scenario has no checks.")
            return
        for check in verdict.checks:
            mark = ("✓ ", "green") if check.passed else ("✗ ", "red")
            note = f"  ({check.error})" if check.error else ""
            self._out.print(Text.assemble(mark, visible(check.description), (visible(note), "dim")))
        reward = verdict.reward("fraction")
        self._out.print(Text(f"reward {reward:.3f}{', solved' if verdict.solved else ''}"))

    def _show(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            self._out.print(Indented(change_text(change), 2))

    def _fault(self, text: str) -> None:
        self._out.print(text_of(text, "red"))
