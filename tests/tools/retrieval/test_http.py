"""The HTTP client against real sockets: a server of the protocol, and every way a server can fail."""

import os
import pickle
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from agentic_gym.tools.retrieval import HTTPRetriever
from agentic_gym.tools.search import Passage, SearchUnavailable
from tests.tools.retrieval.search_servers import (
    drip,
    hang,
    http_reply,
    protocol_server,
    raw_server,
    read_request,
    reply_with,
)

ONE = {"result": [[{"document": {"id": "7", "contents": '"Loa"\nA town.'}, "score": 2.5}]]}
LOA = Passage("7", "Loa", "A town.", 2.5)


def client(url, **settings):
    return HTTPRetriever(url, **{"timeout": 5.0, "retries": 1, "backoff": 0.01, **settings})


def test_a_server_of_the_protocol():
    log = []
    with protocol_server(lambda q: [(i, f'"{q}"\nline {i}', 9.0 - i) for i in range(5)], log) as url:
        found = client(url, max_batch=2).search(["a", "b", "c"], k=3)
    assert found[1] == [Passage(str(i), "b", f"line {i}", 9.0 - i) for i in range(3)]
    assert [len(row) for row in found] == [3, 3, 3]
    assert log == [
        ("/retrieve", {"queries": ["a", "b"], "topk": 3, "return_scores": True}),
        ("/retrieve", {"queries": ["c"], "topk": 3, "return_scores": True}),
    ]


def test_nothing_found_is_not_unavailable():
    with protocol_server(lambda q: []) as url:
        assert client(url).search(["a"], 3) == [[]]
        assert client(url).search([], 3) == []


def test_documents_without_scores():
    with raw_server(reply_with(http_reply({"result": [[{"id": "7", "contents": '"Loa"\nA town.'}]]}))) as url:
        assert client(url).search(["a"], 3) == [[Passage("7", "Loa", "A town.")]]


def nested():
    return http_reply(b'{"result": ' + b"[" * 100_000)


FAILURES = {
    "hangs": hang,
    "hangs up": lambda connection, stop: None,
    "drips a header": drip(b"HTTP/1.1 200 OK\r\nX: "),
    "drips a body": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"),
    "dies in the body": reply_with(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"result": [['),
    "is not HTTP": reply_with(b"SSH-2.0-OpenSSH_9.9\r\n"),
    "500": reply_with(http_reply(b"oops", "500 Internal Server Error")),
    "404": reply_with(http_reply(b"", "404 Not Found")),
    "redirect": reply_with(http_reply(b"", "302 Found")),
    "is not JSON": reply_with(http_reply(b"<html>")),
    "is not UTF-8": reply_with(http_reply(b'{"result": [["\xff"]]}')),
    "nests deeply": reply_with(nested()),
    "no result": reply_with(http_reply({"results": []})),
    "too few rows": reply_with(http_reply({"result": []})),
    "rows of text": reply_with(http_reply({"result": ["Loa"]})),
    "no contents": reply_with(http_reply({"result": [[{"document": {"id": "7"}, "score": 1.0}]]})),
    "score is text": reply_with(http_reply({"result": [[{"document": ONE["result"][0][0]["document"], "score": "1"}]]})),
    "score is NaN": reply_with(http_reply(b'{"result": [[{"document": {"id": "7", "contents": "a"}, "score": NaN}]]}')),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_every_failure_is_unavailable_and_in_time(failure):
    with raw_server(FAILURES[failure]) as url:
        start = time.monotonic()
        with pytest.raises(SearchUnavailable, match=url):
            client(url, timeout=0.3).search(["a"], 3)
        assert time.monotonic() - start < 10


def test_a_closed_port_and_an_unknown_host():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(SearchUnavailable, match="ConnectError"):
        client(f"http://127.0.0.1:{port}").search(["a"], 3)
    with pytest.raises(SearchUnavailable):
        client("http://no-such-host.invalid").search(["a"], 3)


def test_a_huge_reply_is_refused(monkeypatch):
    monkeypatch.setattr("agentic_gym.tools.retrieval.http.MAX_RESPONSE_BYTES", 1000)
    padded = http_reply({"result": [[]], "padding": "x" * 10_000})
    with raw_server(reply_with(padded)) as url, pytest.raises(SearchUnavailable, match="longer than 1000 bytes"):
        client(url).search(["a"], 3)


def counting(replies):
    """A behaviour that gives the n-th request the n-th reply, and how many requests came."""
    counter = iter(range(1000))
    seen = []

    def behave(connection, stop):
        read_request(connection)
        n = next(counter)
        seen.append(n)
        connection.sendall(replies[min(n, len(replies) - 1)])

    return behave, seen


def test_temporary_failures_are_retried():
    behave, seen = counting([http_reply(b"", "503 Service Unavailable"), http_reply(b"nonsense"), http_reply(ONE)])
    with raw_server(behave) as url:
        assert client(url, retries=2).search(["a"], 3) == [[LOA]]
    assert len(seen) == 3


def test_a_refused_request_is_not_retried():
    behave, seen = counting([http_reply(b'{"detail": "no field topk"}', "422 Unprocessable")])
    with raw_server(behave) as url, pytest.raises(SearchUnavailable, match="no field topk"):
        client(url, retries=3).search(["a"], 3)
    assert len(seen) == 1


def test_a_connection_that_the_server_closed_is_replaced():
    with raw_server(reply_with(http_reply(ONE))) as url:
        retriever = client(url, retries=0)
        for _ in range(3):
            assert retriever.search(["a"], 1) == [[LOA]]
            time.sleep(0.02)


def test_no_more_requests_at_once_than_allowed():
    running, most, lock = 0, 0, threading.Lock()

    def find(query):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.02)
        with lock:
            running -= 1
        return []

    with protocol_server(find) as url, ThreadPoolExecutor(12) as pool:
        retriever = client(url, max_concurrency=3)
        list(pool.map(lambda i: retriever.search([str(i)], 1), range(24)))
    assert most == 3


def test_a_fork_and_a_pickle_open_their_own_connections():
    with protocol_server(lambda q: [("7", "Loa\nA town.", 2.5)]) as url:
        retriever = client(url)
        assert retriever.search(["a"], 1) == [[LOA]]
        assert pickle.loads(pickle.dumps(retriever)).search(["a"], 1) == [[LOA]]
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if retriever.search(["a"], 1) == [[LOA]] else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert retriever.search(["a"], 1) == [[LOA]]
        retriever.close()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://host", "", "http://"])
def test_addresses_are_checked(url):
    with pytest.raises(ValueError, match="url must be like"):
        HTTPRetriever(url)


def test_a_full_address_is_kept():
    assert HTTPRetriever("http://h:1/v2/find").url == "http://h:1/v2/find"
    with pytest.raises(ValueError, match="timeout=0"):
        HTTPRetriever("http://h:1", timeout=0)
