"""One run, as the caller sees it: hand the code over, collect bounded output, wait for the verdict."""

from __future__ import annotations

import contextlib
import os
import select
import time
from typing import Any

from agentic_gym.tools.sandbox import protocol
from agentic_gym.tools.sandbox.launch import SupervisorDied, SupervisorProcess
from agentic_gym.tools.sandbox.limits import Limits
from agentic_gym.tools.sandbox.protocol import Work, anonymous_file
from agentic_gym.tools.sandbox.results import Result, Status

_OVERDUE_SECONDS = 1.0
"""How long past its deadline a run may be before we ask for the kill ourselves."""
_KILL_SECONDS = 20.0
"""How long the supervisor then has to confirm; after that it is taken for hung."""


class Capture:
    """The reading end of a pipe and the head of what came through it."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self.descriptor = descriptor
        self.limit = limit
        self.head = bytearray()
        self.over = False
        os.set_blocking(descriptor, False)

    def read(self) -> bool:
        """Take what is there, once; False at the end of the stream."""
        try:
            data = os.read(self.descriptor, 65536)
        except BlockingIOError:
            return True
        room = self.limit - len(self.head)
        self.head += data[:room]
        self.over = self.over or len(data) > room
        return bool(data)

    def drain(self) -> None:
        """Take everything that is in the pipe now (its size bounds this)."""
        for _ in range(64):
            before = len(self.head)
            if not self.read() or (len(self.head) == before and not self.over):
                return
            if self.over:
                return

    def text(self) -> str:
        """What was kept, decoded; a character cut by the limit is dropped."""
        data = bytes(self.head)
        if self.over:
            data = data.decode("utf-8", "ignore").encode() if _cut_inside(data) else data
        return data.decode("utf-8", "backslashreplace")


def _cut_inside(data: bytes) -> bool:
    """Whether only the last, incomplete character keeps `data` from being UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data" and len(data) - error.start < 4
    return False


class Channels:
    """The descriptors of one run: two output pipes and the socket that brings the verdict."""

    def __init__(self, output_limit: int) -> None:
        self.theirs: list[int] = []
        self.mine: list[int] = []
        try:
            self.out = self._pipe(output_limit)
            self.err = self._pipe(output_limit)
            self.verdict, end = protocol.pair()
            self.theirs.append(end.detach())
        except BaseException:
            self.close()
            raise

    def _pipe(self, limit: int) -> Capture:
        reader, writer = os.pipe()
        self.mine.append(reader)
        self.theirs.append(writer)
        return Capture(reader, limit)

    def submit(
        self, supervisor: SupervisorProcess, request: dict[str, Any], source: int, stdin: int | None = None
    ) -> None:
        """Send the request; our copies of the child's ends are closed whatever happens."""
        out, err, verdict = self.theirs
        try:
            supervisor.send(request, [verdict, source, out, err] + ([] if stdin is None else [stdin]))
        finally:
            self.close_theirs()

    def close_theirs(self) -> None:
        """Close the ends that belong to the other side."""
        while self.theirs:
            os.close(self.theirs.pop())

    def close(self) -> None:
        """Close everything; a run still going is ended by it."""
        self.close_theirs()
        while self.mine:
            os.close(self.mine.pop())
        if hasattr(self, "verdict"):
            self.verdict.close()

    def order(self, byte: bytes) -> None:
        """Send an order about this run to the supervisor."""
        with contextlib.suppress(OSError):
            self.verdict.send(byte)

    def answer(self) -> dict[str, Any]:
        """The verdict; raises SupervisorDied when the socket ends without one."""
        try:
            answer, _ = protocol.receive(self.verdict)
        except OSError:
            answer = None
        if answer is None:
            raise SupervisorDied("the supervisor ended during the call")
        return answer


def run_once(
    supervisor: SupervisorProcess, code: str | bytes, limits: Limits, timeout: float, stdin: str,
    echo: bool, seed: int | None,
) -> Result:  # fmt: skip
    """Run `code` on a supervisor and wait for the end. Raises SupervisorDied."""
    binary = isinstance(code, bytes)
    work = Work(timeout + limits.cpu_margin, False, binary, echo, seed is not None, seed or 0)
    channels = Channels(limits.output_kb * 1024)
    files: list[int] = []
    try:
        files.append(anonymous_file(as_bytes(code)))
        if stdin:
            files.append(anonymous_file(as_bytes(stdin)))
        channels.submit(supervisor, {"timeout": timeout, "work": work}, *files)
        answer = _wait(channels, timeout)
        return _result(answer, channels)
    finally:
        for descriptor in files:
            os.close(descriptor)
        channels.close()


def as_bytes(text: str | bytes) -> bytes:
    """UTF-8; a lone surrogate goes through, for the other side to complain about."""
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")


def _wait(channels: Channels, timeout: float) -> dict[str, Any]:
    """Collect output until the verdict arrives."""
    poller = select.poll()
    captures = {capture.descriptor: capture for capture in (channels.out, channels.err)}
    for descriptor in captures:
        poller.register(descriptor, select.POLLIN)
    poller.register(channels.verdict, select.POLLIN)
    overdue = time.monotonic() + timeout + _OVERDUE_SECONDS
    asked = False
    while True:
        events = poller.poll(max(0.0, overdue - time.monotonic()) * 1000 + 1)
        if not events and time.monotonic() >= overdue:
            if asked:
                raise SupervisorDied("the supervisor does not answer")
            channels.order(protocol.KILL_TIMEOUT)
            overdue, asked = time.monotonic() + _KILL_SECONDS, True
        verdict = False
        for descriptor, _ in events:
            if descriptor == channels.verdict.fileno():
                verdict = True
                continue
            capture = captures[descriptor]
            if not capture.read():
                poller.unregister(descriptor)
            elif capture.over:
                poller.unregister(descriptor)
                channels.order(protocol.KILL_OUTPUT)
        if verdict:
            answer = channels.answer()
            channels.out.drain()
            channels.err.drain()
            return answer


def _result(answer: dict[str, Any], channels: Channels) -> Result:
    if (failure := answer.get("failed")) is not None:
        return Result("sandbox_error", detail=failure)
    over = channels.out.over or channels.err.over
    status: Status
    if answer["reason"] is not None and answer["reason"] != "cancelled":
        status = answer["reason"]
    elif over:
        status = "output_limit"
    elif answer["signal"] is not None:
        status = "crashed"
    elif answer["memory"]:
        status = "memory"
    else:
        status = "ok" if answer["returncode"] == 0 else "error"
    return Result(
        status,
        channels.out.text(),
        channels.err.text(),
        answer["returncode"],
        answer["signal"],
        answer["wall"],
        answer["cpu"],
        answer["maxrss_kb"],
        over,
    )
