"""Private user, mount, process, network and IPC namespaces, and a root that holds the libraries and nothing else."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import tempfile
from collections.abc import Iterable
from pathlib import Path

from agentic_gym.tools.sandbox import kernel

_NEWNS, _NEWUTS, _NEWIPC, _NEWUSER, _NEWPID, _NEWNET = (
    0x00020000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000,
)  # fmt: skip
_NOSUID, _NODEV = 2, 4
_BIND, _REC, _PRIVATE = 4096, 16384, 1 << 18
_DETACH = 2
_AT_RECURSIVE, _AT_FDCWD = 0x8000, -100
_ATTR_RDONLY, _ATTR_NOSUID = 1, 2

DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
SCRATCH = "/tmp"
"""Where a run sees its scratch directory, under its private root."""
_SLOTS = "/slots"
_ROOT = "/root"
_SETTINGS = "/proc/sys"
_SWITCHES = {
    "user.max_user_namespaces": "0",
    "kernel.unprivileged_userns_clone": "0",
    "kernel.apparmor_restrict_unprivileged_userns": "1",
}
"""Settings of the machine with the values that take user namespaces away."""


def enter() -> int:
    """Move into fresh namespaces; returns in a new process, the first of the process namespace.

    The calling process becomes a guardian: it only waits and exits as the new one does. Returns the
    guardian's id as seen from outside. Raises OSError where the kernel does not allow user namespaces.
    """
    user, group, guardian = os.getuid(), os.getgid(), os.getpid()
    try:
        kernel.call("unshare", _NEWUSER | _NEWNS | _NEWPID | _NEWNET | _NEWIPC | _NEWUTS)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}{_switched_off()}") from error
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    socket.sethostname("sandbox")
    inner = os.fork()
    if inner == 0:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
        return guardian
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    _, status = os.waitpid(inner, 0)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _switched_off() -> str:
    """Which settings forbid user namespaces, to be put behind a message; "" for none."""
    found = []
    for name, value in _SWITCHES.items():
        with contextlib.suppress(OSError):
            if Path(_SETTINGS, *name.split(".")).read_text().strip() == value:
                found.append(f"{name} is {value}")
    return f" ({', '.join(found)})" if found else ""


def build_root(readable: Iterable[str]) -> None:
    """Replace the file system by one with the `readable` trees (read-only), four devices and room for slots.

    Raises OSError when a mount is refused.
    """
    paths = [Path(p) for p in readable]
    kernel.call("mount", None, b"/", None, _REC | _PRIVATE, None)
    stage = _staging_point(paths)
    _tmpfs(stage, "size=1m,mode=755")
    root = stage + _ROOT
    os.mkdir(root)
    os.mkdir(stage + _SLOTS)
    _tmpfs(root, "size=1m,mode=755")
    os.mkdir(root + SCRATCH)
    for path in paths:
        _show(path, root)
    for device in DEVICES:
        target = Path(root + device)
        target.parent.mkdir(exist_ok=True)
        target.touch()
        kernel.call("mount", device.encode(), str(target).encode(), None, _BIND, None)
    attributes = struct.pack("=QQQQ", _ATTR_RDONLY | _ATTR_NOSUID, 0, 0, 0)
    kernel.syscall(kernel.SYS_MOUNT_SETATTR, _AT_FDCWD, root.encode(), _AT_RECURSIVE, attributes, 32)
    os.chdir(stage)
    kernel.syscall(kernel.SYS_PIVOT_ROOT, b".", b".")
    kernel.call("umount2", b".", _DETACH)
    os.chdir("/")


def make_slot(index: int, size_mb: int, files: int) -> str:
    """A private root for one run at a time, with a scratch directory of fixed size; returns its path."""
    slot = f"{_SLOTS}/{index}"
    os.mkdir(slot)
    kernel.call("mount", _ROOT.encode(), slot.encode(), None, _BIND | _REC, None)
    _tmpfs(slot + SCRATCH, f"size={size_mb}m,nr_inodes={files},mode=700")
    return slot


def drop_slot(slot: str) -> None:
    """Take a slot away with all that is in its scratch directory, however much that is."""
    kernel.call("umount2", slot.encode(), _DETACH)
    os.rmdir(slot)


def _tmpfs(path: str, options: str) -> None:
    kernel.call("mount", b"tmpfs", path.encode(), b"tmpfs", _NOSUID | _NODEV, options.encode())


def _staging_point(paths: list[Path]) -> str:
    """An existing directory that hides none of `paths` when something is mounted over it."""
    for candidate in (tempfile.gettempdir(), "/mnt", "/srv", "/media", "/proc"):
        directory = Path(candidate).resolve()
        if directory.is_dir() and not any(p.resolve().is_relative_to(directory) for p in paths):
            return str(directory)
    raise OSError("no directory to build the private root on")


def _show(path: Path, root: str) -> None:
    """Make `path` visible below `root`: its symbolic links are copied as links, its target is bound."""
    walked = Path("/")
    for index, part in enumerate(path.parts[1:], start=2):
        walked /= part
        if walked.is_symlink():
            copy = Path(root + str(walked))
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not copy.is_symlink():
                copy.symlink_to(os.readlink(walked))
            target = Path(os.path.normpath(walked.parent / os.readlink(walked)))
            _show(target.joinpath(*path.parts[index:]), root)
            return
    if not path.exists():
        return
    target = Path(root + str(path))
    if target.exists() and os.stat(target).st_dev == os.stat(path).st_dev:
        return  # inside a tree that is shown already
    if path.is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    kernel.call("mount", str(path).encode(), str(target).encode(), None, _BIND | _REC, None)
