"""A slot: a process forked from the template, confined to its scratch directory, that forks one child per call.

All hardening that children share is put on here and inherited, so a call pays for a fork and little more. The slot
touches as little memory as it can: every page it writes between two forks is a page the kernel copies.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
import sys
from dataclasses import dataclass
from typing import NoReturn

from agentic_gym.tools.sandbox import child, kernel, landlock, limits, namespaces, protocol, seccomp
from agentic_gym.tools.sandbox.limits import Limits

WAITING = struct.Struct("=q")
"""Slot to supervisor, with the child's channel: the process id of a child that waits for work."""
ENDED = struct.Struct("=qdq")
"""Slot to supervisor: wait status, CPU seconds, peak memory of the child that has ended."""


@dataclass(frozen=True)
class Hardening:
    """What a slot puts on itself and its children."""

    limits: Limits
    baseline: int
    """Bytes of address space the template maps, on top of which the memory limit counts."""
    readable: tuple[str, ...]
    landlock: bool
    filter: seccomp.Filter | None
    """The system-call filter; None for no filtering."""
    thread_filter: seccomp.Filter | None
    """The filter that lets the supervisor count threads; None where it has to poll."""


@dataclass(frozen=True)
class Place:
    """Where a slot runs: the root it enters (None for the common one) and its scratch directory."""

    root: str | None
    scratch: str


def serve(link: socket.socket, place: Place, hardening: Hardening, template: int) -> NoReturn:
    """The whole life of a slot, from just after the fork. `link` leads to the supervisor."""
    try:
        link = _isolate(link, template)
        if place.root is not None:
            os.chroot(place.root)
        os.chdir(place.scratch)
        os.environ.update(HOME=place.scratch, TMPDIR=place.scratch)
        os.umask(0o022)
        rlimits = _harden(link, place, hardening)
        seal = None if hardening.filter is None else seccomp.seal_filter()
        parent = os.getpid() if place.root is None else None
        birth = child.prepare(hardening.limits, rlimits, seal, parent)
        while True:
            ours, theirs = protocol.pair()
            pid = kernel.fork()
            if pid == 0:
                link.close()
                ours.close()
                child.live(theirs, birth)
            theirs.close()
            socket.send_fds(link, [protocol.WAITING, WAITING.pack(pid)], [ours.fileno()])
            ours.close()
            _, status, usage = os.wait4(pid, 0)
            link.send(protocol.ENDED + ENDED.pack(status, usage.ru_utime + usage.ru_stime, usage.ru_maxrss))
    except BaseException as error:
        link.send(protocol.REFUSED + repr(error).encode()[:2000])
    finally:
        os._exit(70)


def _isolate(link: socket.socket, template: int) -> socket.socket:
    """Let go of everything that is the template's; returns the link on its new descriptor."""
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != template:
            os._exit(0)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if link.fileno() != 3:
        os.dup2(link.fileno(), 3)
        link.detach()
        link = socket.socket(fileno=3)
    os.closerange(4, 2**31 - 1 if sys.platform == "linux" else os.sysconf("SC_OPEN_MAX"))
    os.dup2(0, 2)  # the template's standard descriptors are /dev/null, but for its error log
    return link


def _harden(link: socket.socket, place: Place, hardening: Hardening) -> dict[int, tuple[int, int]]:
    """Put on everything that all runs share; returns the limits set."""
    if place.root is not None:
        kernel.drop_capabilities(bounding=True)
    if hardening.landlock:
        landlock.restrict(hardening.readable, [place.scratch], namespaces.DEVICES)
    rlimits = limits.fixed_rlimits(hardening.limits, hardening.baseline)
    limits.apply(rlimits)
    if hardening.filter is not None:
        hardening.filter.install()
    if hardening.thread_filter is not None:
        listener = hardening.thread_filter.install(listener=True)
        socket.send_fds(link, [protocol.LISTENER], [listener])
        os.close(listener)
    return rlimits
