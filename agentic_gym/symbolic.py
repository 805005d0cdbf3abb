"""Symbolic equality of two answers, decided by math-verify in a helper process that can be killed.

- ``verify``: does an expression equal one of several others? Any text is safe to pass, from any thread.

Computer algebra on model-written text can hang inside one C call (``9^{9^{9}}``), and math-verify's own
time limit is a signal that works in main threads only. So it runs in a helper, one per process, started at
the first question with a fresh interpreter (never forked), asked one question at a time over a pipe, killed
at the deadline and started again at the next question. The
helper ends with its parent, however that ends: it reads end-of-file, or sees that it has another parent, or,
amid a computation, is ended by its own timer.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import logging
import os
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import IO, Literal, cast

__all__ = ["verify"]

Verdict = Literal["equal", "unequal", "unparseable", "timeout"]

START_SECONDS = 120.0
"""How long the helper may take to import math-verify; the deadline of a question starts after that."""
MEMORY_BYTES = 4 << 30
"""Address space of the helper."""


def verify(prediction: str, golds: Sequence[str], *, timeout: float = 5.0) -> Verdict:
    """Decide whether `prediction` equals one of `golds` as mathematics (LaTeX or plain).

    Args:
        prediction: any text.
        golds: accepted answers.
        timeout: seconds for the computation; other threads' questions and a start of the helper come on top.

    Returns:
        "equal", "unequal", "unparseable" (the prediction is no expression), or "timeout": no verdict, because
        time or memory ran out.

    Raises:
        ImportError: math-verify is not installed.
        ValueError: `timeout` is not positive.
    """
    if not timeout > 0:
        raise ValueError(f"timeout must be a positive number of seconds, got {timeout!r}.")
    return _helper.ask(prediction, tuple(golds), timeout)


class _Helper:
    """The parent's side: the process, a lock that serialises questions, and the latest verdicts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        # The rollouts of a group often give the same answer, hanging ones included.
        self._verdicts: OrderedDict[tuple[str, tuple[str, ...], float], Verdict] = OrderedDict()

    def ask(self, prediction: str, golds: tuple[str, ...], timeout: float) -> Verdict:
        key = (prediction, golds, timeout)
        with self._lock:
            verdict = self._verdicts.get(key)
            if verdict is None:
                verdict = self._verdicts[key] = self._compute(*key)
                if len(self._verdicts) > 4096:
                    self._verdicts.popitem(last=False)
            return verdict

    def _compute(self, prediction: str, golds: tuple[str, ...], timeout: float) -> Verdict:
        question = json.dumps({"prediction": prediction, "golds": golds, "timeout": timeout}).encode() + b"\n"
        reply = None
        try:
            for _ in range(2):  # A helper that died idle (memory, a signal from outside) gets one successor.
                process = self._running() or self._start()
                reply = _exchange(process, question, timeout)
                if reply != b"":
                    break
                self.stop()
        finally:
            if not reply:  # Late, dead, or this thread was interrupted: the pipe may hold half an answer.
                self.stop()
        return cast(Verdict, json.loads(reply)) if reply else "timeout"

    def _running(self) -> subprocess.Popen[bytes] | None:
        return self._process if self._process is not None and self._process.poll() is None else None

    def _start(self) -> subprocess.Popen[bytes]:
        if importlib.util.find_spec("math_verify") is None:
            raise ImportError("Symbolic grading needs math-verify: pip install 'agentic-gym[math]'")
        self.stop()
        self._process = process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _PROGRAM,
                json.dumps(sys.path),
                os.path.abspath(__file__),
                str(os.getpid()),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,  # No buffer that a fork could copy half-written.
            start_new_session=True,  # Ctrl-C in the terminal is for the parent.
        )
        if not _read_line(process, START_SECONDS):
            status = process.poll()
            self.stop()
            raise RuntimeError(
                f"The grading helper did not start (exit status {status}); "
                f"see what {sys.executable} -c 'import math_verify' says."
            )
        return process

    def stop(self) -> None:
        """Kill the helper, if any."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            _close_pipes(process)

    def forget(self) -> None:
        """In a forked child: leave the helper to the parent, and close its pipes here."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            _close_pipes(process)
            process.returncode = 0  # It is not this process's child: there is nothing to wait for.


# Run by path, so that the helper imports neither this package nor anything from the working directory.
_PROGRAM = """\
import json, runpy, sys
sys.path[:] = json.loads(sys.argv[1])
runpy.run_path(sys.argv[2], run_name="__main__")
"""


def _exchange(process: subprocess.Popen[bytes], line: bytes, timeout: float) -> bytes | None:
    """Send one line and read one; None if it is late, empty if the process ends first."""
    fd = cast(IO[bytes], process.stdin).fileno()
    try:
        while line:
            line = line[os.write(fd, line) :]
    except BrokenPipeError:
        return b""
    return _read_line(process, timeout)


def _read_line(process: subprocess.Popen[bytes], timeout: float) -> bytes | None:
    """Read one line; None if it is late, empty if the process ends first."""
    fd = cast(IO[bytes], process.stdout).fileno()
    deadline = time.monotonic() + timeout
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    line = b""
    while not line.endswith(b"\n"):
        remaining = deadline - time.monotonic()
        if remaining <= 0 or not poll.poll(remaining * 1000):
            return None
        chunk = os.read(fd, 65536)
        if not chunk:
            return b""
        line += chunk
    return line


def _close_pipes(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


# -- the helper's side --------------------------------------------------------------------------------------


def _serve(parent: int) -> None:
    """Answer questions, one JSON line each, until the parent is gone."""
    replies = os.dup(1)
    os.dup2(2, 1)  # Nothing that a library prints can pass for an answer.
    logging.disable(logging.CRITICAL)
    _verdict(r"\sqrt{8}", [r"2\sqrt{2}"])  # Imports everything, and builds the parser's tables.
    os.write(replies, b'"ready"\n')
    _limit_memory()
    pending = b""
    while True:
        # Another child of the parent may hold the pipe open, so end-of-file is not the only sign.
        while not select.select([0], [], [], 5.0)[0]:
            if os.getppid() != parent:
                return
        chunk = os.read(0, 65536)
        if not chunk:
            return
        *lines, pending = (pending + chunk).split(b"\n")
        for line in lines:
            question = json.loads(line)
            # The default action of the signal ends the process even inside one endless C call.
            signal.setitimer(signal.ITIMER_REAL, question["timeout"] + 1.0)
            verdict = _verdict(question["prediction"], question["golds"])
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            os.write(replies, json.dumps(verdict).encode() + b"\n")


def _limit_memory() -> None:
    import resource

    with contextlib.suppress(ValueError, OSError):  # A lower limit is already in force.
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def _verdict(prediction: str, golds: Sequence[str]) -> Verdict:
    from math_verify import verify as equal

    answer = _parse(prediction)
    if not any(not isinstance(part, str) for part in answer):
        return "unparseable"
    for gold in golds:
        with contextlib.suppress(Exception):
            if equal(_parse(gold), answer, timeout_seconds=None):
                return "equal"
    return "unequal"


def _parse(text: str) -> list[object]:
    """Read an expression; an empty list, or a list of strings only, where it is none."""
    from math_verify import parse

    if re.fullmatch(r"[\d.]+(\s+[\d.]+)+", text):
        return []  # math-verify would add the numbers up.
    marked = any(mark in text for mark in ("$", "\\(", "\\["))
    try:
        return cast("list[object]", parse(text if marked else f"${text}$", parsing_timeout=None))
    except Exception:
        return []


if __name__ == "__main__":
    _serve(int(sys.argv[3]))
else:
    _helper = _Helper()
    atexit.register(_helper.stop)
    os.register_at_fork(after_in_child=_helper.forget)
