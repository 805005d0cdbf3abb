"""The transport: retries, limits, dead and broken servers, threads, forks."""

from __future__ import annotations

import gzip
import multiprocessing
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from agentic_gym.policies import server_client
from agentic_gym.policies.server_client import ServerClient, ServerError
from tests.policies.fake_server import FakeServer, Reply, sequence, serving, sleeping


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with serving() as state:
        yield state


@pytest.fixture
def client(server: FakeServer) -> Iterator[ServerClient]:
    client = ServerClient(server.url, backoff=0.01, timeout=5.0)
    yield client
    client.close()


def ask(client: ServerClient, count: int = 1) -> list[Any]:
    return client.map(lambda i: client.post("echo", {"i": i}), range(count))


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_order_and_concurrency(server: FakeServer) -> None:
    def answer(path: str, body: dict[str, Any]) -> Reply:
        time.sleep(0.02 if body["i"] % 3 else 0.05)
        return Reply({"path": path, "i": body["i"]})

    server.answer = answer
    client = ServerClient(server.url, concurrency=4)
    assert ask(client, 24) == [{"path": "/v1/echo", "i": i} for i in range(24)]
    assert 1 < server.most_at_once <= 4
    client.close()


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
def test_passing_errors_are_retried(server: FakeServer, client: ServerClient, status: int) -> None:
    server.answer = sequence(Reply({"error": "busy"}, status), Reply(b"", status), Reply({"fine": 1}))
    assert ask(client) == [{"fine": 1}]
    assert len(server.requests) == 3


def test_retry_after_is_obeyed(server: FakeServer, client: ServerClient) -> None:
    server.answer = sequence(Reply({}, 429, {"Retry-After": "1"}), Reply({"fine": 1}))
    start = time.monotonic()
    ask(client)
    assert time.monotonic() - start >= 1.0


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_refusals_are_not_retried(server: FakeServer, client: ServerClient, status: int) -> None:
    server.answer = sequence(Reply({"error": {"message": "no\nsuch\x00 thing", "param": "seed"}}, status))
    with pytest.raises(ServerError, match=f"{server.url}/echo: status {status}: no such thing") as caught:
        ask(client)
    assert (caught.value.kind, caught.value.status, caught.value.param) == ("refused", status, "seed")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "reply",
    [
        Reply({"error": "on fire"}, 500),
        Reply(b"<html>hello</html>"),
        Reply(b""),
        Reply([1, 2]),
        Reply(b"[" * 200_000),
        Reply(b"\xff\xfe"),
        Reply({"a": "b" * 1000}, cut=True),
        Reply(b"not gzip", headers={"Content-Encoding": "gzip"}),
        Reply({"error": {"message": {"nested": [None]}}}, 503),
        Reply({}, 503, {"Retry-After": "-3"}),
    ],
    ids=range(10),
)
def test_broken_answers_fail_after_the_retries(server: FakeServer, client: ServerClient, reply: Reply) -> None:
    server.answer = sequence(reply)
    with pytest.raises(ServerError) as caught:
        ask(client)
    assert caught.value.kind == "failed"
    assert server.url in str(caught.value)
    assert len(server.requests) == 4


@pytest.mark.parametrize("packed", [False, True])
def test_endless_answers_are_cut_off(
    server: FakeServer, client: ServerClient, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(server_client, "_MAX_ANSWER_BYTES", 1 << 20)
    content = b'{"a": "' + b"b" * (2 << 20) + b'"}'
    body, headers = (gzip.compress(content), {"Content-Encoding": "gzip"}) if packed else (content, {})
    server.answer = sequence(Reply(body, headers=headers))
    with pytest.raises(ServerError, match="longer than 1 MiB"):
        ask(client)


def test_hanging_server(server: FakeServer) -> None:
    server.answer = sleeping(3.0, Reply({}))
    client = ServerClient(server.url, timeout=0.1, retries=1, backoff=0.01)
    start = time.monotonic()
    with pytest.raises(ServerError, match=r"no answer within 0\.1 s \(argument timeout\)"):
        ask(client)
    assert time.monotonic() - start < 2
    client.close()


def test_dripping_server_meets_the_same_limit() -> None:
    """Each byte comes in time, the answer as a whole does not."""
    listener = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
                if done.wait(0.02):
                    return
                try:
                    connection.send(bytes([byte]))
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    client = ServerClient(f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=0.3, retries=0)
    start = time.monotonic()
    with pytest.raises(ServerError, match="no answer within"):
        ask(client)
    assert time.monotonic() - start < 2
    done.set()
    thread.join()
    listener.close()
    client.close()


def test_dead_server_names_url_and_fix() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    client = ServerClient(url, retries=1, backoff=0.01)
    with pytest.raises(ServerError, match="no server can be reached") as caught:
        ask(client)
    assert caught.value.kind == "unreachable"
    assert url in str(caught.value)
    assert "Start it" in str(caught.value)
    client.close()


def test_server_that_comes_up_later(server: FakeServer) -> None:
    server.answer = sequence(Reply({"fine": 1}))
    client = ServerClient(server.url, retries=5, backoff=0.1)
    real = client._attempt
    failures = iter([True, True])
    # A refused connection of httpx, twice, then the server is there.
    dead = f"http://127.0.0.1:{free_port()}/v1/echo"
    client._attempt = lambda url, body: real(dead if next(failures, False) else url, body)  # type: ignore[method-assign]
    assert ask(client) == [{"fine": 1}]
    client.close()


def test_key_is_sent_and_never_shown(server: FakeServer) -> None:
    client = ServerClient(server.url, api_key="sk-secret")
    server.answer = sequence(Reply({"error": {"message": "wrong key"}}, 401))
    with pytest.raises(ServerError, match="argument api_key") as caught:
        ask(client)
    assert server.headers[0]["authorization"] == "Bearer sk-secret"
    assert "secret" not in str(caught.value)
    client.close()
    with pytest.raises(ValueError, match="plain ASCII") as refused:
        ServerClient(server.url, api_key="sk-\nsecret")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://host:8000", "http://host:8000/v1"),
        ("http://host:8000/", "http://host:8000/v1"),
        ("https://host/v1/", "https://host/v1"),
        ("https://host/openai/v1beta", "https://host/openai/v1beta"),
    ],
)
def test_base_url(url: str, expected: str) -> None:
    assert ServerClient(url).base_url == expected


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://host/v1", "http://", "/v1"])
def test_bad_base_url(url: str) -> None:
    with pytest.raises(ValueError, match="base_url must look like"):
        ServerClient(url)


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"retries": -1}, {"timeout": 0}, {"timeout": float("nan")}])
def test_bad_limits(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="concurrency >= 1"):
        ServerClient("http://host", **options)


def test_many_threads(server: FakeServer, client: ServerClient) -> None:
    server.answer = lambda path, body: Reply({"i": body["i"]})
    results: list[Any] = []
    threads = [threading.Thread(target=lambda: results.append(ask(client, 10))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[{"i": i} for i in range(10)]] * 8


def test_close(server: FakeServer) -> None:
    before = set(threading.enumerate())
    client = ServerClient(server.url)
    server.answer = sequence(Reply({}))
    ask(client, 3)
    client.close()
    client.close()
    mine = [t for t in threading.enumerate() if t not in before and t.name == "server-client"]
    assert mine == []
    with pytest.raises(RuntimeError, match="is closed"):
        ask(client)
    ServerClient(server.url).close()  # never used


def test_close_ends_what_is_under_way(server: FakeServer) -> None:
    server.answer = sleeping(5.0, Reply({}))
    client = ServerClient(server.url)
    errors: list[Exception] = []

    def wait() -> None:
        try:
            ask(client, 2)
        except RuntimeError as error:
            errors.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while len(server.requests) < 2:
        time.sleep(0.01)
    client.close()
    thread.join(3)
    assert not thread.is_alive()
    assert "closed while requests were under way" in str(errors[0])


def test_interrupt(server: FakeServer) -> None:
    server.answer = sleeping(1.0, Reply({}))
    client = ServerClient(server.url)
    timer = threading.Timer(0.2, signal.pthread_kill, [threading.main_thread().ident, signal.SIGINT])
    timer.start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        ask(client, 2)
    assert time.monotonic() - start < 0.9
    server.answer = sequence(Reply({"fine": 1}))
    assert ask(client) == [{"fine": 1}]
    client.close()
    timer.join()


def _ask_in_child(client: ServerClient, queue: Any) -> None:
    queue.put(ask(client, 2))


@pytest.mark.skipif(sys.platform == "darwin", reason="forking a process with threads is not safe on macOS")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_forked_process(server: FakeServer, client: ServerClient) -> None:
    server.answer = lambda path, body: Reply({"i": body["i"]})
    ask(client)
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    child = context.Process(target=_ask_in_child, args=(client, queue))
    child.start()
    child.join(20)
    assert child.exitcode == 0
    assert queue.get() == [{"i": 0}, {"i": 1}]


def test_first_error_ends_the_others(server: FakeServer) -> None:
    def answer(path: str, body: dict[str, Any]) -> Reply:
        time.sleep(0.05 * body["i"])
        return Reply({}, 404)

    server.answer = answer
    client = ServerClient(server.url, concurrency=1)
    with pytest.raises(ServerError):
        ask(client, 20)
    time.sleep(0.3)
    assert len(server.requests) < 5
    client.close()
