"""The process that runs one piece of code: it waits for work, closes the last doors, runs it and is gone.

When work arrives the limits are completed and read back, the last filter closes the door behind them, and only then
is the supervisor told that user code starts: whatever happens later is that code's doing, whatever failed before is ours.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
import random
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from typing import Any, NoReturn

from agentic_gym.tools.sandbox import kernel, limits, protocol, runner, seccomp

_SETUP_FAILED = 70
_exit = os._exit
"""The code may have replaced the one in `os`."""
_DRAWING = b"rand", b"scipy", b"sklearn", b"sample"
"""What code says that draws from the global generators."""


@dataclass(frozen=True)
class Birth:
    """What a slot has ready for its children, so that they need not make it."""

    limits: limits.Limits
    rlimits: dict[int, tuple[int, int]]
    """Those of the limits that are set already, to be read back."""
    seal: seccomp.Filter | None
    """The filter that closes the last doors; None for no filtering."""
    parent: int | None
    """The process to die with; None where the end of the process namespace takes care of it."""
    namespace: dict[str, Any]
    """Of a fresh `__main__`."""


def prepare(
    wanted: limits.Limits, rlimits: dict[int, tuple[int, int]], seal: seccomp.Filter | None, parent: int | None
) -> Birth:
    """Make ready what every child needs and none changes before it is alone."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.argv[:] = ["<cell>"]  # those of the supervisor are none of its business, and would confuse argparse
    sys.orig_argv[:] = [sys.executable]
    _open_streams()
    _seed(0)  # code that draws without saying so (sympy tests identities at random points) draws alike everywhere
    return Birth(wanted, rlimits, seal, parent, runner.fresh_main())


def live(channel: socket.socket, birth: Birth) -> NoReturn:
    """The whole life of a child, from just after the fork. Never returns."""
    code = _SETUP_FAILED
    try:
        try:
            if birth.parent is not None:
                _leave_with(birth.parent)
            gc.enable()
            received = protocol.receive_work(channel)
            if received is None:
                os._exit(0)
            work, descriptors = received
            last = limits.last_rlimits(birth.limits, work.cpu)
            limits.apply(last)
            limits.verify(birth.rlimits | last)
            if birth.seal is not None:
                birth.seal.set(os.getpid())
                birth.seal.install()
            source = _connect(descriptors)
        except BaseException as error:
            channel.send(protocol.REFUSED + repr(error).encode()[:2000])
            os._exit(code)
        channel.send(protocol.READY)
        seed = work.seed if work.seeded else None
        code = (_session if work.session else _single)(source, birth.namespace, seed, work)
        if code == runner.OUT_OF_MEMORY:
            channel.send(protocol.MEMORY)
            code = runner.ERROR
    finally:
        _exit(code & 0xFF)


def _leave_with(parent: int) -> None:
    """Die when the slot does, and be a group of our own, which can be killed with what we start."""
    os.setsid()
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(0)


def _open_streams() -> None:
    """Standard streams over descriptors 0 to 2, whatever those will be connected to."""
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8", "replace")  # type: ignore[misc]
    sys.stdout = sys.__stdout__ = _writer(1)  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _writer(2)  # type: ignore[misc]
    sys.path.insert(0, "")


def _writer(descriptor: int) -> io.TextIOWrapper:
    # By lines, so that what was printed before a timeout or a crash is there.
    raw = io.BufferedWriter(io.FileIO(descriptor, "w"))
    return io.TextIOWrapper(raw, "utf-8", "backslashreplace", line_buffering=True)


def _connect(descriptors: list[int]) -> int:
    """Put the received descriptors in their places; returns the one that brings code."""
    source, *streams = descriptors
    if len(streams) < 3:  # not the one inherited: flags and locks set on it would be there in all later calls
        streams.append(os.open(os.devnull, os.O_RDONLY))
    for target, descriptor in zip((1, 2, 0), streams, strict=True):
        os.dup2(descriptor, target)
        os.close(descriptor)
    return source


def _single(source: int, namespace: dict[str, Any], seed: int | None, work: protocol.Work) -> int:
    try:
        with open(source, "rb", 0) as file:
            code = file.readall()
        text = code if work.binary else code.decode("utf-8", "surrogatepass")
    except MemoryError:
        return runner.OUT_OF_MEMORY
    if any(word in code for word in _DRAWING):  # seeding is a good part of a short call
        _seed(seed)
    return _finish(runner.run(text, "<cell>", namespace, echo=work.echo))


def _finish(result: int) -> int:
    """What an interpreter does on its way out: wait for threads, run exit handlers, flush."""
    try:
        with contextlib.suppress(Exception):
            threading._shutdown()  # type: ignore[attr-defined]
            atexit._run_exitfuncs()
    except BaseException:  # SystemExit from a handler and the like change nothing any more
        pass
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        with contextlib.suppress(Exception):
            stream.flush()  # type: ignore[union-attr]
    return result


def _session(source: int, namespace: dict[str, Any], seed: int | None, work: protocol.Work) -> int:
    """Answer cells until the caller closes the channel. State stays between cells."""
    _seed(seed)
    cells = socket.socket(fileno=source)
    running = False

    def interrupt(number: int, frame: object) -> None:
        if running:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    serial = 0
    while (message := _receive_cell(cells)) is not None:
        header, code = message
        serial += 1
        result = runner.ERROR
        try:
            running = True
            result = runner.run(code, f"<cell {serial}>", namespace, echo=header["echo"])
            running = False
        except KeyboardInterrupt:  # arrived just outside the cell's own code
            running = False
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        cells.send(protocol.cell_reply(_WORDS.get(result, protocol.CELL_ERROR), serial))
    return runner.OK


_WORDS = {runner.OK: protocol.CELL_OK, runner.OUT_OF_MEMORY: protocol.MEMORY}


def _receive_cell(cells: socket.socket) -> tuple[dict[str, Any], str | bytes] | None:
    """One cell: a record that says how to run it, with a file that holds the code."""
    header, descriptors = protocol.receive(cells)
    if header is None:
        return None
    with open(descriptors[0], "rb") as file:
        code = file.read()
    return header, code if header["binary"] else code.decode("utf-8", "surrogatepass")


def _seed(value: int | None) -> None:
    """Seed the global generators of Python, numpy and sympy; fresh entropy for None (forks would share a state)."""
    random.seed(value)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(None if value is None else value % 2**32)
    sympy_random = sys.modules.get("sympy.core.random")
    if sympy_random is not None:
        sympy_random.seed(value)
