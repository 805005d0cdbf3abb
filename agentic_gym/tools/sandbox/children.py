"""What a child uses, as /proc shows it, and the answer to its request for one more thread.

The kernel's own limit (RLIMIT_NPROC) counts all processes of a user and does not bind uid 0, so a filter stops each
`clone` and asks the template, which looks and answers. Where notifications are missing the template polls and kills.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import stat
import struct
import sys

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_RECORD_SIZE, _ID = 80, struct.Struct("=Q")
_REPLY = struct.Struct("=QqiI")
_CONTINUE = 1
_MAX_MAPS = 2**20
"""Bytes of a list of mappings that are read: about ten thousand lines, of which a large program has a few hundred."""


class Processes:
    """Looks at children through a /proc opened early, so that it still works under a private root."""

    def __init__(self) -> None:
        self.proc = os.open("/proc", os.O_PATH | os.O_DIRECTORY) if sys.platform == "linux" else None

    def threads(self, pid: int) -> int:
        """Live threads of one of our children; 1 where that cannot be told."""
        if self.proc is None:
            return 1
        try:
            return int(self._field(f"{self._outer(pid)}/status", "Threads:"))
        except (OSError, LookupError):
            return 1

    def page_tables(self, pid: int) -> int:
        """Bytes of the kernel's own memory that map one of our children's; 0 where that cannot be told.

        They do not count for the limit on address space: pages that lie far apart take two of them each.
        """
        if self.proc is None:
            return 0
        with contextlib.suppress(OSError, LookupError):
            outer = self._outer(pid)
            try:
                return int(self._field(f"{outer}/status", "VmPTE:")) * 1024
            except LookupError:  # the main thread has ended: any other will know
                for task in self._list(f"{outer}/task"):
                    with contextlib.suppress(OSError, LookupError):
                        return int(self._field(f"{task}/status", "VmPTE:")) * 1024
        return 0

    def unlinked_bytes(self, pid: int, scratch: str, max_file: int) -> float:
        """Size of the files that a child has deleted and still holds, open or mapped; 0 where that cannot be told.

        A file that is only mapped does not show its size: it counts as `max_file` bytes, if it was in `scratch`.
        """
        marker = os.fsencode("/".join(["", *scratch.split("/")[-2:], ""]))  # whatever links lead to the directory
        try:
            tasks = self._list(f"{self._outer(pid)}/task")
        except (OSError, LookupError):
            return 0
        for task in tasks:  # all share what they hold, but a thread that has ended, the main one too, shows nothing
            with contextlib.suppress(OSError):
                if maps := self._maps(f"{task}/maps"):
                    if len(maps) > _MAX_MAPS:
                        return float("inf")
                    held = self._unlinked(f"{task}/fd")
                    lines = (line for line in maps.splitlines() if line.endswith(b" (deleted)") and marker in line)
                    mapped = {int(line.split(maxsplit=5)[4]) for line in lines}
                    return sum(held.values()) + max_file * len(mapped - held.keys())
        return 0

    def _list(self, name: str) -> list[str]:
        """The entries of a directory below /proc, each with the directory's name before it."""
        folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
        try:
            return [f"{name}/{entry}" for entry in os.listdir(folder)]
        finally:
            os.close(folder)

    def _unlinked(self, name: str) -> dict[int, int]:
        """Of the deleted files among the descriptors in this directory: inode to bytes."""
        sizes = {}
        for entry in self._list(name):
            with contextlib.suppress(OSError):
                status = os.stat(entry, dir_fd=self.proc)
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    sizes[status.st_ino] = status.st_blocks * 512
        return sizes

    def _maps(self, name: str) -> bytes:
        """The list of mappings, or enough of it to see that it is too long."""
        with open(os.open(name, os.O_RDONLY, dir_fd=self.proc), "rb", 0) as file:
            parts: list[bytes] = []
            while sum(map(len, parts)) <= _MAX_MAPS and (part := file.read(65536)):
                parts.append(part)
        return b"".join(parts)

    def usage(self, pid: int) -> tuple[float, int]:
        """CPU seconds and peak memory (kB) of one of our children that is alive; 0 for what cannot be told."""
        if self.proc is None:
            return 0.0, 0
        try:
            outer = self._outer(pid)
            with open(os.open(f"{outer}/stat", os.O_RDONLY, dir_fd=self.proc), "rb") as file:
                user, system = file.read().rsplit(b")", 1)[1].split()[11:13]
            return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK"), int(self._field(f"{outer}/status", "VmHWM:"))
        except (OSError, LookupError, ValueError):
            return 0.0, 0

    def _outer(self, pid: int) -> str:
        """The id of a child in the process namespace that this /proc shows."""
        handle = os.pidfd_open(pid)
        try:
            return self._field(f"self/fdinfo/{handle}", "Pid:")
        finally:
            os.close(handle)

    def _field(self, name: str, label: str) -> str:
        # A process names itself, in any bytes it likes.
        with open(os.open(name, os.O_RDONLY, dir_fd=self.proc), errors="replace") as file:
            for line in file:
                if line.startswith(label):
                    return line.split()[1]
        raise LookupError(label)


def answer(listener: int, allowed: bool) -> None:
    """Answer the request that waits on `listener`: go on, or EAGAIN as at the kernel's own limit."""
    record = bytearray(_RECORD_SIZE)
    poller = select.poll()
    poller.register(listener, select.POLLIN)
    if not any(events & select.POLLIN for _, events in poller.poll(0)):
        return  # its last process has ended: on kernels before 6.6 receiving would block for ever
    try:
        fcntl.ioctl(listener, _RECEIVE, record)
        (request,) = _ID.unpack_from(record)
        reply = _REPLY.pack(request, 0, 0, _CONTINUE) if allowed else _REPLY.pack(request, 0, -errno.EAGAIN, 0)
        fcntl.ioctl(listener, _ANSWER, reply)
    except OSError:  # whoever asked has been killed meanwhile
        return
