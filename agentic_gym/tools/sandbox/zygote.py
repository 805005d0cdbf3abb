"""The template process: imports the libraries once, keeps a hardened child ready, hands it work, watches it.

It is started fresh (never forked from the caller), so no memory, descriptor or environment variable of the
caller can reach a child. Code and output pass it by as descriptors only. One thread, one loop.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass, replace
from typing import Any

from agentic_gym.tools.sandbox import child, kernel, namespaces, prepare, protocol, scratch, threads
from agentic_gym.tools.sandbox.limits import Limits

_POLL_SECONDS = 0.02
"""How often a run that lasts is looked at for limits that the kernel does not hold."""


@dataclass
class Child:
    """A hardened process, waiting for work or at it."""

    pid: int
    channel: socket.socket
    place: child.Place
    listener: int | None = None
    """Where its requests for new threads arrive."""


@dataclass
class Run:
    """A child at work."""

    child: Child
    call: socket.socket
    started: float
    deadline: float
    cpu_limit: float
    looked_at: float
    reason: str | None = None
    """Why the template killed it, if it did."""


class Template:
    """The loop and its state."""

    def __init__(
        self, control: socket.socket, watch: int | None, limits: Limits, prepared: prepare.Prepared, spare: int
    ) -> None:
        self.control = control
        self.watch = watch
        self.limits = limits
        self.prepared = prepared
        self.spare = spare
        self.standby: list[Child] = []
        self.runs: dict[int, Run] = {}
        self.free: list[child.Place] = []
        self.places = 0
        self.spawning = True
        self.hardening = replace(prepared.hardening, template=os.getpid())
        self.poller = select.poll()
        self.poller.register(control, select.POLLIN)
        if watch is not None:
            self.poller.register(watch, select.POLLIN)
        self.wakeup, wake = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        self.poller.register(self.wakeup, select.POLLIN)
        self.calls: dict[int, Run] = {}
        self.channels: dict[int, Child] = {}
        self.listeners: dict[int, Child] = {}

    # -- children ---------------------------------------------------------------------------------------------

    def _place(self) -> child.Place:
        if self.free:
            return self.free.pop()
        self.places += 1
        if self.prepared.base is None:
            limits = self.limits
            root = namespaces.make_slot(self.places, limits.scratch_mb, limits.scratch_files)
            return child.Place(root, namespaces.SCRATCH)
        directory = os.path.join(self.prepared.base, str(self.places))
        os.mkdir(directory, 0o700)
        return child.Place(None, directory)

    def _spawn(self) -> Child:
        place = self._place()
        ours, theirs = protocol.pair()
        pid = os.fork()
        if pid == 0:
            child.live(theirs, place, self.hardening)
        theirs.close()
        ours.setblocking(False)
        newborn = Child(pid, ours, place)
        self.standby.append(newborn)
        if self.hardening.thread_filter is not None:
            self.channels[ours.fileno()] = newborn
            self.poller.register(ours, select.POLLIN)
        return newborn

    def _adopt_listener(self, newborn: Child) -> None:
        """Take the listener that a child sends once, before it gets work."""
        self._ignore_channel(newborn)
        with contextlib.suppress(OSError):
            word, descriptors, _, _ = socket.recv_fds(newborn.channel, 1, 1)
            if word == protocol.LISTENER and descriptors:
                newborn.listener = descriptors[0]
                self.listeners[newborn.listener] = newborn
                self.poller.register(newborn.listener, select.POLLIN)

    def _ignore_channel(self, of: Child) -> None:
        if self.channels.pop(of.channel.fileno(), None) is not None:
            self.poller.unregister(of.channel)

    def _release(self, gone: Child) -> None:
        """Close what we hold of a child that has ended, and empty its scratch directory."""
        self._ignore_channel(gone)
        if gone.listener is not None:
            del self.listeners[gone.listener]
            self.poller.unregister(gone.listener)
            os.close(gone.listener)
        gone.channel.close()
        self._clean(gone.place)

    def _clean(self, place: child.Place) -> None:
        """Empty a scratch directory and keep it for the next child; give up on one that resists."""
        path = (place.root or "") + place.scratch
        try:
            scratch.empty(path)
        except OSError:
            if place.root is None:
                return
            namespaces.remake_scratch(place.root, self.limits.scratch_mb, self.limits.scratch_files)
        self.free.append(place)

    # -- calls ------------------------------------------------------------------------------------------------

    def _start(self, request: dict[str, Any], descriptors: list[int]) -> None:
        call_descriptor, *rest = descriptors
        call = socket.socket(fileno=call_descriptor)
        call.setblocking(False)
        self.spawning = True
        cpu = request["cpu"]
        now = time.monotonic()
        try:
            standby = self._hand_over({"cpu": cpu, "session": request["session"]}, rest)
        except OSError as error:
            _reply(call, {"failed": f"no child could be started: {error}"})
            return
        finally:
            for descriptor in rest:
                os.close(descriptor)
        deadline = float("inf") if request["session"] else now + request["timeout"]
        run = Run(standby, call, now, deadline, cpu, now)
        self.runs[standby.pid] = run
        self.calls[call.fileno()] = run
        self.poller.register(call, select.POLLIN)

    def _hand_over(self, work: dict[str, Any], descriptors: list[int]) -> Child:
        """Give the work to a waiting child; one that has died meanwhile is replaced."""
        for _ in range(3):
            standby = self.standby[0] if self.standby else self._spawn()
            self.standby.remove(standby)
            try:
                protocol.send(standby.channel, work, descriptors)
                return standby
            except (BrokenPipeError, ConnectionError):
                self._discard(standby)
        raise OSError(errno.EAGAIN, "children die before they get work")

    def _discard(self, standby: Child) -> None:
        with contextlib.suppress(OSError):
            os.kill(standby.pid, signal.SIGKILL)
            os.waitpid(standby.pid, 0)
        self._release(standby)

    def _order(self, run: Run) -> None:
        """A byte from the caller about one call, or its end."""
        try:
            order = run.call.recv(1)
        except BlockingIOError:
            return
        except OSError:
            order = b""
        if order == protocol.INTERRUPT:
            os.kill(run.child.pid, signal.SIGINT)
        elif order == protocol.KILL_OUTPUT:
            self._kill(run, "output_limit")
        elif order == protocol.KILL_TIMEOUT:
            self._kill(run, "timeout")
        else:
            self._kill(run, "cancelled")
            self.poller.unregister(run.call)

    def _kill(self, run: Run, reason: str) -> None:
        if run.reason is None:
            run.reason = reason
        with contextlib.suppress(ProcessLookupError):
            os.kill(run.child.pid, signal.SIGKILL)

    def _reap(self) -> None:
        """Collect every child that has ended, answer its call, and tidy up."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self.wakeup, 4096):
                pass
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if (run := self.runs.pop(pid, None)) is not None:
                self._finish(run, status, usage)
                continue
            for standby in [s for s in self.standby if s.pid == pid]:
                self.spawning = False  # until the next call, lest a machine in trouble forks in circles
                self.standby.remove(standby)
                self._release(standby)

    def _finish(self, run: Run, status: int, usage: Any) -> None:
        wall = time.monotonic() - run.started
        if run.child.channel.fileno() in self.channels:
            self._adopt_listener(run.child)
        first, second = _receive(run.child.channel), _receive(run.child.channel)
        if self.prepared.level == "process":
            prepare.kill_strays(run.child.pid, keep={*self.runs, *(s.pid for s in self.standby)})
        self._release(run.child)
        cpu = usage.ru_utime + usage.ru_stime
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        reason = run.reason
        if reason is None and killed in (signal.SIGKILL, signal.SIGXCPU) and cpu >= run.cpu_limit - 0.1:
            reason = "timeout"
        answer: dict[str, Any] = {
            "reason": reason,
            "memory": second == protocol.MEMORY,
            "returncode": None if killed is not None else os.WEXITSTATUS(status),
            "signal": killed,
            "wall": wall,
            "cpu": cpu,
            "maxrss_kb": usage.ru_maxrss if sys.platform == "linux" else usage.ru_maxrss // 1024,
        }
        if first != protocol.READY:
            text = first[1:].decode("utf-8", "replace") if first else "the child ended before it was ready"
            answer["failed"] = text
        del self.calls[run.call.fileno()]
        if run.reason != "cancelled":
            self.poller.unregister(run.call)
        _reply(run.call, answer)

    # -- time -------------------------------------------------------------------------------------------------

    def _wait_seconds(self) -> float | None:
        if not self.runs:
            return None
        now = time.monotonic()
        nearest = min(run.deadline for run in self.runs.values())
        look = min(run.looked_at for run in self.runs.values()) + _POLL_SECONDS
        soonest = min(nearest, look)
        return None if soonest == float("inf") else max(0.0, soonest - now)

    def _look(self) -> None:
        """Kill what is past its deadline or over a limit that only looking reveals."""
        now = time.monotonic()
        for run in list(self.runs.values()):
            if run.reason is not None:
                run.deadline, run.looked_at = float("inf"), float("inf")
            elif now >= run.deadline:
                self._kill(run, "timeout")
            elif now >= run.looked_at + _POLL_SECONDS:
                run.looked_at = now
                if self.prepared.processes.threads(run.child.pid) > self.limits.threads:
                    self._kill(run, "thread_limit")
                elif run.child.place.root is None and scratch.over_limit(
                    run.child.place.scratch, self.limits.scratch_mb * 2**20, self.limits.scratch_files
                ):
                    self._kill(run, "disk_limit")

    def _may_have_thread(self, pid: int) -> bool:
        return self.prepared.processes.threads(pid) < self.limits.threads

    def serve(self) -> None:
        """Answer until the caller is gone."""
        while True:
            while self.spawning and len(self.standby) < self.spare:
                self._spawn()
            wait = self._wait_seconds()
            events = self.poller.poll(None if wait is None else wait * 1000 + 0.5)
            for descriptor, _ in events:
                if descriptor == self.watch:
                    return
                if descriptor == self.wakeup:
                    self._reap()
                elif descriptor == self.control.fileno():
                    request, descriptors = protocol.receive(self.control)
                    if request is None:
                        return
                    self._start(request, descriptors)
                elif (asking := self.listeners.get(descriptor)) is not None:
                    threads.answer(descriptor, self._may_have_thread(asking.pid))
                elif (newborn := self.channels.get(descriptor)) is not None:
                    self._adopt_listener(newborn)
                elif (run := self.calls.get(descriptor)) is not None:
                    self._order(run)
            self._look()

    def close(self) -> None:
        """Kill every child and wait for it."""
        for pid in [*self.runs, *(s.pid for s in self.standby)]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        if self.prepared.base is not None:
            scratch.remove(self.prepared.base)


def _receive(channel: socket.socket) -> bytes:
    for _ in range(2):
        try:
            return channel.recv(2048)
        except ConnectionResetError:  # the child left unread work behind; what it said comes next
            continue
        except BlockingIOError:
            break
    return b""


def _reply(call: socket.socket, answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # the caller no longer waits
        protocol.send(call, answer)
    call.close()


def main(control_descriptor: int, watch: int | None, config: dict[str, Any]) -> None:
    """Run a template on inherited descriptors. Tells the caller how the start went, then serves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=control_descriptor)
    limits = Limits(**config["limits"])
    try:
        prepared = prepare.prepare(limits, config)
        template = Template(control, watch, limits, prepared, config["spare"])
    except BaseException as error:
        protocol.send(control, {"error": str(error), "kind": type(error).__name__})
        return
    protocol.send(control, {"features": prepared.features.as_dict(), "base": prepared.base})
    try:
        template.serve()
    finally:
        template.close()
