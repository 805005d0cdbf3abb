"""RemoteSandbox: the same calls, run by a server that speaks SandboxFusion's `/run_code`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agentic_gym.tools.sandbox import runner
from agentic_gym.tools.sandbox.levels import Features
from agentic_gym.tools.sandbox.limits import Limits
from agentic_gym.tools.sandbox.results import Result, Status

_TRANSPORT_SECONDS = 30.0
"""Time the server gets on top of the run itself: queueing, starting, answering."""


class RemoteSandbox:
    """Run code on a SandboxFusion-compatible server: isolation is then the server's business.

    Do not use it where latency counts: a request takes far longer than a local call. Sessions are not offered.

    Args:
        url: address of the server, as "http://host:8080".
        workers: requests at a time in `execute_many`.
        limits: `wall` and `output_kb` are kept; the rest is up to the server.
    """

    level = "remote"

    def __init__(self, url: str, workers: int = 8, limits: Limits | None = None) -> None:
        import httpx

        if not url.startswith(("http://", "https://")):
            raise ValueError(f"url must start with http:// or https://, got {url!r}")
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self.url = url.rstrip("/")
        self.workers = workers
        self.limits = limits or Limits()
        self._client = httpx.Client()

    def execute(
        self, code: str | bytes, timeout: float | None = None, stdin: str = "", echo: bool = False, *,
        seed: int | None = None,
    ) -> Result:  # fmt: skip
        """As `Sandbox.execute`; a server that fails or cannot be reached is a sandbox_error."""
        import httpx

        seconds = self.limits.wall if timeout is None else timeout
        if not seconds > 0:
            raise ValueError(f"timeout must be above 0 seconds, got {timeout!r}")
        request = {
            "code": _program(code, echo=echo, seed=seed),
            "language": "python",
            "run_timeout": seconds,
            "stdin": stdin,
        }
        try:
            body = self._client.post(
                f"{self.url}/run_code", json=request, timeout=seconds + _TRANSPORT_SECONDS
            ).raise_for_status()
            return _result(body.json(), self.limits.output_kb * 1024)
        except (httpx.HTTPError, ValueError, KeyError, TypeError, AttributeError) as error:
            return Result("sandbox_error", detail=f"{self.url}: {type(error).__name__}: {error}")

    async def aexecute(
        self, code: str | bytes, timeout: float | None = None, stdin: str = "", echo: bool = False, *,
        seed: int | None = None,
    ) -> Result:  # fmt: skip
        """`execute` without blocking the event loop."""
        return await asyncio.to_thread(self.execute, code, timeout, stdin, echo, seed=seed)

    def execute_many(
        self, codes: Iterable[str | bytes], timeout: float | None = None, echo: bool = False, *,
        seed: int | None = None,
    ) -> list[Result]:  # fmt: skip
        """Run several codes, `workers` at a time; the results keep the order."""
        with ThreadPoolExecutor(self.workers) as threads:
            return list(threads.map(lambda code: self.execute(code, timeout, "", echo, seed=seed), codes))

    @property
    def features(self) -> Features:
        """The server decides what is enforced."""
        return Features(system=self.url, level=self.level)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> RemoteSandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "workers": self.workers, "limits": self.limits}

    def __setstate__(self, settings: dict[str, Any]) -> None:
        self.__init__(**settings)  # type: ignore[misc]


def _program(code: str | bytes, *, echo: bool, seed: int | None) -> str:
    """A program that runs `code` as a local child would: our own runner, followed by one call of it."""
    seeding = "" if seed is None else f"import random; random.seed({seed})\n"
    call = f"run({code!r}, '<cell>', fresh_main(), echo={echo})"
    return f"{Path(runner.__file__).read_text()}\n{seeding}sys.exit(abs({call}))\n"


def _result(body: dict[str, Any], limit: int) -> Result:
    run = body.get("run_result") or {}
    if body["status"] == "SandboxError" or not run:
        return Result("sandbox_error", detail=str(body.get("message") or "the server reports a sandbox error"))
    code = run.get("return_code")
    status: Status
    if run["status"] == "TimeLimitExceeded":
        status = "timeout"
    elif run["status"] == "Error":
        return Result("sandbox_error", detail=str(body.get("message") or "the server could not run the code"))
    elif code is not None and code < 0:
        status = "crashed"
    else:
        status = "ok" if code == 0 else "error"
    out, err = run.get("stdout") or "", run.get("stderr") or ""
    over = len(out) > limit or len(err) > limit
    return Result(
        "output_limit" if over and status in ("ok", "error") else status,
        out[:limit],
        err[:limit],
        code if code is None or code >= 0 else None,
        -code if code is not None and code < 0 else None,
        float(run.get("execution_time") or 0.0),
        truncated=over,
    )
