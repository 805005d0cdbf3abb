"""The supervisor process: hands each call to a slot, watches it, kills it when it is over a limit, and answers.

It is started fresh (never forked from the caller), so no memory, descriptor or environment variable of the caller
can reach a child. Code and output pass it by as descriptors only. One thread, one loop; nothing hostile runs in it,
and it imports no library, so it stays small and answers at once.

    caller --- supervisor --- template (numpy, sympy)
                   \\             \\ fork
                    `----------- slot (hardened) --- child (one call)
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from agentic_gym.tools.sandbox import children, namespaces, prepare, protocol, scratch, slot
from agentic_gym.tools.sandbox.limits import Limits

_POLL_SECONDS = 0.02
"""How often a run that lasts is looked at for limits that the kernel does not hold."""
_LOOK_SECONDS = 0.003
"""How long one such look may keep the others waiting; a large scratch directory takes several."""
_MAX_PAGE_TABLES = 32 * 2**20
"""Bytes; a program that fills its memory has about one MB of them."""
_EMPTY_ENTRIES, _EMPTY_SECONDS = 300, 0.02
"""Files and directories that are removed between two calls, and for how long; others are removed in the background."""
_DYING_SECONDS = 0.02
"""How long a killed child may take to be gone before its call is answered all the same."""
_FOREVER = float("inf")


@dataclass
class Call:
    """A caller's request, and the run that answers it."""

    socket: socket.socket
    request: dict[str, Any]
    descriptors: list[int]
    """Code and streams, until they are handed to a child."""
    started: float = 0.0
    deadline: float = _FOREVER
    looked_at: float = _FOREVER
    reason: str | None = None
    """Why the supervisor killed it, if it did."""
    killed: float = _FOREVER
    """When it did."""
    measuring: Iterator[bool] | None = None
    """The look at its scratch directory, while that is going on."""
    usage: tuple[float, int] = (0.0, 0)
    """CPU seconds and peak memory (kB) just before."""


@dataclass
class Slot:
    """A slot, the child that waits or works in it, and the call it works on."""

    link: socket.socket
    place: slot.Place
    listener: int | None = None
    pid: int = 0
    channel: socket.socket | None = None
    call: Call | None = None
    proven: bool = False
    """It has had a child that waited for work: it was set up well."""
    dying: bool = False
    """Its child has been killed and its call answered, but the kernel is still taking the child's memory apart."""


class Supervisor:
    """The loop and its state."""

    def __init__(self, control: socket.socket, watch: int | None, limits: Limits, prepared: prepare.Prepared) -> None:
        self.control = control
        self.limits = limits
        self.prepared = prepared
        self.private = prepared.base is None
        self.slots: list[Slot] = []
        self.waiting: deque[Call] = deque()
        self.places = 0
        self.handlers: dict[int, Any] = {}
        self.poller = select.poll()
        self.running = True
        self.janitors: set[int] = set()
        self.deaths, wakeup = socket.socketpair()
        for end in (self.deaths, wakeup):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # or no byte would be written for it
        signal.set_wakeup_fd(wakeup.detach(), warn_on_full_buffer=False)
        self._listen(self.deaths.fileno(), self._reap)
        self._listen(control.fileno(), self._accept)
        self._listen(prepared.link.fileno(), self._stop)
        if watch is not None:
            self._listen(watch, self._stop)

    def _listen(self, descriptor: int, handler: Any) -> None:
        self.handlers[descriptor] = handler
        self.poller.register(descriptor, select.POLLIN)

    def _ignore(self, descriptor: int) -> None:
        if self.handlers.pop(descriptor, None) is not None:
            self.poller.unregister(descriptor)

    def _stop(self) -> None:
        """The caller or the template is gone."""
        self.running = False

    # -- slots ------------------------------------------------------------------------------------------------

    def _new_slot(self) -> None:
        """Ask the template for one more slot; it reports for work by itself."""
        self.places += 1
        if self.private:
            root = namespaces.make_slot(self.places, self.limits.scratch_mb, self.limits.scratch_files)
            place = slot.Place(root, namespaces.SCRATCH)
        else:
            place = slot.Place(None, os.path.join(self.prepared.base or "", str(self.places)))
            os.mkdir(place.scratch, 0o700)
            scratch.mark(place.scratch)
        link, theirs = protocol.pair()
        protocol.send(self.prepared.link, {"root": place.root, "scratch": place.scratch}, [theirs.fileno()])
        theirs.close()
        new = Slot(link, place)
        self.slots.append(new)
        self._listen(link.fileno(), lambda: self._hear(new))

    def _hear(self, of: Slot) -> None:
        """A word from a slot: a child waits, a child has ended, or the slot itself has."""
        try:
            data, descriptors, _, _ = socket.recv_fds(of.link, 4096, 1)
        except OSError:
            data, descriptors = b"", []
        word, data = data[:1], data[1:]
        if word == protocol.WAITING:
            (of.pid,) = slot.WAITING.unpack(data)
            of.proven = True
            of.channel = socket.socket(fileno=descriptors[0])
            of.channel.setblocking(False)
            self._dispatch()
        elif word == protocol.ENDED:
            self._finish(of, *slot.ENDED.unpack(data))
        elif word == protocol.LISTENER:
            of.listener = descriptors[0]
            self._listen(of.listener, lambda: self._decide_thread(of))
        else:
            self._lose(of, data.decode("utf-8", "replace") or "the slot's process ended")

    def _decide_thread(self, of: Slot) -> None:
        allowed = of.pid != 0 and self.prepared.processes.threads(of.pid) < self.limits.threads
        if of.listener is not None:
            children.answer(of.listener, allowed)

    def _lose(self, gone: Slot, reason: str) -> None:
        """A slot has died (out of memory, say), or could not be set up."""
        self.slots.remove(gone)
        for descriptor in (gone.link.fileno(), gone.listener):
            if descriptor is not None:
                self._ignore(descriptor)
        gone.link.close()
        if gone.listener is not None:
            os.close(gone.listener)
        if gone.channel is not None:
            gone.channel.close()
        if gone.call is not None:
            self._answer(gone.call, {"failed": reason})
        if gone.proven:
            self._dispatch()
        elif not self.slots:
            while self.waiting:  # none can be set up: waiting longer would not help
                self._answer(self.waiting.popleft(), {"failed": reason})

    def _reap(self) -> None:
        """Bury janitors, and the children of lost slots, which come to us, their next of kin."""
        with contextlib.suppress(BlockingIOError):
            self.deaths.recv(4096)
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                self.janitors.discard(pid)

    # -- calls ------------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            request, descriptors = protocol.receive(self.control)
        except OSError:
            request, descriptors = None, []
        if request is None:
            self._stop()
            return
        call = Call(socket.socket(fileno=descriptors[0]), request, descriptors[1:])
        call.socket.setblocking(False)
        self._listen(call.socket.fileno(), lambda: self._order(call))
        self.waiting.append(call)
        self._dispatch()

    def _dispatch(self) -> None:
        """Give waiting calls to waiting children; ask for more slots where there are too few."""
        for free in self.slots:
            if not self.waiting:
                return
            if free.channel is None or free.call is not None or free.dying:
                continue
            call = self.waiting.popleft()
            try:
                protocol.send_work(free.channel, protocol.Work(*call.request["work"]), call.descriptors)
            except OSError:  # that child has just died; its slot will tell
                self.waiting.appendleft(call)
                continue
            self._close_descriptors(call)
            call.started = call.looked_at = time.monotonic()
            if (timeout := call.request["timeout"]) is not None:
                call.deadline = call.started + timeout
            free.call = call
        coming = sum(s.call is None for s in self.slots)
        for _ in range(len(self.waiting) - coming):
            try:
                self._new_slot()
            except OSError as error:  # no room for its scratch directory, say
                if self.slots:
                    return  # they will take the calls
                while self.waiting:
                    self._answer(self.waiting.popleft(), {"failed": str(error)})

    def _order(self, call: Call) -> None:
        """A byte from the caller about one call, or its end."""
        try:
            order = call.socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            order = b""
        if order == b"":
            self._ignore(call.socket.fileno())
            if call in self.waiting:
                self.waiting.remove(call)
                self._close_descriptors(call)
                call.socket.close()
                return
        reasons = {protocol.KILL_OUTPUT: "output_limit", protocol.KILL_TIMEOUT: "timeout"}
        for busy in self.slots:
            if busy.call is call:
                if order == protocol.INTERRUPT:
                    with contextlib.suppress(ProcessLookupError):  # it has just ended; its slot will tell
                        os.kill(busy.pid, signal.SIGINT)
                else:
                    self._kill(busy, reasons.get(order, "cancelled"))

    def _kill(self, busy: Slot, reason: str) -> None:
        if busy.call is not None and busy.call.reason is None:
            busy.call.reason = reason
            busy.call.usage = self.prepared.processes.usage(busy.pid)
            busy.call.killed = time.monotonic()
            busy.call.deadline = busy.call.looked_at = _FOREVER
        with contextlib.suppress(ProcessLookupError):
            os.kill(busy.pid, signal.SIGKILL)

    def _finish(self, of: Slot, status: int, cpu: float, maxrss: int) -> None:
        """A child has ended: answer its call and make the slot fit for the next."""
        pid, channel, call = of.pid, of.channel, of.call
        of.pid, of.channel, of.call, of.dying = 0, None, None, False
        assert channel is not None  # a slot says WAITING before ENDED
        first, second = _receive(channel), _receive(channel)
        channel.close()
        if self.prepared.features.level == "process":
            prepare.kill_strays(pid, keep={self.prepared.template, *self.janitors})
        if call is not None:
            killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            reason = call.reason
            if reason is None and killed in (signal.SIGKILL, signal.SIGXCPU) and cpu >= call.request["work"][0] - 0.1:
                reason = "timeout"
            answer: dict[str, Any] = {
                "reason": reason,
                "memory": second == protocol.MEMORY,
                "returncode": None if killed is not None else os.WEXITSTATUS(status),
                "signal": killed,
                "wall": min(time.monotonic(), call.killed) - call.started,
                "cpu": cpu,
                "maxrss_kb": maxrss if sys.platform == "linux" else maxrss // 1024,
            }
            if first != protocol.READY:
                answer["failed"] = first[1:].decode("utf-8", "replace") or "the child ended before it was ready"
            self._answer(call, answer)
        try:
            path = (of.place.root or "") + of.place.scratch
            scratch.empty(path, _EMPTY_ENTRIES, _EMPTY_SECONDS)
            scratch.mark(path)
        except (scratch.TooMuch, OSError):
            self._abandon(of)

    def _abandon(self, of: Slot) -> None:
        """Give up a slot whose scratch directory would take long to empty; nobody shall wait for that."""
        if of.place.root is not None:
            with contextlib.suppress(OSError):
                namespaces.drop_slot(of.place.root)
        else:
            pid = os.fork()
            if pid == 0:
                _remove_and_exit(of.place.scratch)
            self.janitors.add(pid)
        self._lose(of, "the scratch directory could not be emptied")

    def _answer_early(self, busy: Slot, call: Call) -> None:
        """Answer for a child that is dead but not yet gone: freeing its memory can take a crowded machine long."""
        busy.call, busy.dying = None, True
        wall, (cpu, peak) = call.killed - call.started, call.usage
        self._answer(
            call,
            {"reason": call.reason, "memory": False, "returncode": None, "signal": int(signal.SIGKILL), "wall": wall,
             "cpu": cpu, "maxrss_kb": peak},
        )  # fmt: skip

    def _answer(self, call: Call, answer: dict[str, Any]) -> None:
        self._ignore(call.socket.fileno())
        self._close_descriptors(call)
        with contextlib.suppress(OSError):  # the caller no longer waits
            protocol.send(call.socket, answer)
        call.socket.close()

    def _close_descriptors(self, call: Call) -> None:
        while call.descriptors:
            os.close(call.descriptors.pop())

    # -- time -------------------------------------------------------------------------------------------------

    def _wait_ms(self) -> float | None:
        soonest = min(
            (
                min(s.call.deadline, s.call.looked_at + _POLL_SECONDS, s.call.killed + _DYING_SECONDS)
                for s in self.slots
                if s.call is not None
            ),
            default=_FOREVER,
        )
        return None if soonest == _FOREVER else max(0.0, soonest - time.monotonic()) * 1000 + 0.5

    def _look(self) -> None:
        """Kill what is past its deadline or over a limit that only looking reveals."""
        now = time.monotonic()
        for busy in self.slots:
            call = busy.call
            if call is None:
                continue
            if now >= call.killed + _DYING_SECONDS:
                self._answer_early(busy, call)
            elif now >= call.deadline:
                self._kill(busy, "timeout")
            elif now >= call.looked_at + _POLL_SECONDS:
                call.looked_at = now
                if busy.listener is None and self.prepared.processes.threads(busy.pid) > self.limits.threads:
                    self._kill(busy, "thread_limit")
                elif self.prepared.processes.page_tables(busy.pid) > _MAX_PAGE_TABLES:
                    self._kill(busy, "memory")
                elif not self.private and self._disk_used_up(busy, call):
                    self._kill(busy, "disk_limit")

    def _disk_used_up(self, busy: Slot, call: Call) -> bool:
        if call.measuring is None:
            path = busy.place.scratch
            if scratch.untouched(path):
                return False
            allowed = self.limits.scratch_mb * 2**20
            hidden = self.prepared.processes.unlinked_bytes(busy.pid, path, self.limits.file_mb * 2**20)
            if hidden > allowed:
                return True
            call.measuring = scratch.measure(path, allowed - int(hidden), self.limits.scratch_files)
        started = time.monotonic()
        for over in call.measuring:
            if over:
                return True
            if (spent := time.monotonic() - started) > _LOOK_SECONDS:  # go on soon, when the others have had a turn
                call.looked_at += min(0.0, 2 * spent - _POLL_SECONDS)
                return False
        call.measuring = None
        return False

    def serve(self) -> None:
        """Answer until the caller is gone."""
        self._new_slot()
        while self.running:
            for descriptor, _ in self.poller.poll(self._wait_ms()):
                if (handler := self.handlers.get(descriptor)) is not None:
                    handler()
            self._look()

    def close(self) -> None:
        """End the template, the slots and the children, and wait for all of them."""
        if self.private:
            return  # we are the first of our process namespace: when we exit the kernel ends all others
        with contextlib.suppress(OSError):
            os.kill(self.prepared.template, signal.SIGKILL)
        for pid in [*self.janitors, *(each.pid for each in self.slots if each.pid)]:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:  # slots and children die with their parents and come to us, their next of kin
                os.waitpid(-1, 0)
        if self.prepared.base is not None:
            scratch.remove(self.prepared.base)


def _remove_and_exit(path: str) -> NoReturn:
    """In a fork of the supervisor: let go of all it holds and remove a tree."""
    try:
        os.closerange(3, 2**31 - 1 if sys.platform == "linux" else os.sysconf("SC_OPEN_MAX"))
        scratch.remove(path)
    finally:
        os._exit(0)


def _receive(channel: socket.socket) -> bytes:
    for _ in range(2):
        try:
            return channel.recv(2048)
        except ConnectionResetError:  # the child left unread work behind; what it said comes next
            continue
        except OSError:
            break
    return b""


def main(control_descriptor: int, watch: int | None, config: dict[str, Any]) -> None:
    """Run a supervisor on inherited descriptors. Tells the caller how the start went, then serves."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=control_descriptor)
    limits = Limits(**config["limits"])
    try:
        prepared = prepare.prepare(limits, config)
    except Exception as error:
        protocol.send(control, {"error": str(error), "kind": type(error).__name__})
        return
    supervisor = Supervisor(control, watch, limits, prepared)
    try:
        protocol.send(control, {"features": prepared.features.as_dict(), "base": prepared.base})
        supervisor.serve()
    except BrokenPipeError:  # the caller went away while we started
        return
    finally:
        supervisor.close()
