"""Start a supervisor process for a caller, and the caller's handle on it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any

from agentic_gym.tools.sandbox import protocol, scratch
from agentic_gym.tools.sandbox.levels import Features, SandboxUnavailable

_START_SECONDS = 180.0
"""How long imports and warm-up may take on a crowded machine."""
_CLOSE_SECONDS = 5.0

_BOOTSTRAP = """
import sys, types
root, module, *arguments = sys.argv[1:]
name, path = "", root
for part in ("agentic_gym", "tools", "sandbox"):
    name, path = (name + "." + part).lstrip("."), path + "/" + part
    stub = sys.modules[name] = types.ModuleType(name)
    stub.__path__ = [path]
sys.path[:] = [p for p in sys.path if p]
import importlib, json
importlib.import_module("agentic_gym.tools.sandbox." + module).main(*map(json.loads, arguments))
"""
"""Imports only the sandbox's own modules: the packages above them would bring numpy, gymnasium and more."""

ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONHASHSEED": "0",
    "PYTHONNOUSERSITE": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
}


def command(python: str, module: str, *arguments: Any) -> list[str]:
    """The command line that runs `module.main(*arguments)` of this package in a bare interpreter."""
    root = str(Path(__file__).resolve().parents[3])
    return [python, "-s", "-c", _BOOTSTRAP, root, module, *map(json.dumps, arguments)]


class SupervisorDied(Exception):
    """The supervisor process is gone; the call may be tried again on a new one."""


class SupervisorProcess:
    """A running supervisor. `send` may be used from many threads."""

    def __init__(self, python: str, config: dict[str, Any]) -> None:
        """Start it and wait until it is ready. Raises SandboxUnavailable or SupervisorDied."""
        self.closed = False
        self._lock = threading.Lock()
        with tempfile.TemporaryFile() as errors:
            control, theirs = protocol.pair()
            watch = None
            try:
                watch = os.pidfd_open(os.getpid()) if hasattr(os, "pidfd_open") else None
                inherited = [theirs.fileno()] + ([] if watch is None else [watch])
                self.process = subprocess.Popen(
                    command(python, "supervisor", theirs.fileno(), watch, config),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=ENVIRONMENT,
                    cwd="/",
                    pass_fds=inherited,
                    start_new_session=True,
                )
            finally:
                theirs.close()
                if watch is not None:
                    os.close(watch)
            self.control = control
            self.base: str | None = None
            try:
                greeting = self._greeting()
            except BaseException:
                self.close()
                raise
            if greeting is None:
                self.close()
                errors.seek(0)
                tail = errors.read().decode("utf-8", "replace")[-1000:]
                raise SupervisorDied(f"the supervisor process ended while starting: {tail}")
        if "error" in greeting:
            self.close()
            if greeting["kind"] == "SandboxUnavailable":
                raise SandboxUnavailable(greeting["error"])
            raise SupervisorDied(f"{greeting['kind']}: {greeting['error']}")
        self.features = Features(**greeting["features"])
        self.base = greeting["base"]

    def _greeting(self) -> dict[str, Any] | None:
        poller = select.poll()
        poller.register(self.control, select.POLLIN)
        if not poller.poll(_START_SECONDS * 1000):
            raise SupervisorDied(f"the supervisor process was not ready after {_START_SECONDS:.0f} s")
        with contextlib.suppress(ConnectionError):
            return protocol.receive(self.control)[0]
        return None

    def send(self, request: dict[str, Any], descriptors: list[int]) -> None:
        """Pass a request on. Raises SupervisorDied when nobody is there."""
        try:
            protocol.send(self.control, request, descriptors)
        except OSError as error:
            raise SupervisorDied(str(error)) from error

    def close(self) -> None:
        """End the supervisor and everything below it; wait for it; remove what it could not."""
        with self._lock:
            if self.closed:
                return
            self.closed = True
        self.control.close()
        try:
            self.process.wait(_CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.process.pid, signal.SIGKILL)
            self.process.wait()
        if self.base is not None:
            with contextlib.suppress(OSError):
                scratch.remove(self.base)

    def forget(self) -> None:
        """In a forked copy of the caller: let go without touching the original's supervisor."""
        self.closed = True
        with contextlib.suppress(OSError):
            self.control.close()
        self.process.returncode = 0  # so that Popen does not wait for a process that is not our child

