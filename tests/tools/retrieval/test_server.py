"""Our server, over real sockets, asked as Search-R1 asks."""

import json
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from agentic_gym.tools.retrieval import BM25Retriever, HTTPRetriever
from agentic_gym.tools.retrieval.server import ServeSearch, create_app
from agentic_gym.tools.search import Passage, SearchUnavailable

pytest.importorskip("starlette")
uvicorn = pytest.importorskip("uvicorn")

PASSAGES = [Passage(str(i), f"Town {i}", f"Town {i} has a \nmarket and a harbour.") for i in range(9)]


@contextmanager
def running(retriever, **settings):
    server = uvicorn.Server(uvicorn.Config(create_app(retriever, **settings), port=0, log_level="error"))
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def url():
    with running(BM25Retriever(PASSAGES)) as url:
        yield url


def post(url, payload):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    request = urllib.request.Request(url + "/retrieve", data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def test_search_r1s_request_unchanged(url):
    status, reply = post(url, {"queries": ["Town 4", "harbour"], "topk": 3, "return_scores": True})
    assert status == 200
    assert [len(row) for row in reply["result"]] == [3, 3]
    first = reply["result"][0][0]
    assert set(first) == {"document", "score"}
    # What Search-R1 does with a reply.
    title, _, text = first["document"]["contents"].partition("\n")
    assert f"Doc 1(Title: {title}) {text}" == 'Doc 1(Title: "Town 4") Town 4 has a \nmarket and a harbour.'


def test_defaults_and_documents_without_scores(url):
    for payload in ({"queries": ["harbour"]}, {"queries": ["harbour"], "topk": None, "return_scores": False}):
        status, reply = post(url, payload)
        assert status == 200
        assert [set(document) for document in reply["result"][0]] == [{"id", "contents"}] * 3


def test_our_client_reads_what_our_retriever_found(url):
    direct = BM25Retriever(PASSAGES).search(["Town 7 market", "zebra"], 4)
    assert HTTPRetriever(url).search(["Town 7 market", "zebra"], 4) == direct


@pytest.mark.parametrize(
    ("payload", "complaint"),
    [
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        ([], "expected"),
        ({}, '"queries" must be'),
        ({"queries": "one"}, '"queries" must be'),
        ({"queries": [1]}, '"queries" must be'),
        ({"queries": ["a"] * 5000}, "at most"),
        ({"queries": [], "topk": -1}, '"topk" must be'),
        ({"queries": [], "topk": 10**9}, '"topk" must be'),
        ({"queries": [], "topk": "3"}, '"topk" must be'),
        ({"queries": [], "topk": True}, '"topk" must be'),
        ({"queries": [], "return_scores": "yes"}, '"return_scores" must be'),
    ],
)
def test_bad_requests_are_told_what_is_wrong(url, payload, complaint):
    status, reply = post(url, payload)
    assert status == 422
    assert complaint in reply["detail"]


def test_a_huge_request_is_refused(url):
    status, _ = post(url, {"queries": ["x" * (9 << 20)]})
    assert status == 413


def test_a_failing_retriever_is_unavailable_on_the_other_side():
    class Broken:
        def search(self, queries, k):
            raise SearchUnavailable("index gone")

    with running(Broken()) as url:
        assert post(url, {"queries": ["a"]}) == (503, {"detail": "index gone"})
        with pytest.raises(SearchUnavailable, match="index gone"):
            HTTPRetriever(url, retries=0).search(["a"], 1)


def test_health(url):
    with urllib.request.urlopen(url + "/health", timeout=10) as reply:
        assert json.load(reply) == {"status": "ok"}


def test_options_build_a_retriever(tmp_path, monkeypatch):
    monkeypatch.setenv("AGENTIC_GYM_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": "1", "title": "Loa", "text": "A town."}\n')
    assert ServeSearch(path).build().search(["Loa"], 1)[0][0].id == "1"
