"""The system-call filter: a small BPF assembler, the policy, and its installation.

Filters stack; the strictest answer counts. A slot puts on the first: what is not on the list of `syscall_table` is
refused, but it may still fork. Another holds new threads for the supervisor to count. The last, a few instructions, is
put on by a child when its limits are in place: it closes fork and the calls that could change limits, and ties
signals to the child's own process id.

What the policy leaves out, and why it matters:

- fork, exec: no new processes, so no fork bombs, no daemons, nothing left to reap;
- socket, connect, bind, and socketpair of datagrams (a datagram pair can be re-addressed to any unix socket);
- F_SETOWN and F_SETSIG (would make the kernel signal any process of the same user), kill of others;
- setpriority, sched_setaffinity, prlimit (would reach other processes of the same user);
- chmod, utime, chown, setxattr (Landlock does not guard them), ioctl beyond terminal queries;
- memfd_create, shmget, mq_open, add_key: memory outside every limit, or outliving the process;
- setsockopt: buffers of sockets, which no limit counts, could be made as large as the machine allows;
- fallocate and O_TMPFILE, but under a private root: the first takes a whole disk in one call, the second makes files
  that leave no trace in any directory;
- sendmsg, threads with descriptors of their own: would hide open, deleted files from the count of disk space;
- O_TRUNC on a read-only open (truncates without the write right, on kernels before Landlock ABI 3);
- the access mode 3, which gives neither reading nor writing: Landlock lets it open any file, where O_TRUNC still cuts
  (before ABI 3) and a device's driver still acts.
"""

from __future__ import annotations

import ctypes
import errno
import struct

from agentic_gym.tools.sandbox import kernel
from agentic_gym.tools.sandbox import syscall_table as table

_LOAD, _JUMP, _EQUAL, _GREATER_EQUAL, _AND, _RETURN = 0x20, 0x05, 0x15, 0x35, 0x54, 0x06
_ANY_BIT = 0x45
_NUMBER_AT, _ARCH_AT, _ARGUMENTS_AT = 0, 4, 16

_ALLOW = 0x7FFF0000
_KILL_PROCESS = 0x80000000
_NOTIFY = 0x7FC00000
_ERRNO = 0x00050000
_EPERM = _ERRNO | errno.EPERM
_ENOSYS = _ERRNO | errno.ENOSYS
_EOPNOTSUPP = _ERRNO | errno.EOPNOTSUPP

_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SET_MODE_FILTER = 1
_FLAG_NEW_LISTENER = 1 << 3

_CLONE_THREAD, _CLONE_FILES = 0x10000, 0x400
_CLOSE_RANGE_UNSHARE = 2
_CLONE_FORBIDDEN = 0x7E020000 | 0x80 | 0x1000  # every CLONE_NEW*, CLONE_PIDFD
_PRCTL_ALLOWED = (1, 3, 15, 16, 23, 0x53564D41)
"""Die with the parent, read dumpable, set and get the name, read a capability, name a mapping."""
_FCNTL_ALLOWED = (0, 1, 2, 3, 4, 5, 6, 7, 36, 37, 38, 1030, 1032)  # dup, flags, locks, size of a pipe
_IOCTL_ALLOWED = (0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)  # terminal?, unread bytes, flags
_AF_UNIX, _SOCK_STREAM = 1, 1
_SOCK_CONNECTED_MASK = 0xB
"""Of a socket type, leaves SOCK_STREAM for SOCK_STREAM and SOCK_SEQPACKET, and for no other."""
_OPEN_CONSTANT = 0x5EA1F111  # stands for the process id until it is known
_READ_ONLY_TRUNCATE, _OPEN_MASK, _ACCESS_MODE, _TMPFILE = 0o1000, 0o1003, 3, 0o20000000

Instruction = tuple[int, int, int, int]


class Filter:
    """A program in memory, ready to be put on this process; needs no_new_privs."""

    def __init__(self, program: bytes, patches: tuple[int, ...] = ()) -> None:
        """`patches` are the byte offsets of the constants that `set` replaces."""
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._patches = patches
        self._header = struct.pack("@HP", len(program) // 8, ctypes.addressof(self._buffer))

    def set(self, value: int) -> None:
        """Replace the constant that was left open."""
        for offset in self._patches:
            struct.pack_into("=I", self._buffer, offset, value)

    def install(self, *, listener: bool = False) -> int:
        """Put it on. Returns the notification descriptor with `listener`, else 0; raises OSError on refusal."""
        flags = _FLAG_NEW_LISTENER if listener else 0
        return kernel.syscall(kernel.SYS_SECCOMP, _SET_MODE_FILTER, flags, self._header)


def run_filter(*, private: bool, truncate: bool) -> Filter:
    """The first filter. `truncate` opens truncation by path; `private` what needs a root and a disk of one's own."""
    actions: dict[int, str] = dict.fromkeys(table.ALWAYS.values(), "allow")
    actions |= dict.fromkeys((table.LATER | table.SIGNALS | table.SENDMSG).values(), "allow")
    actions |= {number: name for name, number in table.ARGUMENTS_MATTER.items()}
    actions |= dict.fromkeys(table.ABSENT.values(), "absent")
    actions |= dict.fromkeys(table.ALLOCATE.values(), "allow" if private else "unsupported")
    if private:
        actions |= dict.fromkeys(table.METADATA.values(), "allow")
    if truncate:
        actions |= dict.fromkeys(table.TRUNCATE.values(), "allow")
    boundaries: list[tuple[int, str]] = [(0, actions.get(0, "deny"))]
    for number in range(1, table.NEWEST + 1):
        action = actions.get(number, "deny")
        if action != boundaries[-1][1]:
            boundaries.append((number, action))
    boundaries.append((table.NEWEST + 1, "absent"))
    blocks = _argument_checks(tmpfile=private)
    blocks["allow"], blocks["deny"], blocks["absent"] = [_ret(_ALLOW)], [_ret(_EPERM)], [_ret(_ENOSYS)]
    blocks["unsupported"] = [_ret(_EOPNOTSUPP)]
    body = [
        (_LOAD, 0, 0, _ARCH_AT),
        (_EQUAL, 1, 0, _AUDIT_ARCH[kernel.MACHINE]),
        _ret(_KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER_AT),
        *_search(boundaries, blocks),
    ]
    return Filter(_encode(body))


def thread_filter() -> Filter:
    """Holds every new thread until a supervisor has said yes (see `children.py`)."""
    body = [
        (_LOAD, 0, 0, _NUMBER_AT),
        (_EQUAL, 0, 3, table.ARGUMENTS_MATTER["clone"]),
        _argument(0),
        (_ANY_BIT, 0, 1, _CLONE_THREAD),
        _ret(_NOTIFY),
        _ret(_ALLOW),
    ]
    return Filter(_encode(body))


def seal_filter() -> Filter:
    """The last filter, to be `set` to its process id: no fork, nobody else's signals, nobody's limits."""
    to_self = [_argument(0), (_EQUAL, 0, 1, _OPEN_CONSTANT), _ret(_ALLOW), _ret(_EPERM)]
    reading = [_argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0)]
    thread = [
        _argument(0), (_AND, 0, 0, _CLONE_THREAD | _CLONE_FILES), (_EQUAL, 0, 1, _CLONE_THREAD | _CLONE_FILES),
        _ret(_ALLOW), _ret(_EPERM),
    ]  # fmt: skip
    attached = [_argument(0), (_EQUAL, 0, 1, kernel.PR_SET_PDEATHSIG), _ret(_EPERM), _ret(_ALLOW)]
    blocks: list[tuple[int, list[Instruction]]] = [(n, to_self) for n in table.SIGNALS.values()]
    blocks.append((table.ARGUMENTS_MATTER["clone"], thread))
    blocks.append((table.ARGUMENTS_MATTER["prctl"], attached))
    blocks.append((table.ARGUMENTS_MATTER["prlimit64"], [*reading, _ret(_ALLOW), _ret(_EPERM)]))
    blocks += [(n, [_ret(_EPERM)]) for n in (table.LATER | table.SETRLIMIT | table.SENDMSG).values()]
    body: list[Instruction] = [(_LOAD, 0, 0, _NUMBER_AT)]
    for number, block in blocks:
        body += [(_EQUAL, 0, len(block), number), *block]
    body.append(_ret(_ALLOW))
    patches = tuple(8 * i + 4 for i, instruction in enumerate(body) if instruction[3] == _OPEN_CONSTANT)
    return Filter(_encode(body), patches)


def _argument_checks(*, tmpfile: bool) -> dict[str, list[Instruction]]:
    """System calls that depend on their arguments: what is loaded, what is compared, what is returned."""
    nameless = [] if tmpfile else [(_ANY_BIT, 0, 1, _TMPFILE), _ret(_EOPNOTSUPP)]
    flags = [
        *nameless,
        (_AND, 0, 0, _OPEN_MASK), (_EQUAL, 2, 0, _READ_ONLY_TRUNCATE),
        (_AND, 0, 0, _ACCESS_MODE), (_EQUAL, 0, 1, _ACCESS_MODE), _ret(_EPERM), _ret(_ALLOW),
    ]  # fmt: skip
    return {
        "open": [_argument(1), *flags],
        "openat": [_argument(2), *flags],
        "sendto": [
            _argument(4), (_EQUAL, 0, 3, 0), _argument(4, high=True), (_EQUAL, 0, 1, 0),
            _ret(_ALLOW), _ret(_EPERM),
        ],
        "socketpair": [
            _argument(0), (_EQUAL, 0, 4, _AF_UNIX),
            _argument(1), (_AND, 0, 0, _SOCK_CONNECTED_MASK), (_EQUAL, 0, 1, _SOCK_STREAM),
            _ret(_ALLOW), _ret(_EPERM),
        ],
        "clone": [_argument(0), (_ANY_BIT, 0, 1, _CLONE_FORBIDDEN), _ret(_EPERM), _ret(_ALLOW)],
        "prlimit64": [_argument(0), (_EQUAL, 0, 1, 0), _ret(_ALLOW), _ret(_EPERM)],
        "close_range": [_argument(2), (_ANY_BIT, 0, 1, _CLOSE_RANGE_UNSHARE), _ret(_EPERM), _ret(_ALLOW)],
        "ioctl": _one_of(1, _IOCTL_ALLOWED),
        "fcntl": _one_of(1, _FCNTL_ALLOWED),
        "prctl": _one_of(0, _PRCTL_ALLOWED),
    }  # fmt: skip


def _one_of(index: int, values: tuple[int, ...]) -> list[Instruction]:
    tests = [(_EQUAL, len(values) - i, 0, value) for i, value in enumerate(values)]
    return [_argument(index), *tests, _ret(_EPERM), _ret(_ALLOW)]


def _argument(index: int, *, high: bool = False) -> Instruction:
    """Load one 32-bit half of a system-call argument (both machines are little-endian)."""
    return (_LOAD, 0, 0, _ARGUMENTS_AT + 8 * index + (4 if high else 0))


def _ret(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)


def _search(boundaries: list[tuple[int, str]], blocks: dict[str, list[Instruction]]) -> list[Instruction]:
    """A binary search over [start, next start) ranges of system-call numbers, each with its block inline."""
    if len(boundaries) == 1:
        return blocks[boundaries[0][1]]
    middle = len(boundaries) // 2
    below = _search(boundaries[:middle], blocks)
    above = _search(boundaries[middle:], blocks)
    start = boundaries[middle][0]
    if len(below) <= 255:
        return [(_GREATER_EQUAL, len(below), 0, start), *below, *above]
    return [(_GREATER_EQUAL, 0, 1, start), (_JUMP, 0, 0, len(below)), *below, *above]


def _encode(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)
