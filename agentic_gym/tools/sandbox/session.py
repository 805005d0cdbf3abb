"""Session: an interpreter that keeps its variables from cell to cell, as a notebook does."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import time
from typing import Any

from agentic_gym.tools.sandbox import protocol
from agentic_gym.tools.sandbox.call import Channels, as_bytes
from agentic_gym.tools.sandbox.launch import SupervisorDied, SupervisorProcess
from agentic_gym.tools.sandbox.limits import Limits
from agentic_gym.tools.sandbox.results import Result, Status

_GRACE_SECONDS = 0.15
"""How long an interrupted cell may take to unwind before its process is killed."""
_KILL_SECONDS = 20.0


class Session:
    """One confined process that runs cell after cell. Made by `Sandbox.session()`; one cell at a time.

    A cell that runs too long, or writes too much, is interrupted like a cell stopped in a notebook: variables survive.
    One that resists is killed with its session: later cells answer `session_lost`. A forked copy of the caller
    must open its own.
    """

    def __init__(self, supervisor: SupervisorProcess, limits: Limits, seed: int | None) -> None:
        self._limits = limits
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._lost = False
        self._channels = Channels(limits.output_kb * 1024)
        self._cells, theirs = protocol.pair()
        self._cells.setblocking(False)  # a process that takes no more cells must not make us wait
        self._serial = 0
        work = protocol.Work(limits.session_cpu, True, False, False, seed is not None, seed or 0)
        try:
            self._channels.submit(supervisor, {"timeout": None, "work": work}, theirs.fileno())
        except BaseException:
            self.close()
            raise
        finally:
            theirs.close()

    @property
    def alive(self) -> bool:
        """Whether the next cell will find this session's variables."""
        return not self._lost

    def run(self, cell: str | bytes, timeout: float | None = None, echo: bool = True) -> Result:
        """Run one cell; `timeout` in seconds, default `limits.wall`. Never raises for what the code does."""
        if os.getpid() != self._owner:
            raise RuntimeError("this Session belongs to the process that forked; open a new one here")
        seconds = self._limits.wall if timeout is None else timeout
        if not seconds > 0:
            raise ValueError(f"timeout must be above 0 seconds, got {timeout!r}")
        with self._lock:
            if self._lost:
                return Result("session_lost")
            started = time.monotonic()
            try:
                self._submit(cell, echo)
                status = self._wait(started + seconds)
            except OSError:  # gone between two cells (killed by its CPU limit, or with its supervisor), or forging
                self._lose()
                return Result("session_lost")
            except BaseException:  # interrupted: what this cell still prints must not be taken for the next one's
                self._lose()
                raise
            result = self._result(status, time.monotonic() - started)
            for capture in (self._channels.out, self._channels.err):
                capture.head.clear()
                capture.over = False
            return result

    def _submit(self, cell: str | bytes, echo: bool) -> None:
        with contextlib.suppress(BlockingIOError):
            self._cells.recv(1)
            raise ConnectionError("it has answered, or ended, without being asked")
        self._serial += 1
        source = protocol.anonymous_file(as_bytes(cell))
        try:
            header = {"echo": echo, "binary": isinstance(cell, bytes)}
            protocol.send(self._cells, header, [source])
        finally:
            os.close(source)

    def _wait(self, deadline: float) -> Status | dict[str, Any]:
        """Collect output until the cell ends: its status, or the verdict on the whole process."""
        channels = self._channels
        captures = {c.descriptor: c for c in (channels.out, channels.err)}
        poller = select.poll()
        for descriptor in (*captures, self._cells.fileno(), channels.verdict.fileno()):
            poller.register(descriptor, select.POLLIN)
        reason: Status | None = None
        orders = [protocol.INTERRUPT, protocol.KILL_TIMEOUT]
        endings = {protocol.cell_reply(word, self._serial): status for word, status in _STATUSES.items()}
        while True:
            events = dict(poller.poll(max(0.0, deadline - time.monotonic()) * 1000 + 1))
            for descriptor, capture in captures.items():
                if descriptor in events and not capture.read():
                    poller.unregister(descriptor)
            if channels.verdict.fileno() in events:
                try:
                    return {"reason": reason, **_without_none(channels.answer())}
                except SupervisorDied as error:
                    return {"failed": str(error)}
            if self._cells.fileno() in events:
                try:
                    word = self._cells.recv(32)
                except ConnectionResetError:  # ended before it took the cell
                    word = b""
                if word in endings:
                    return reason or endings[word]
                if not word:
                    poller.unregister(self._cells.fileno())  # ended: the verdict follows
            over = reason is None and (channels.out.over or channels.err.over)
            if over or time.monotonic() >= deadline:
                if not orders:
                    return {"failed": "the supervisor does not answer"}
                reason = reason or ("output_limit" if over else "timeout")
                order = orders.pop(0)
                channels.order(order)
                wait = _GRACE_SECONDS if order == protocol.INTERRUPT else _KILL_SECONDS
                deadline = time.monotonic() + wait

    def _result(self, ending: Status | dict[str, Any], wall: float) -> Result:
        out, err = self._channels.out, self._channels.err
        out.drain()
        err.drain()
        over = out.over or err.over
        if isinstance(ending, dict):
            self._lose()
            if "failed" in ending:
                return Result("sandbox_error", wall=wall, detail=ending["failed"])
            fallback: Status = "crashed" if ending.get("signal") else "session_lost"
            status: Status = ending["reason"] or ("output_limit" if over else fallback)
            return Result(
                status, out.text(), err.text(), ending.get("returncode"), ending.get("signal"), wall,
                ending["cpu"], ending["maxrss_kb"], over,
            )  # fmt: skip
        if over and ending in ("ok", "error"):
            ending = "output_limit"
        return Result(ending, out.text(), err.text(), None, None, wall, truncated=over)

    def _lose(self) -> None:
        self._lost = True
        self._channels.close()
        self._cells.close()

    def close(self) -> None:
        """End the process and forget its variables."""
        self._lose()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


_STATUSES: dict[bytes, Status] = {protocol.CELL_OK: "ok", protocol.CELL_ERROR: "error", protocol.MEMORY: "memory"}


def _without_none(answer: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in answer.items() if value is not None}

