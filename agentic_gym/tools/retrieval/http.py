"""Search over HTTP, in the protocol of Search-R1's retrieval server.

``POST /retrieve`` with ``{"queries": [...], "topk": 3, "return_scores": true}`` answers
``{"result": [[{"document": {"id": "7", "contents": "Title\\ntext"}, "score": 1.5}, ...], ...]}``; without scores the
documents stand bare. The other side of it is ``agentic_gym.tools.retrieval.server``.

- ``HTTPRetriever``: the client. Whatever the server does, a call ends in bounded time with passages or ``SearchUnavailable``.
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import httpcore

from agentic_gym.tools.retrieval.corpus import passage_from_record
from agentic_gym.tools.search import Passage, SearchUnavailable

__all__ = ["HTTPRetriever"]

MAX_RESPONSE_BYTES = 64 << 20
_HEADERS = [("Content-Type", "application/json"), ("Accept", "application/json"), ("Accept-Encoding", "identity")]
_RETRIED_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


class HTTPRetriever:
    """A retriever behind a server of the Search-R1 protocol.

    A call takes at most about ``(retries + 1) * timeout + 2 ** retries * backoff`` seconds once it has one of the
    ``max_concurrency`` places. Connections are kept and reused; the object survives forks and pickling.

    Args:
        url: ``http://host:port`` (then ``/retrieve`` is added) or the full address.
        timeout: seconds that one attempt may take from connecting to the last byte, however slowly bytes drip in.
        retries: further attempts after a refused connection, a timeout, a broken reply or a status such as 503.
        backoff: seconds before the second attempt; doubles each time.
        max_concurrency: requests at once from this process; more wait.
        max_batch: queries per request.

    Raises:
        ValueError: an address that is not http(s), or a number out of range.

    Example:
        >>> HTTPRetriever("http://localhost:8000").url
        'http://localhost:8000/retrieve'
    """

    def __init__(
        self,
        url: str,
        *,
        timeout: float = 10.0,
        retries: int = 2,
        backoff: float = 0.25,
        max_concurrency: int = 16,
        max_batch: int = 64,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url must be like http://localhost:8000, got {url!r}")
        if timeout <= 0 or retries < 0 or backoff < 0 or max_concurrency < 1 or max_batch < 1:
            raise ValueError(
                f"need timeout > 0, retries and backoff >= 0, max_concurrency and max_batch >= 1; got timeout={timeout}, "
                f"retries={retries}, backoff={backoff}, max_concurrency={max_concurrency}, max_batch={max_batch}"
            )
        self.url = url if parts.path.strip("/") else url.rstrip("/") + "/retrieve"
        self.timeout = timeout
        self.retries = retries
        self.backoff = backoff
        self.max_concurrency = max_concurrency
        self.max_batch = max_batch
        self._connect()

    def _connect(self) -> None:
        self._pid = os.getpid()
        self._places = threading.BoundedSemaphore(self.max_concurrency)
        self._clock = _Clock()
        self._pool = httpcore.ConnectionPool(
            max_connections=self.max_concurrency, keepalive_expiry=30.0, network_backend=_DeadlineBackend(self._clock)
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._connect()

    def close(self) -> None:
        """Close the kept connections; a later search opens new ones."""
        self._pool.close()

    def search(self, queries: Sequence[str], k: int) -> list[list[Passage]]:
        """The at most ``k`` best passages of each query. Raises SearchUnavailable when the server fails."""
        if self._pid != os.getpid():
            self._connect()  # a forked child must not share its parent's sockets
        results: list[list[Passage]] = []
        for start in range(0, len(queries), self.max_batch):
            results += self._retrieve(list(queries[start : start + self.max_batch]), k)
        return results

    def _retrieve(self, queries: list[str], k: int) -> list[list[Passage]]:
        body = json.dumps({"queries": queries, "topk": k, "return_scores": True}).encode()
        with self._places:
            for attempt in range(self.retries + 1):
                if attempt:
                    time.sleep(self.backoff * 2 ** (attempt - 1))
                try:
                    status, reply = self._post(body)
                    if status == 200:
                        return _passages(reply, len(queries), k)
                    problem = f"status {status}: {reply[:200].decode('utf-8', 'replace')}"
                    if status not in _RETRIED_STATUS:
                        break
                except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, ValueError) as error:
                    problem = f"{type(error).__name__}: {error}"
        raise SearchUnavailable(f"{self.url} failed after {attempt + 1} of {self.retries + 1} attempts: {problem}")

    def _post(self, body: bytes) -> tuple[int, bytes]:
        self._clock.start(self.timeout)
        limits = dict.fromkeys(("connect", "read", "write", "pool"), self.timeout)
        call = self._pool.stream("POST", self.url, headers=_HEADERS, content=body, extensions={"timeout": limits})
        with call as response:
            reply = bytearray()
            for part in response.iter_stream():
                reply += part
                if len(reply) > MAX_RESPONSE_BYTES:
                    raise ValueError(f"the reply is longer than {MAX_RESPONSE_BYTES} bytes")
            return response.status, bytes(reply)


def _passages(reply: bytes, n_queries: int, k: int) -> list[list[Passage]]:
    """Read a reply. Raises ValueError for anything that is not the protocol's."""
    try:
        result = json.loads(reply)["result"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"the reply is not a JSON object with 'result': {reply[:80]!r}") from None
    if not isinstance(result, list) or len(result) != n_queries or not all(isinstance(found, list) for found in result):
        raise ValueError(f"'result' must be a list of {n_queries} lists")
    return [[_passage(item) for item in found[:k]] for found in result]


def _passage(item: Any) -> Passage:
    scored = isinstance(item, dict) and "document" in item
    passage = passage_from_record(item["document"] if scored else item)
    score = item.get("score", 0.0) if scored else 0.0
    if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
        raise ValueError(f"a score must be a finite number, got {score!r:.40}")
    return replace(passage, score=float(score))


class _Clock(threading.local):
    """The time by which this thread's current attempt must be over."""

    end = 0.0

    def start(self, seconds: float) -> None:
        self.end = time.monotonic() + seconds

    def left(self, error: type[httpcore.TimeoutException]) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise error("the attempt's time is over")
        return left


class _DeadlineBackend(httpcore.NetworkBackend):
    """Opens streams that obey one deadline for a whole attempt. HTTP libraries restart their timeout on every read, so that a
    server which drips a byte now and then would hold a client for ever."""

    def __init__(self, clock: _Clock) -> None:
        self._clock = clock
        self._backend = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        left = self._clock.left(httpcore.ConnectTimeout)
        return _DeadlineStream(self._backend.connect_tcp(host, port, left, local_address, socket_options), self._clock)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, stream: httpcore.NetworkStream, clock: _Clock) -> None:
        self._stream = stream
        self._clock = clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, self._clock.left(httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, self._clock.left(httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        left = self._clock.left(httpcore.ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, left), self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
