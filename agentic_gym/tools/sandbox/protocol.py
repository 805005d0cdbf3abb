"""Messages between the caller, the supervisor, the slots and their children: small JSON records with file descriptors."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import struct
import sys
import tempfile
from collections.abc import Sequence
from typing import Any, NamedTuple

KIND = socket.SOCK_SEQPACKET if sys.platform == "linux" else socket.SOCK_DGRAM
"""Keeps message boundaries, so that many threads may send on one socket."""
MAX_MESSAGE = 65536

READY, MEMORY, REFUSED = b"R", b"M", b"E"
"""Child to supervisor: user code starts now; it ended by MemoryError; setting up failed (text follows)."""
WAITING, ENDED, LISTENER = b"W", b"X", b"L"
"""Slot to supervisor: a child waits; it has ended; here is where its requests for threads arrive."""
CELL_OK, CELL_ERROR = b"0", b"1"
"""Child to caller, in a session: how a cell ended (or MEMORY); the number of the cell follows."""
KILL_OUTPUT, KILL_TIMEOUT, INTERRUPT = b"O", b"T", b"I"
"""Caller to supervisor, on a call's own socket. Closing that socket ends the run."""


class Work(NamedTuple):
    """What a child is told beside the descriptors [code or cells, stdout, stderr, stdin if there is any]."""

    cpu: float
    """CPU seconds."""
    session: bool
    binary: bool
    """The code is bytes with a coding of their own, not text."""
    echo: bool
    seeded: bool
    seed: int
    """Meaningful with `seeded`; 64 bits, unsigned."""


_WORK = struct.Struct("=d????Q")
_WORK_DESCRIPTORS = 4
_EVERY_SEAL = 0xF
"""No more seals, no shrinking, no growing, no writing."""


def pair() -> tuple[socket.socket, socket.socket]:
    """Two connected sockets that keep message boundaries."""
    return socket.socketpair(socket.AF_UNIX, KIND)


def send(channel: socket.socket, message: dict[str, Any], descriptors: Sequence[int] = ()) -> None:
    """Send one record and copies of the descriptors; raise OSError when the other end is gone."""
    data = json.dumps(message).encode()
    if descriptors:
        socket.send_fds(channel, [data], list(descriptors))
    else:
        channel.send(data)


def receive(channel: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """One record and its descriptors; (None, []) at the end of the stream."""
    data, descriptors, _, _ = socket.recv_fds(channel, MAX_MESSAGE, 8)
    if not data:
        return None, descriptors
    message: dict[str, Any] = json.loads(data)
    return message, descriptors


def send_work(channel: socket.socket, work: Work, descriptors: Sequence[int]) -> None:
    """Give a child its work; raise OSError when it is gone."""
    socket.send_fds(channel, [_WORK.pack(*work)], list(descriptors))


def receive_work(channel: socket.socket) -> tuple[Work, list[int]] | None:
    """Wait for work; None when none will come."""
    data, ancillary, _, _ = channel.recvmsg(_WORK.size, socket.CMSG_SPACE(4 * _WORK_DESCRIPTORS))
    if not data:
        return None
    descriptors = struct.unpack(f"{len(ancillary[0][2]) // 4}i", ancillary[0][2])
    return Work(*_WORK.unpack(data)), list(descriptors)


def cell_reply(word: bytes, serial: int) -> bytes:
    """The message that ends a cell; its number keeps a late or forged one from standing for another cell's."""
    return word + b"%d" % serial


def anonymous_file(data: bytes) -> int:
    """A descriptor of a nameless file with this content, read from the start; nobody can change or grow it."""
    if sealed := hasattr(os, "memfd_create"):
        handle = os.memfd_create("agentic-gym", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        with tempfile.TemporaryFile() as file:
            handle = os.dup(file.fileno())
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
    if sealed:  # its memory is counted nowhere, so the code must not be able to fill it
        fcntl.fcntl(handle, fcntl.F_ADD_SEALS, _EVERY_SEAL)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle
