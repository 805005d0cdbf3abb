"""A small OpenAI-compatible server on a real socket; what it answers is a function that the test gives."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """One HTTP answer. ``body``: a JSON value, or raw bytes."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Drop the connection in the middle of the body."""


@dataclass
class FakeServer:
    url: str = ""
    answer: Callable[[str, dict[str, Any]], Reply] = lambda path, body: chat("ok")
    """From path and body of a request; may sleep."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    most_at_once: int = 0


def chat(text: Any, finish: str = "stop", **choice: Any) -> Reply:
    message = {"role": "assistant", "content": text}
    return Reply({"choices": [{"index": 0, "message": message, "finish_reason": finish, **choice}]})


def completion(text: str, finish: str = "stop", **choice: Any) -> Reply:
    return Reply({"choices": [{"index": 0, "text": text, "finish_reason": finish, **choice}]})


def sequence(*replies: Reply) -> Callable[[str, dict[str, Any]], Reply]:
    """One reply after the other, then the last one again and again."""
    left = list(replies)
    lock = threading.Lock()

    def answer(path: str, body: dict[str, Any]) -> Reply:
        with lock:
            return left.pop(0) if len(left) > 1 else left[0]

    return answer


@contextmanager
def serving() -> Iterator[FakeServer]:
    state = FakeServer()
    lock = threading.Lock()
    under_way = 0

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            nonlocal under_way
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                under_way += 1
                state.most_at_once = max(state.most_at_once, under_way)
                state.requests.append(body)
                state.headers.append({name.lower(): value for name, value in self.headers.items()})
            reply = state.answer(self.path, body)
            with lock:
                under_way -= 1
            content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content[: len(content) // 2] if reply.cut else content)
            except OSError:  # the client has gone
                self.close_connection = True
            if reply.cut:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def sleeping(seconds: float, reply: Reply) -> Callable[[str, dict[str, Any]], Reply]:
    def answer(path: str, body: dict[str, Any]) -> Reply:
        time.sleep(seconds)
        return reply

    return answer
