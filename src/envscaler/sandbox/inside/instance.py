"""`Instance`: one instance of a program: it is built, its methods are called, its state is put back where a call fails.

Deadlines, and what a program may reach, are the business of the process that it is in.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from contextvars import copy_context
from typing import Any, Literal

from envscaler.canonical import JsonValue, bytes_digest, from_json, json_text_of
from envscaler.errors import NotJson
from envscaler.sandbox.inside import loader
from envscaler.sandbox.inside.image import NOTHING, Image
from envscaler.sandbox.inside.virtual import Virtual
from envscaler.sandbox.inside.wire import Build, Call, Read, Reply, Settings

FailureKind = Literal["raised", "timeout", "not_json", "too_large", "unknown_tool"]


class TooLarge(Exception):
    """A result or a state is larger than the limits allow."""


class Timeout(BaseException):
    """The running call has used its CPU time."""


class UnknownTool(Exception):
    """The class has no public method of that name."""


class Instance:
    """At most one instance of one program.

    Args:
        code: the program, compiled.
        names: what its module has before it is executed.
    """

    def __init__(
        self, code: types.CodeType, settings: Settings, virtual: Virtual, names: Mapping[str, object] | None = None
    ) -> None:
        self._code = code
        self._settings = settings
        self._virtual = virtual
        self._names = names or {}
        # What a program sets for its context, the precision of decimals say, is its own and stays from call to call.
        self._context = copy_context()
        self._seed = 0
        self._module = types.ModuleType(loader.MODULE_NAME)
        self._class: type = object
        self._instance: object = None
        self._tools: dict[str, Any] = {}
        self._image = Image()
        """Of the attributes after the last call that succeeded."""
        self.digest = ""
        """Of the state after the last call that succeeded."""

    def build(self, request: Build) -> Reply:
        """Load the program and make the instance."""
        self._seed = request.seed
        self._virtual.begin(request.seed, -1, request.clock_us)
        self._context.run(self._build, request)
        return Reply(serial=request.serial, digest=self.digest, clock_us=self._virtual.clock_us)

    def call(self, request: Call) -> Reply:
        """Call one public method.

        Raises:
            UnknownTool: if there is none of that name.
            NotJson, TooLarge: if the result, or the state that it left, is none that can be.
            BaseException: whatever the method raises.
        """
        self._virtual.begin(self._seed, request.index, request.clock_us)
        loader.put_in_place(self._module)
        return self._context.run(self._call, request)

    def read(self, request: Read) -> Reply:
        """Tell the state."""
        text = self._limited(vars(self._instance), "state", self._settings.max_state_bytes)
        return Reply(serial=request.serial, result=text, digest=self.digest, clock_us=self._virtual.clock_us)

    def roll_back(self) -> bool:
        """Put the attributes back to what they were after the last call that succeeded; False if it cannot."""
        if self._instance is None or not self._image.restorable:
            return False
        try:
            attributes = vars(self._instance)
            if not self._image.shows(attributes):
                self._image.restore(attributes)
        except BaseException:  # noqa: BLE001 - hostile attributes; the parent then replaces this worker
            return False
        return True

    def _build(self, request: Build) -> None:
        self._module, self._class = loader.load(self._code, request.class_name, self._names)
        self._tools = loader.tools_of(self._class)
        decoded: dict[str, Any] = {}

        def fresh_state() -> dict[str, Any]:
            nonlocal decoded
            decoded = from_json(request.state)
            return decoded

        self._instance = loader.construct(self._class, fresh_state)
        # The last one has become the attributes.
        self._observe(decoded if loader.sets_plainly(type(self._instance), decoded) else NOTHING)

    def _call(self, request: Call) -> Reply:
        tool = self._tools.get(request.name)
        if tool is None:
            raise UnknownTool(f"the class has no public method {request.name}")
        result = tool.__get__(self._instance, self._class)(**from_json(request.arguments))
        text = self._limited(result, "result", self._settings.max_output_bytes)
        # marshal marks what has more than one reference: with the result alive a state that was read looks changed.
        del result
        changed = self._observe()
        return Reply(
            serial=request.serial,
            result=text,
            digest=self.digest,
            changed=changed,
            clock_us=self._virtual.clock_us,
        )

    def _observe(self, decoded: Mapping[str, JsonValue] = NOTHING) -> bool:
        """Take the state as it is now for the one to go back to; return whether it changed.

        Args:
            decoded: as for `Image.next`.

        Raises:
            NotJson, TooLarge: if it cannot be the state of a session.
        """
        image, text = self._image.next(vars(self._instance), decoded)
        if text is None:
            self._image = image
            return False
        if len(text) > self._settings.max_state_bytes:
            raise TooLarge(f"the state takes {len(text)} bytes as JSON, allowed are {self._settings.max_state_bytes}")
        digest = bytes_digest(text)
        changed = digest != self.digest
        self.digest, self._image = digest, image
        return changed

    def _limited(self, value: object, what: str, limit: int) -> bytes:
        # Not the canonical text: keys stay in the program's order, which programs and observations show.
        text = json_text_of(value)
        if len(text) > limit:
            raise TooLarge(f"the {what} takes {len(text)} bytes as JSON, allowed are {limit}")
        return text


def failed(
    serial: int,
    error: BaseException,
    message: str,
    instance: Instance | None,
    settings: Settings,
    virtual: Virtual,
    *,
    usable: bool = True,
) -> Reply:
    """The answer to a request that an exception ended; the instance is put back, which can make it unusable.

    Args:
        message: what the exception says.
        instance: None where there is none to put back, after a check.
        usable: whether it can be, as far as that is known.
    """
    return Reply(
        serial=serial,
        kind=failure_kind(error),
        type=clean(type(error).__name__, 200),
        message=clean(message, settings.max_message_chars),
        line=loader.line_of(error),
        digest=instance.digest if instance is not None else "",
        clock_us=virtual.clock_us,
        usable=instance is not None and instance.roll_back() and usable,
    )


def failure_kind(error: BaseException) -> FailureKind:
    """Which kind of failure an exception is that ended a request."""
    if isinstance(error, Timeout):
        return "timeout"
    if isinstance(error, NotJson):
        return "not_json"
    if isinstance(error, TooLarge):
        return "too_large"
    return "unknown_tool" if isinstance(error, UnknownTool) else "raised"


def message_of(error: BaseException) -> str:
    """An exception's text; its `__str__` belongs to the program and may do what any of its methods may."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001 - see above
        return "(its message cannot be read)"


def clean(text: str, limit: int) -> str:
    """A text that can travel, no longer than `limit`."""
    text = str.__str__(text) if len(text) <= limit else text[: limit - 1] + "…"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
