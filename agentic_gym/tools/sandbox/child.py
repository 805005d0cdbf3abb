"""The process that runs one piece of code: it hardens itself, waits for work, runs it and is gone.

Order matters. All that does not depend on the work is done while waiting. When work arrives the limits are
completed and read back, the second filter closes the door behind them, and only then is the template told that
user code starts: whatever happens later is that code's doing, whatever failed before is ours.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import random
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from typing import Any, NoReturn

from agentic_gym.tools.sandbox import kernel, landlock, limits, namespaces, protocol, runner, seccomp
from agentic_gym.tools.sandbox.limits import Limits

_CHANNEL = 3
"""The descriptor of the channel to the template, in every child."""


@dataclass(frozen=True)
class Hardening:
    """What a child puts on itself; decided once by the template."""

    limits: Limits
    baseline: int
    """Bytes of address space the template maps, on top of which the memory limit counts."""
    readable: tuple[str, ...]
    chroot: bool
    landlock: bool
    filter: bytes | None
    """The first system-call filter; None for no filtering."""
    thread_filter: bytes | None
    """The filter that lets the template count threads; None where it has to poll."""
    template: int
    """Process id of the template."""


@dataclass(frozen=True)
class Place:
    """Where a child runs: the root it enters (None for the common one) and its scratch directory."""

    root: str | None
    scratch: str


def live(channel: socket.socket, place: Place, hardening: Hardening) -> NoReturn:
    """The whole life of a child, from just after the fork. Never returns."""
    code = 70
    try:
        try:
            channel = _isolate(channel, place, hardening)
            rlimits = _harden(channel, place, hardening)
            work, descriptors = protocol.receive(channel)
            if work is None:
                os._exit(0)
            _seal(work, rlimits, hardening)
            source = _take(descriptors, session=work["session"])
        except BaseException as error:
            socket.socket(fileno=os.dup(_CHANNEL)).send(protocol.REFUSED + repr(error).encode()[:2000])
            os._exit(code)
        channel.send(protocol.READY)
        code = _session(source) if work["session"] else _single(source)
        if code == runner.OUT_OF_MEMORY:
            channel.send(protocol.MEMORY)
            code = runner.ERROR
    finally:
        os._exit(code & 0xFF)


def _isolate(channel: socket.socket, place: Place, hardening: Hardening) -> socket.socket:
    """Let go of everything that is the template's; returns the channel on its new descriptor."""
    linux = sys.platform == "linux"
    if linux:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != hardening.template:
            os._exit(0)
    if channel.fileno() != _CHANNEL:
        os.dup2(channel.fileno(), _CHANNEL)
        channel.detach()
        channel = socket.socket(fileno=_CHANNEL)
    os.closerange(_CHANNEL + 1, os.sysconf("SC_OPEN_MAX") if not linux else 2**31 - 1)
    os.dup2(0, 2)  # the template's standard descriptors are /dev/null, but for its error log
    os.setsid()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    if place.root is not None:
        os.chroot(place.root)
    os.chdir(place.scratch)
    os.umask(0o022)
    os.environ.update(HOME=place.scratch, TMPDIR=place.scratch)
    return channel


def _harden(channel: socket.socket, place: Place, hardening: Hardening) -> dict[int, tuple[int, int]]:
    """Everything that can be done before the work is known; returns the limits set so far."""
    if hardening.chroot:
        kernel.drop_capabilities(bounding=False)
    if hardening.landlock:
        landlock.restrict(hardening.readable, [place.scratch], namespaces.DEVICES)
    rlimits = limits.fixed_rlimits(hardening.limits, hardening.baseline)
    limits.apply(rlimits)
    if hardening.filter is not None:
        seccomp.install(hardening.filter)
    if hardening.thread_filter is not None:
        listener = seccomp.install(hardening.thread_filter, listener=True)
        socket.send_fds(channel, [protocol.LISTENER], [listener])
        os.close(listener)
    return rlimits


def _seal(work: dict[str, Any], rlimits: dict[int, tuple[int, int]], hardening: Hardening) -> None:
    """Set the limit that depends on the work, read all of them back, and close the way to change them."""
    cpu = limits.cpu_rlimit(work["cpu"])
    limits.apply(cpu)
    limits.verify(rlimits | cpu)
    if hardening.filter is not None:
        seccomp.install(seccomp.seal_filter(os.getpid()))


def _take(descriptors: list[int], *, session: bool) -> int:
    """Put the received descriptors in their places; returns the one that brings code."""
    source, out, err, *stdin = descriptors
    os.dup2(out, 1)
    os.dup2(err, 2)
    os.close(out)
    os.close(err)
    if stdin:
        os.dup2(stdin[0], 0)
        os.close(stdin[0])
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0)), "utf-8", "replace")
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(1, "w")), "utf-8", "backslashreplace", line_buffering=True
    )
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(io.FileIO(2, "w")), "utf-8", "backslashreplace", line_buffering=True
    )
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    sys.path.insert(0, "")
    return source


def _single(source: int) -> int:
    with open(source, "rb") as file:
        header = json.loads(file.readline())
        code = file.read()
    seed(header["seed"])
    text = code if header["bytes"] else code.decode("utf-8", "surrogatepass")
    result = runner.run(text, "<cell>", runner.fresh_main(), echo=header["echo"])
    return _finish(result)


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
            stream.flush()
    return result


def _session(channel: int) -> int:
    """Answer cells until the caller closes the channel. State stays between cells."""
    cells = socket.socket(fileno=channel)
    namespace = runner.fresh_main()
    running = False

    def interrupt(number: int, frame: object) -> None:
        if running:
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    serial = 0
    seeded = False
    while True:
        message = _receive_cell(cells)
        if message is None:
            return 0
        header, code = message
        if not seeded:
            seed(header["seed"])
            seeded = True
        serial += 1
        result = runner.ERROR
        try:
            running = True
            result = runner.run(code, f"<cell {serial}>", namespace, echo=header["echo"])
            running = False
        except KeyboardInterrupt:  # arrived between the cell's own handlers
            running = False
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        status = protocol.MEMORY if result == runner.OUT_OF_MEMORY else b"0" if result == runner.OK else b"1"
        cells.send(status)


def _receive_cell(cells: socket.socket) -> tuple[dict[str, Any], str | bytes] | None:
    """One cell: a record that says how to run it, with a file that holds the code."""
    header, descriptors = protocol.receive(cells)
    if header is None:
        return None
    with open(descriptors[0], "rb") as file:
        code = file.read()
    return header, code if header["bytes"] else code.decode("utf-8", "surrogatepass")


def seed(value: int | None) -> None:
    """Seed Python's and numpy's global generators; fresh entropy for None (forks would share a state)."""
    random.seed(value)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(None if value is None else value % 2**32)
