"""Sandbox: run untrusted Python from a trainer, thousands of times."""

from __future__ import annotations

import asyncio
import atexit
import os
import site
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from agentic_gym.tools.sandbox import levels
from agentic_gym.tools.sandbox.call import run_once
from agentic_gym.tools.sandbox.launch import SupervisorDied, SupervisorProcess
from agentic_gym.tools.sandbox.levels import Features
from agentic_gym.tools.sandbox.limits import Limits
from agentic_gym.tools.sandbox.results import Result
from agentic_gym.tools.sandbox.session import Session
from agentic_gym.tools.sandbox.warmup import PRELOAD, WARMUP

_MAX_TIMEOUT = 3600.0


class Sandbox:
    """A fresh, confined interpreter for every call; safe from threads, asyncio and after a fork.

    Nothing starts before the first call: then one template imports `preload`, runs `warmup`, and forks
    a child for each call. `close()`, the end of this process, or its death by any signal ends all of them.

    Args:
        workers: runs at a time; more callers wait their turn. Default: the CPUs of this process, at most 8.
        preload: modules imported beforehand where they are installed.
        warmup: code run once after the imports, so that caches and lazy imports are filled; "" for none.
        limits: what one run may use.
        isolation: "auto" for the strongest level the machine reaches, or one of `levels.LEVELS`.
        min_level: the weakest level accepted; below it the first call raises SandboxUnavailable.
        readable: further directories that code may read (data sets, libraries outside site-packages).
        python: the interpreter; default: the running one.

    >>> with Sandbox() as sandbox:
    ...     result = sandbox.execute("print(6 * 7)")
    >>> result.status, result.stdout
    ('ok', '42\\n')
    """

    def __init__(
        self,
        workers: int | None = None,
        preload: Sequence[str] = PRELOAD,
        warmup: str = WARMUP,
        limits: Limits | None = None,
        isolation: str = "auto",
        min_level: str = "landlock",
        *,
        readable: Iterable[str | os.PathLike[str]] = (),
        python: str | None = None,
    ) -> None:
        if workers is None:
            workers = min(8, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4)
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        levels.check_names(isolation, min_level)
        self.workers = workers
        self.limits = limits or Limits()
        self._settings: dict[str, Any] = {
            "workers": workers,
            "preload": tuple(preload),
            "warmup": warmup,
            "limits": self.limits,
            "isolation": isolation,
            "min_level": min_level,
            "readable": tuple(os.path.abspath(path) for path in readable),
            "python": python or sys.executable,
        }
        self._reset()
        _live.add(self)

    def _reset(self) -> None:
        """The state of a sandbox that has not started, in this process."""
        self._lock = threading.Lock()
        self._turns = threading.BoundedSemaphore(self.workers)
        self._supervisor: SupervisorProcess | None = None
        self._finalizer: weakref.finalize[Any, Any] | None = None
        self._closed = False
        self._pool: ThreadPoolExecutor | None = None

    # -- running code -----------------------------------------------------------------------------------------

    def execute(
        self, code: str | bytes, timeout: float | None = None, stdin: str = "", echo: bool = False, *,
        seed: int | None = None,
    ) -> Result:  # fmt: skip
        """Run `code` in a fresh interpreter and return what it came to; never raises for what the code does.

        Args:
            code: Python source; bytes are read as a file would be (coding line, UTF-8).
            timeout: wall-clock seconds until it is killed; default `limits.wall`.
            stdin: what the code reads from standard input.
            echo: print the value of a last expression, as a notebook does.
            seed: seed of Python's and numpy's global generators; None for fresh entropy.

        Raises SandboxUnavailable where the machine cannot give the isolation asked for, RuntimeError after close.
        """
        seconds = self._seconds(timeout)
        if seed is not None:
            seed %= 2**64
        failure = ""
        with self._turns:
            for attempt in range(2):  # a supervisor that was killed (out of memory, say) is replaced once
                if attempt and self._closed:
                    failure = "the sandbox was closed during the call"
                    break
                try:
                    supervisor = self._running()
                except SupervisorDied as error:
                    failure = str(error)
                    continue
                try:
                    return run_once(supervisor, code, self.limits, seconds, stdin, echo, seed)
                except SupervisorDied as error:
                    failure = str(error)
                    self._retire(supervisor)
                except OSError as error:
                    return Result("sandbox_error", detail=str(error))
        return Result("sandbox_error", detail=failure)

    async def aexecute(
        self, code: str | bytes, timeout: float | None = None, stdin: str = "", echo: bool = False, *,
        seed: int | None = None,
    ) -> Result:  # fmt: skip
        """`execute` without blocking the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(
            self._threads(), lambda: self.execute(code, timeout, stdin, echo, seed=seed)
        )

    def execute_many(
        self, codes: Iterable[str | bytes], timeout: float | None = None, echo: bool = False, *,
        seed: int | None = None,
    ) -> list[Result]:  # fmt: skip
        """Run several codes, `workers` at a time; the results keep the order."""
        return list(self._threads().map(lambda code: self.execute(code, timeout, "", echo, seed=seed), codes))

    def session(self, *, seed: int | None = None) -> Session:
        """A new session: an interpreter of its own that keeps variables between cells. Close it after use.

        Sessions do not count as workers. Raises SandboxUnavailable, or RuntimeError where none can be started.
        """
        for _ in range(2):
            try:
                supervisor = self._running()
            except SupervisorDied as error:
                raise RuntimeError(f"the sandbox does not start: {error}") from error
            try:
                return Session(supervisor, self.limits, None if seed is None else seed % 2**64)
            except SupervisorDied:
                self._retire(supervisor)
        raise RuntimeError("the sandbox does not answer; no session could be started")

    @property
    def features(self) -> Features:
        """What is in force; starts the sandbox. Raises SandboxUnavailable or RuntimeError where it cannot."""
        try:
            return self._running().features
        except SupervisorDied as error:
            raise RuntimeError(f"the sandbox does not start: {error}") from error

    @property
    def level(self) -> str:
        """The isolation level in force; starts the sandbox."""
        return self.features.level

    # -- life -------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End the supervisor and every run; nothing is left behind. Calls after it raise RuntimeError."""
        with self._lock:
            self._closed = True
            supervisor, self._supervisor = self._supervisor, None
            pool, self._pool = self._pool, None
            if self._finalizer is not None:
                self._finalizer.detach()
        if supervisor is not None:
            supervisor.close()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getstate__(self) -> dict[str, Any]:
        return self._settings

    def __setstate__(self, settings: dict[str, Any]) -> None:
        self.__init__(**settings)  # type: ignore[misc]

    def _seconds(self, timeout: float | None) -> float:
        seconds = self.limits.wall if timeout is None else float(timeout)
        if not 0 < seconds <= _MAX_TIMEOUT:
            raise ValueError(f"timeout must be above 0 and at most {_MAX_TIMEOUT:.0f} seconds, got {timeout!r}")
        return seconds

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(self.workers, thread_name_prefix="sandbox")
            return self._pool

    def _running(self) -> SupervisorProcess:
        """The supervisor, started if there is none."""
        with self._lock:
            if self._closed:
                raise RuntimeError("this Sandbox is closed; make a new one")
            if self._supervisor is None:
                settings = self._settings
                config: dict[str, Any] = {
                    "limits": self.limits.as_dict(),
                    "isolation": settings["isolation"],
                    "min_level": settings["min_level"],
                    "preload": settings["preload"],
                    "warmup": settings["warmup"],
                    "readable": settings["readable"] + tuple(_user_site()),
                    "extra_path": _user_site(),
                }
                try:
                    config["tmp"] = tempfile.gettempdir()
                    self._supervisor = SupervisorProcess(settings["python"], config)
                except OSError as error:  # no descriptors, no memory, no place for a file
                    raise SupervisorDied(f"the supervisor process cannot be started: {error}") from error
                self._finalizer = weakref.finalize(self, self._supervisor.close)
                self._finalizer.atexit = False  # _at_exit closes whole sandboxes, so that nothing starts again
            return self._supervisor

    def _retire(self, supervisor: SupervisorProcess) -> None:
        """Take a dead supervisor out of use, unless another thread has done so."""
        with self._lock:
            if self._supervisor is not supervisor:
                return
            self._supervisor = None
            if self._finalizer is not None:
                self._finalizer.detach()
        supervisor.close()


def _user_site() -> list[str]:
    """The user's own site-packages, where this interpreter uses them."""
    directory = site.getusersitepackages() if site.ENABLE_USER_SITE else ""
    return [directory] if os.path.isdir(directory) else []


_live: weakref.WeakSet[Sandbox] = weakref.WeakSet()
_default: Sandbox | None = None
_default_lock = threading.Lock()


def default_sandbox() -> Sandbox:
    """The sandbox that every tool of this process shares unless it is given its own."""
    global _default
    with _default_lock:
        if _default is None or _default._closed:
            _default = Sandbox()
        return _default


def _after_fork() -> None:
    """In a forked copy: the supervisor belongs to the original; start afresh on the next call."""
    global _default_lock
    _default_lock = threading.Lock()
    for sandbox in list(_live):
        supervisor, closed = sandbox._supervisor, sandbox._closed
        if sandbox._finalizer is not None:
            sandbox._finalizer.detach()
        if supervisor is not None:
            supervisor.forget()
        sandbox._reset()
        sandbox._closed = closed


def _at_exit() -> None:
    for sandbox in list(_live):
        sandbox.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
