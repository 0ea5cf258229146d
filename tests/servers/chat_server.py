"""`ChatServer`: an OpenAI-compatible server in a thread that answers from a script and fails on demand.

    with ChatServer(answer="hello", faults=[rate_limited(0), None, cut()]) as server:
        ...  # point a model at server.base_url; afterwards look at server.served and server.injected

Nothing about environments is known here.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]
Message = Mapping[str, Any]
Answer = str | Message | Callable[[Body], "str | Message"]
"""A text, a message (`content`, `tool_calls`, `reasoning_content` …, and optionally `finish_reason`), or a function of
the request's body that gives one."""

FEATURES = frozenset({"json_schema", "json_object", "tools"})


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong. Use the functions below rather than this class."""

    name: str
    """Under which it is counted in `ChatServer.injected`."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """Sent instead of the answer; None: the true answer."""
    wait_s: float = 0.0
    """How long nothing is sent."""
    send: float = 1.0
    """Share of the body that is sent before the connection is cut; 1.0: all of it."""
    cut: bool = False
    change: Callable[[Body], Body] | None = None
    """Makes something else of a true reply."""


def _error(status: int, message: str, **more: Any) -> bytes:
    return json.dumps({"error": {"message": message, "code": status, **more}}).encode()


def rate_limited(retry_after: float | str | None = 0) -> Fault:
    """Status 429; `retry_after` is sent as it is (seconds or an HTTP date), None sends no header."""
    headers = {} if retry_after is None else {"Retry-After": str(retry_after)}
    return Fault("rate_limited", 429, headers, _error(429, "Rate limit reached"))


def server_error(status: int = 500) -> Fault:
    """A status of 500 or above."""
    return Fault(f"status_{status}", status, {}, _error(status, "The server had an error"))


def refused(status: int, message: str, **more: Any) -> Fault:
    """Any status with OpenAI's error object (`code`, `param`, `type` can be given)."""
    return Fault(f"status_{status}", status, {}, _error(status, message, **more))


def slow(seconds: float) -> Fault:
    """Answers rightly, but late: more than the client's time-out makes it one."""
    return Fault("slow", wait_s=seconds)


def cut() -> Fault:
    """Closes the connection in the middle of the reply."""
    return Fault("cut", send=0.5, cut=True)


def hung_up() -> Fault:
    """Closes the connection before anything is sent."""
    return Fault("hung_up", send=0.0, cut=True)


def truncated_json() -> Fault:
    """Half of the reply's JSON, as if it were the whole."""
    return Fault("truncated_json", send=0.5)


def malformed_json() -> Fault:
    """A page of HTML with status 200, as a proxy gives it."""
    return Fault("malformed_json", headers={"Content-Type": "text/html"}, body=b"<html><body>Bad gateway</body></html>")


def error_object() -> Fault:
    """Status 200 with an error object, as some routers give it."""
    return Fault("error_object", body=_error(502, "Upstream error"))


def no_choices() -> Fault:
    """A reply with an empty list of choices."""
    return Fault("no_choices", change=lambda reply: {**reply, "choices": []})


def _with_message(reply: Body, finish: str, **parts: Any) -> Body:
    (choice,) = reply["choices"]
    return {**reply, "choices": [{**choice, "message": {**choice["message"], **parts}, "finish_reason": finish}]}


def empty_reply() -> Fault:
    """A well-formed reply without any text."""
    return Fault("empty_reply", change=lambda reply: _with_message(reply, "stop", content="", tool_calls=None))


def withheld() -> Fault:
    """A reply that the content filter stopped."""
    return Fault("withheld", change=lambda reply: _with_message(reply, "content_filter", content=""))


def thinking_aloud(thought: str = "The user wants {json}; let me think.") -> Fault:
    """The true answer with a `<think>` block before it."""

    def change(reply: Body) -> Body:
        message = reply["choices"][0]["message"]
        finish = reply["choices"][0]["finish_reason"]
        return _with_message(reply, finish, content=f"<think>\n{thought}\n</think>\n\n{message['content'] or ''}")

    return Fault("thinking_aloud", change=change)


def wrong_tool_names() -> Fault:
    """Tool calls whose names exist nowhere."""

    def change(reply: Body) -> Body:
        choice = reply["choices"][0]
        calls = [
            {**call, "function": {**call["function"], "name": call["function"]["name"] + "_v2"}}
            for call in choice["message"].get("tool_calls") or []
        ]
        return _with_message(reply, choice["finish_reason"], tool_calls=calls) if calls else reply

    return Fault("wrong_tool_names", change=change)


EVERY_FAULT: tuple[Fault, ...] = (
    rate_limited(0),
    server_error(500),
    server_error(503),
    cut(),
    hung_up(),
    truncated_json(),
    malformed_json(),
    error_object(),
    no_choices(),
    empty_reply(),
    withheld(),
    thinking_aloud(),
    wrong_tool_names(),
)
"""One of each kind that takes no time."""

TRANSPORT_FAULTS: tuple[Fault, ...] = EVERY_FAULT[:9]
"""Those that a client retries without its caller hearing of them."""


def at_random(rate: float, seed: int = 0, kinds: Sequence[Fault] = EVERY_FAULT) -> Callable[[int, Body], Fault | None]:
    """Faults of all kinds at that rate; the same seed gives the same sequence."""
    chance = random.Random(seed)
    lock = threading.Lock()

    def fault(index: int, body: Body) -> Fault | None:
        with lock:
            return chance.choice(list(kinds)) if chance.random() < rate else None

    return fault


Faults = Iterable[Fault | None] | Callable[[int, Body], Fault | None]
"""What goes wrong at the first, second … request (None: nothing; nothing after the end), or a function of the
request's number and body."""


def tool_call(name: str, arguments: Mapping[str, Any] | str, call_id: str = "call_a") -> dict[str, Any]:
    """One entry of a message's `tool_calls`; arguments that are a text are sent as they are."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}


class ChatServer:
    """A local HTTP server with `/v1/chat/completions`, `/v1/embeddings` and `/v1/models`.

    It can be taken `down()` (connections are refused) and brought `up()` again on the same port.
    """

    def __init__(
        self,
        answer: Answer = "ok",
        *,
        faults: Faults = (),
        supports: Iterable[str] = FEATURES,
        api_key: str | None = None,
        model: str = "test-model",
        usage: Mapping[str, Any] | bool | None = True,
        embed: Callable[[str], Sequence[float]] = lambda text: [float(len(text)), 1.0, 0.0],
    ) -> None:
        """
        Args:
            supports: which of `FEATURES` are taken; a request for another one gets a status 400 that names it.
            api_key: when given, other keys get a status 401.
            model: the only model that exists; another name gets a status 404.
            usage: True: counted at four characters a token; None or False: not reported; else sent as it is.
            embed: the vector of one text.
        """
        self.requests: list[Body] = []
        """Bodies of all POST requests that were understood, refused and failed ones too."""
        self.headers: list[dict[str, str]] = []
        """Headers of the same requests, names in lower case."""
        self.served = 0
        """True answers sent."""
        self.injected: Counter[str] = Counter()
        """Faults by name."""
        self.most_at_once = 0
        """Most requests that were in work at the same time."""
        self._answer = answer
        self._faults: Iterator[Fault | None] | Callable[[int, Body], Fault | None]
        self._faults = faults if callable(faults) else iter(faults)
        self._supports = frozenset(supports)
        self._api_key = api_key
        self._model = model
        self._usage = usage
        self._embed = embed
        self._lock = threading.Lock()
        self._at_work = 0
        self._port = 0
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None

    @property
    def base_url(self) -> str:
        """Where a client is to be pointed."""
        return f"http://127.0.0.1:{self._port}/v1"

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *failure: object) -> None:
        self.down()

    def up(self) -> None:
        """Listen; on the same port as before, after `down()`."""
        if self._server is not None:
            return
        self._server = _Listener(("127.0.0.1", self._port), _handler_of(self))
        self._port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def down(self) -> None:
        """Stop listening and drop open connections; connecting is refused from now on."""
        if self._server is None or self._thread is None:
            return
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        self._server = self._thread = None

    # -- called by the handler ------------------------------------------------------------------------------

    def _respond(self, handler: _Handler, path: str, body: Body) -> None:
        with self._lock:
            index = len(self.requests)
            self.requests.append(body)
            self.headers.append({name.lower(): value for name, value in handler.headers.items()})
            self._at_work += 1
            self.most_at_once = max(self.most_at_once, self._at_work)
        try:
            refusal = self._refusal(handler, body)
            if refusal is not None:
                handler.reply(refusal, refusal.body or b"")
                return
            with self._lock:
                fault = self._faults(index, body) if callable(self._faults) else next(self._faults, None)
                if fault is not None:
                    self.injected[fault.name] += 1
            try:
                reply = self._embeddings(body) if path.endswith("/embeddings") else self._completion(index, body)
            except Exception as error:  # noqa: BLE001 - a test's own mistake is said at once, not retried
                unanswered = refused(418, f"the test has no answer to this request: {error!r}")
                handler.reply(unanswered, unanswered.body or b"")
                return
            if fault is None:
                with self._lock:
                    self.served += 1
                fault = Fault("none")
            elif fault.change is not None and "choices" in reply:
                reply = fault.change(reply)
            time.sleep(fault.wait_s)
            handler.reply(fault, fault.body if fault.body is not None else json.dumps(reply).encode())
        finally:
            with self._lock:
                self._at_work -= 1

    def _refusal(self, handler: _Handler, body: Body) -> Fault | None:
        if self._api_key is not None and handler.headers.get("Authorization") != f"Bearer {self._api_key}":
            given = (handler.headers.get("Authorization") or "").removeprefix("Bearer ")
            return refused(401, f"Incorrect API key provided: {given}", type="invalid_request_error")
        if body.get("model") != self._model:
            return refused(404, f"The model `{body.get('model')}` does not exist", type="model_not_found")
        form = body.get("response_format")
        if form is not None and form["type"] not in self._supports:
            return refused(400, f"response_format of type {form['type']} is not supported", param="response_format")
        if body.get("tools") and "tools" not in self._supports:
            return refused(400, "tools are not supported by this server", param="tools")
        return None

    def _completion(self, index: int, body: Body) -> Body:
        given = self._answer(body) if callable(self._answer) else self._answer
        message = {"content": given} if isinstance(given, str) else dict(given)
        calls = message.get("tool_calls")
        finish = message.pop("finish_reason", "tool_calls" if calls else "stop")
        reply: Body = {
            "id": f"chatcmpl-{index}",
            "object": "chat.completion",
            "model": self._model,
            "choices": [{"index": 0, "finish_reason": finish, "message": {"role": "assistant", **message}}],
        }
        if self._usage is True:
            asked, said = len(json.dumps(body["messages"])) // 4 + 1, len(json.dumps(message)) // 4 + 1
            reply["usage"] = {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}
        elif self._usage:
            reply["usage"] = dict(self._usage)
        return reply

    def _embeddings(self, body: Body) -> Body:
        rows = [{"index": index, "embedding": list(self._embed(text))} for index, text in enumerate(body["input"])]
        # The order of the rows is not promised by the interface; the index is.
        return {"object": "list", "model": self._model, "data": rows[::-1]}


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._open: set[socket.socket] = set()
        super().__init__(address, handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def server_close(self) -> None:
        super().server_close()
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # the client closed it already

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that time out hang up on us; that is what such tests are about, and nothing to print."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # One write for head and body: two of them would wait 40 ms for each other's acknowledgement.
    wbufsize = -1
    chat: ChatServer

    def do_GET(self) -> None:
        names = [{"id": self.chat._model, "object": "model"}]
        self.reply(Fault("none"), json.dumps({"object": "list", "data": names}).encode())

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path not in ("/v1/chat/completions", "/v1/embeddings"):
            self.reply(Fault("none", 404), _error(404, f"no such path: {self.path}"))
            return
        self.chat._respond(self, self.path, json.loads(content))

    def reply(self, fault: Fault, content: bytes) -> None:
        sent = content[: int(len(content) * fault.send)]
        if fault.cut and fault.send == 0:
            self.close_connection = True
            return
        self.send_response(fault.status)
        for name, value in {"Content-Type": "application/json", **fault.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content) if fault.cut else len(sent)))
        self.end_headers()
        self.wfile.write(sent)
        self.wfile.flush()
        if fault.cut:
            self.close_connection = True

    def log_message(self, *parts: Any) -> None:
        """Silent: pytest shows what matters."""


def _handler_of(chat: ChatServer) -> type[_Handler]:
    return type("_BoundHandler", (_Handler,), {"chat": chat})
