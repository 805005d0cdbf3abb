"""Concurrent JSON requests to an OpenAI-compatible server, from ordinary synchronous code.

Every request ends: a time limit over the whole exchange, a limit on the answer's size, a bounded number of retries. One
event loop in a thread of its own carries all requests, so any number of threads may call at once.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import httpx

__all__ = ["ServerClient", "ServerError"]

T = TypeVar("T")
R = TypeVar("R")

_MAX_ANSWER_BYTES = 64 << 20
_MAX_PAUSE_SECONDS = 30.0
_CONNECT_SECONDS = 10.0
_PASSING = (408, 409, 425, 429)  # status codes below 500 that may be better the next time


class ServerError(RuntimeError):
    """A request that finally failed. The message names the URL, the reason and, where there is one, the fix."""

    def __init__(
        self,
        url: str,
        reason: str,
        kind: Literal["unreachable", "refused", "failed"],
        *,
        status: int | None = None,
        param: str | None = None,
        pause: float | None = None,
    ) -> None:
        super().__init__(f"{url}: {reason}")
        self.reason = reason
        self.kind = kind
        """``unreachable``: no connection; ``refused``: the request is at fault; ``failed``: the server is (passing errors)."""
        self.status = status
        self.param = param
        """The field of the request that the server names as the culprit."""
        self.pause = pause
        """Seconds after which the server wants to be asked again."""

    @property
    def passing(self) -> bool:
        """Whether asking again may help."""
        return self.kind != "refused"


class ServerClient:
    """Posts JSON and reads JSON, with retries.

    Args:
        base_url: up to and including the version, as in ``http://localhost:8000/v1``; without a path ``/v1`` is added.
        api_key: sent as a bearer token.
        concurrency: most requests under way at once.
        timeout: seconds for one attempt, from connecting to the last byte.
        retries: further attempts after passing errors (no connection, timeouts, 408, 409, 425, 429, 5xx, broken answers).
        backoff: seconds before the first retry, doubled each time; ``Retry-After`` of the server comes first.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        concurrency: int = 16,
        timeout: float = 300.0,
        retries: int = 3,
        backoff: float = 0.5,
    ) -> None:
        parts = urlsplit(base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"base_url must look like http://localhost:8000/v1, got {base_url!r}")
        if concurrency < 1 or retries < 0 or not timeout > 0 or backoff < 0:
            raise ValueError(
                "a server client needs concurrency >= 1, timeout > 0, retries >= 0 and backoff >= 0; got "
                f"{concurrency}, {timeout}, {retries}, {backoff}"
            )
        if api_key is not None and not (api_key and api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key must be plain ASCII without line breaks (the value is not shown here)")
        self.base_url = base_url.rstrip("/") if parts.path.strip("/") else base_url.rstrip("/") + "/v1"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._concurrency, self._timeout, self._retries, self._backoff = concurrency, timeout, retries, backoff
        self._lock = threading.Lock()
        self._closed = False
        self._pid = -1
        self._loop: asyncio.AbstractEventLoop
        self._thread: threading.Thread
        self._http: httpx.AsyncClient
        self._slots: asyncio.Semaphore

    def map(self, function: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
        """``function`` of every item, all at once, in order; blocks until the last is done.

        The first exception of ``function`` ends the others. Raises RuntimeError when the client is or gets closed.
        """
        with self._lock:
            loop = self._running_loop()
            future = asyncio.run_coroutine_threadsafe(_all(function, items), loop)
        try:
            return future.result()
        except concurrent.futures.CancelledError:
            raise RuntimeError("the client was closed while requests were under way") from None
        except BaseException:  # Ctrl-C as well: nothing stays under way
            future.cancel()
            raise

    async def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The JSON object that the server answers. To be awaited inside ``map``. Raises ServerError."""
        url = f"{self.base_url}/{path}"
        attempt = 0
        while True:
            try:
                async with self._slots:
                    return await asyncio.wait_for(self._attempt(url, body), self._timeout)
            except asyncio.TimeoutError:
                error = ServerError(url, f"no answer within {self._timeout:g} s (argument timeout)", "failed")
            except ServerError as caught:
                error = caught
            except (httpx.ConnectError, httpx.ConnectTimeout) as caught:
                error = ServerError(
                    url,
                    f"no server can be reached ({caught or type(caught).__name__}). Start it (for example: vllm serve MODEL "
                    "--port 8000) or correct base_url",
                    "unreachable",
                )
            except (httpx.HTTPError, httpx.InvalidURL) as caught:
                error = ServerError(url, f"the connection broke ({caught or type(caught).__name__})", "failed")
            if not error.passing or attempt >= self._retries:
                raise error
            pause = self._backoff * 2**attempt if error.pause is None else error.pause
            await asyncio.sleep(min(pause, _MAX_PAUSE_SECONDS))
            attempt += 1

    def close(self) -> None:
        """End the connections and the thread; requests under way are given up. May be called twice."""
        with self._lock:
            self._closed = True
            if self._pid != os.getpid():
                return
            self._pid = -1
        asyncio.run_coroutine_threadsafe(self._shut_down(), self._loop).result(_CONNECT_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CONNECT_SECONDS)
        self._loop.close()

    async def _shut_down(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._http.aclose()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started when needed. The lock is held."""
        if self._closed:
            raise RuntimeError(f"the client of {self.base_url} is closed")
        if self._pid != os.getpid():  # the first call, or the first in a forked process, where no thread survives
            self._loop = asyncio.new_event_loop()
            self._slots = asyncio.Semaphore(self._concurrency)
            self._http = httpx.AsyncClient(
                headers=self._headers,
                limits=httpx.Limits(max_connections=self._concurrency, max_keepalive_connections=self._concurrency),
                timeout=httpx.Timeout(self._timeout, connect=min(self._timeout, _CONNECT_SECONDS)),
            )
            self._thread = threading.Thread(target=self._loop.run_forever, name="server-client", daemon=True)
            self._thread.start()
            self._pid = os.getpid()
        return self._loop

    async def _attempt(self, url: str, body: Mapping[str, Any]) -> dict[str, Any]:
        content = bytearray()
        async with self._http.stream("POST", url, json=body) as response:
            async for chunk in response.aiter_bytes():
                content += chunk
                if len(content) > _MAX_ANSWER_BYTES:
                    raise ServerError(url, f"the answer is longer than {_MAX_ANSWER_BYTES >> 20} MiB", "failed")
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if response.status_code == 200:
            if not isinstance(answer, dict):
                raise ServerError(url, f"the answer is no JSON object: {_excerpt(content)}", "failed")
            return answer
        raise _refusal(url, response, answer, content)


async def _all(function: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    tasks = [asyncio.ensure_future(function(item)) for item in items]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:  # after an error nothing goes on behind the caller's back
            task.cancel()


def _refusal(url: str, response: httpx.Response, answer: Any, content: bytes | bytearray) -> ServerError:
    """The error behind any status but 200, whose body may have every form."""
    status = response.status_code
    details = answer.get("error", answer) if isinstance(answer, dict) else {}
    details = details if isinstance(details, dict) else {"message": details}
    message, param = details.get("message"), details.get("param")
    reason = f"status {status}: {_excerpt(str(message).encode('utf-8', 'replace') if message else content)}"
    if status in (401, 403):
        reason += " (argument api_key)"
    elif status == 404:
        reason += " (is the model's name right, and does base_url end with the API's version, as in /v1?)"
    passing = status >= 500 or status in _PASSING
    return ServerError(
        url,
        reason,
        "failed" if passing else "refused",
        status=status,
        param=param if isinstance(param, str) else None,
        pause=_seconds(response.headers.get("retry-after")),
    )


def _seconds(text: str | None) -> float | None:
    """``Retry-After`` in seconds; its other form, a date, is not used by these servers."""
    return float(text) if text and text.isascii() and text.isdigit() else None


def _excerpt(content: bytes | bytearray) -> str:
    """The beginning of a foreign text, on one line."""
    text = " ".join(content[:2000].decode("utf-8", "replace").split())
    return "".join(c for c in text[:300] if c.isprintable()) or "an empty answer"
