"""A model on the loopback: DSH asks it as it asks any other, and a function of the conversation answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SESSION_HEADER = "x-deepseek-harness-session-id"


@dataclass(frozen=True)
class Call:
    """A tool that the model calls."""

    name: str
    arguments: dict[str, Any]


Reply = str | Sequence[Call]
"""Text ends the turn; calls go on. `Refused` ends it badly."""


class Refused(Exception):
    """The model's server answers with an error that is not worth a retry."""


@dataclass
class Exchange:
    """One question of DSH, and the answer."""

    session: str
    messages: list[dict[str, Any]]
    tools: list[str]
    reply: Reply | None = None


@dataclass
class Model:
    """Answers with `answer(exchange)`; keeps what it was asked."""

    answer: Callable[[Exchange], Reply]
    asked: list[Exchange] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _count: int = 0

    def __enter__(self) -> Model:
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                model._serve(self, body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def _serve(self, handler: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        tools = [tool["function"]["name"] for tool in body.get("tools") or ()]
        exchange = Exchange(handler.headers.get(SESSION_HEADER, ""), body["messages"], tools)
        try:
            # A request without tools is for a title or a summary, not for the work.
            exchange.reply = self.answer(exchange) if tools else "a title"
        except Refused as refusal:
            return self._fail(handler, 400, str(refusal))
        except Exception as error:  # a broken script must not look like a broken model
            self.errors.append(f"{type(error).__name__}: {error}")
            return self._fail(handler, 400, "the scripted model broke")
        finally:
            with self._lock:
                if tools:
                    self.asked.append(exchange)
        return self._stream(handler, exchange.reply)

    def _fail(self, handler: BaseHTTPRequestHandler, status: int, message: str) -> None:
        text = json.dumps({"error": {"message": message, "type": "invalid_request_error"}}).encode()
        handler.send_response(status)
        handler.send_header("content-type", "application/json")
        handler.send_header("content-length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def _stream(self, handler: BaseHTTPRequestHandler, reply: Reply) -> None:
        with self._lock:
            self._count += 1
            number = self._count
        delta: dict[str, Any] = {"role": "assistant"}
        if isinstance(reply, str):
            delta["content"] = reply
        else:
            delta["tool_calls"] = [
                {"index": index, "id": f"call-{number}-{index}", "type": "function",
                 "function": {"name": call.name, "arguments": json.dumps(call.arguments)}}
                for index, call in enumerate(reply)
            ]  # fmt: skip
        finish = "stop" if isinstance(reply, str) else "tool_calls"
        frame = {"id": f"answer-{number}", "object": "chat.completion.chunk", "created": 0, "model": "scripted"}
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        chunks = [
            {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {**frame, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage},
        ]
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.end_headers()
        for chunk in chunks:
            handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
        handler.wfile.write(b"data: [DONE]\n\n")
