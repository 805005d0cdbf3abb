"""What a child uses, as /proc shows it, and the answer to its request for one more thread.

The kernel's own limit (RLIMIT_NPROC) counts all processes of a user and does not bind uid 0, so a filter stops each
`clone` and asks the template, which looks and answers. Where notifications are missing the template polls and kills.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import struct
import sys

_RECEIVE, _ANSWER = 0xC0502100, 0xC0182101
_RECORD_SIZE, _ID = 80, struct.Struct("=Q")
_REPLY = struct.Struct("=QqiI")
_CONTINUE = 1


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

    def unlinked_bytes(self, pid: int) -> int:
        """Size of the files that a child has deleted and still holds open; 0 where that cannot be told."""
        total = 0
        try:
            folder = os.open(f"{self._outer(pid)}/fd", os.O_RDONLY | os.O_DIRECTORY, dir_fd=self.proc)
        except (OSError, LookupError):
            return 0
        try:
            for name in os.listdir(folder):
                with contextlib.suppress(OSError):
                    status = os.stat(name, dir_fd=folder)
                    if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                        total += status.st_blocks * 512
        finally:
            os.close(folder)
        return total

    def usage(self, pid: int) -> tuple[float, int]:
        """CPU seconds and peak memory (kB) of one of our children that is alive; 0 for what cannot be told."""
        if self.proc is None:
            return 0.0, 0
        try:
            outer = self._outer(pid)
            with open(os.open(f"{outer}/stat", os.O_RDONLY, dir_fd=self.proc)) as file:
                user, system = file.read().rsplit(")", 1)[1].split()[11:13]
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
        with open(os.open(name, os.O_RDONLY, dir_fd=self.proc)) as file:
            for line in file:
                if line.startswith(label):
                    return line.split()[1]
        raise LookupError(label)


def answer(listener: int, allowed: bool) -> None:
    """Answer the request that waits on `listener`: go on, or EAGAIN as at the kernel's own limit."""
    record = bytearray(_RECORD_SIZE)
    try:
        fcntl.ioctl(listener, _RECEIVE, record)
        (request,) = _ID.unpack_from(record)
        reply = _REPLY.pack(request, 0, 0, _CONTINUE) if allowed else _REPLY.pack(request, 0, -errno.EAGAIN, 0)
        fcntl.ioctl(listener, _ANSWER, reply)
    except OSError:  # whoever asked has been killed meanwhile
        return
