"""System calls that Python's standard library lacks, through ctypes; numbers for x86_64 and aarch64."""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys

MACHINE = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}.get(
    platform.machine().lower(), ""
)
"""The syscall table in use: "x86_64", "aarch64", or "" where there is none."""

_X86 = MACHINE == "x86_64"
SYS_SECCOMP = 317 if _X86 else 277
SYS_PIVOT_ROOT = 155 if _X86 else 41
SYS_CAPSET = 126 if _X86 else 91
SYS_MOUNT_SETATTR = 442
SYS_LANDLOCK_CREATE_RULESET = 444
SYS_LANDLOCK_ADD_RULE = 445
SYS_LANDLOCK_RESTRICT_SELF = 446

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

LARGE_PAGE = 2 * 2**20
_MADV_COLLAPSE = 25

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_with_lock = ctypes.PyDLL(None, use_errno=True)


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call and return its value; raise OSError where the kernel refuses it."""
    # A bare int would be passed as a C int: the upper half of a 64-bit register would be undefined.
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    value: int = _libc.syscall(ctypes.c_long(number), *wide)
    if value == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return value


def prctl(option: int, value: int = 0) -> None:
    """Call prctl(option, value, 0, 0, 0); raise OSError on refusal."""
    zero = ctypes.c_ulong(0)
    if _libc.prctl(ctypes.c_int(option), ctypes.c_ulong(value), zero, zero, zero) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


def fork() -> int:
    """fork() without the interpreter's at-fork handlers, which would write to hundreds of shared pages.

    Only for a process with one thread: then no lock can be held by a thread that the copy lacks, which is what the
    handlers repair. Random generators are not re-seeded. Where libc cannot be trusted with this, os.fork().
    """
    if sys.platform != "linux":
        return os.fork()
    pid: int = _with_lock.fork()
    if pid < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return pid


def collapse(start: int, end: int) -> None:
    """Put the memory between two addresses in large pages, as far as the kernel can (Linux 6.1); else do nothing."""
    start, end = -(-start // LARGE_PAGE) * LARGE_PAGE, end // LARGE_PAGE * LARGE_PAGE
    for address in range(start, end, LARGE_PAGE):
        _libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(LARGE_PAGE), _MADV_COLLAPSE)


def call(name: str, *arguments: int | bytes | None) -> None:
    """Call a libc function that returns 0 on success (mount, unshare ...); raise OSError otherwise."""
    wide = [ctypes.c_ulong(a) if isinstance(a, int) else a for a in arguments]
    if getattr(_libc, name)(*wide) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


def drop_capabilities(*, bounding: bool) -> None:
    """Give up every capability for good (the bounding set too, so that no later exec regains one)."""
    if bounding:
        for capability in range(64):
            try:
                prctl(PR_CAPBSET_DROP, capability)
            except OSError:  # EINVAL: past the last one; EPERM: we hold no CAP_SETPCAP, so nothing to drop
                break
    header = struct.pack("=Ii", 0x20080522, 0)
    syscall(SYS_CAPSET, header, bytes(24))
