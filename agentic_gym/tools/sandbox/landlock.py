"""Landlock: the kernel's file-access rules that a process puts on itself (Linux >= 5.13)."""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Iterable

from agentic_gym.tools.sandbox import kernel

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_FS_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""ABI version to the number of file-access rights it knows."""
_NET_RIGHTS = 0b11  # bind and connect TCP, ABI 4
_SCOPES = 0b11  # abstract unix sockets and signals, ABI 6
_RULE_PATH_BENEATH = 1
_CREATE_RULESET_VERSION = 1
_REASONS = {
    errno.ENOSYS: "this kernel has none (it needs Linux 5.13, built with CONFIG_SECURITY_LANDLOCK)",
    errno.EOPNOTSUPP: "switched off at boot; add 'landlock' to the list in the kernel's lsm= parameter",
}


def abi_version() -> int:
    """The kernel's Landlock ABI; 0 where Landlock is absent or switched off."""
    try:
        return _ask()
    except OSError:
        return 0


def _ask() -> int:
    try:
        return kernel.syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, None, 0, _CREATE_RULESET_VERSION)
    except OSError as error:
        if (reason := _REASONS.get(error.errno or 0)) is None:
            raise
        raise OSError(reason) from error


def restrict(read: Iterable[str], write: Iterable[str], devices: Iterable[str]) -> None:
    """Confine this process: read below `read`, anything below `write`, read and write the `devices`.

    Everything else that Landlock handles is refused from then on, for this process and its children.
    Paths that do not exist are left out. Needs no_new_privs. Raises OSError when the kernel refuses.
    """
    abi = _ask()
    files = (1 << _FS_RIGHTS.get(abi, 16)) - 1
    attributes = struct.pack("=QQQ", files, _NET_RIGHTS, _SCOPES)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    ruleset = kernel.syscall(kernel.SYS_LANDLOCK_CREATE_RULESET, attributes[:size], size, 0)
    try:
        for path in read:
            _allow(ruleset, path, _EXECUTE | _READ_FILE | _READ_DIR)
        for path in write:
            _allow(ruleset, path, files & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV))
        for path in devices:
            _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE) & files)
        kernel.syscall(kernel.SYS_LANDLOCK_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(handle).st_mode):
            rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
        rule = struct.pack("=Qi", rights, handle)
        kernel.syscall(kernel.SYS_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
    finally:
        os.close(handle)
