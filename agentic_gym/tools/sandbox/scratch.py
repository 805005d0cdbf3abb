"""Scratch directories of hostile code: measured and emptied without recursion and without following links."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import time
from collections.abc import Iterator

_MAX_DEPTH = 64
_FEW = 32
"""Entries that are removed however long that takes."""
_STEP = 64
"""Entries of one directory that are measured at a time."""
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class TooMuch(Exception):
    """There is more to remove than was allowed for."""


def empty(path: str, budget: float = float("inf"), seconds: float = float("inf")) -> None:
    """Remove everything below `path`, however deep, whatever its modes; `path` itself stays.

    Each directory is flattened: its sub-directories are renamed into the top one, so no path gets long and
    nothing recurses. Nobody else may be changing the tree (its owner is dead). Raises OSError on failure, TooMuch
    where there are more than `budget` entries, or more than a few and `seconds` have passed.
    """
    os.chmod(path, 0o700)
    top = os.open(path, _OPEN_DIRECTORY)
    serial = seen = 0
    end = time.monotonic() + seconds

    def allow(entries: int) -> None:
        nonlocal seen
        seen += entries
        if seen > budget or (seen > _FEW and time.monotonic() > end):
            raise TooMuch(path)

    try:
        while names := os.listdir(top):
            for name in names:
                allow(1)
                if not _is_directory(name, top):
                    os.unlink(name, dir_fd=top)
                    continue
                os.chmod(name, 0o700, dir_fd=top)
                inner = os.open(name, _OPEN_DIRECTORY, dir_fd=top)
                try:
                    inside = os.listdir(inner)
                    allow(len(inside))
                    for child in inside:
                        if _is_directory(child, inner):
                            os.chmod(child, 0o700, dir_fd=inner)
                            serial = _lift(child, inner, top, serial)
                        else:
                            os.unlink(child, dir_fd=inner)
                finally:
                    os.close(inner)
                os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)


def mark(path: str) -> None:
    """Set the date of an empty directory so that `untouched` tells whether anything has been in it since."""
    os.utime(path, (0, 0))


def untouched(path: str) -> bool:
    """Whether nothing has been made in the directory since `mark`, at levels where code cannot set dates."""
    return os.stat(path).st_mtime == 0


def remove(path: str) -> None:
    """Remove `path` and everything below it; nothing happens where it does not exist."""
    with contextlib.suppress(FileNotFoundError):
        empty(path)
        os.rmdir(path)


def _is_directory(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _lift(name: str, source: int, top: int, serial: int) -> int:
    """Rename a directory into the top one under a free name; returns the next number to try."""
    while True:
        target = f".lifted-{serial}"
        serial += 1
        try:
            os.stat(target, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            os.rename(name, target, src_dir_fd=source, dst_dir_fd=top)
            return serial


def measure(path: str, max_bytes: int, max_entries: int) -> Iterator[bool]:
    """Go through a tree in small steps; each yields whether it is known to hold more than so many bytes or entries.

    A tree that nests deeper than any honest program's, or cannot be read, is over. The tree may be changing;
    whatever vanishes while it is read is not counted.
    """
    used = entries = 0
    stack = [(path, 0)]
    while stack:
        directory, depth = stack.pop()
        try:
            with os.scandir(directory) as iterator:
                for entry in iterator:
                    entries += 1
                    try:
                        status = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:  # only this one: more may come after it
                        continue
                    used += status.st_blocks * 512
                    if used > max_bytes or entries > max_entries or depth > _MAX_DEPTH:
                        yield True
                        return
                    if stat.S_ISDIR(status.st_mode):
                        stack.append((entry.path, depth + 1))
                    if entries % _STEP == 0:
                        yield False
        except FileNotFoundError:
            pass
        except OSError:  # unreadable, or named too long to be reached: no honest program hides its files
            yield True
            return
        yield False


_PREFIX = "agentic-gym-sandbox-"
_LOCK = ".lock"


def make_base(parent: str) -> str:
    """A private directory for scratch directories, marked as in use; also removes dead sandboxes' ones."""
    for name in os.listdir(parent):
        if name.startswith(_PREFIX):
            _remove_if_abandoned(os.path.join(parent, name))
    base = tempfile.mkdtemp(prefix=_PREFIX, dir=parent)
    lock = os.path.join(base, _LOCK)
    handle = os.open(lock + ".new", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(handle, fcntl.LOCK_EX)  # held until this process ends, however it ends
    os.rename(lock + ".new", lock)
    return base


def _remove_if_abandoned(base: str) -> None:
    """Remove a base of ours whose template has died; leave one that is in use or another user's."""
    with contextlib.suppress(OSError):
        if os.lstat(base).st_uid != os.getuid():
            return
        handle = os.open(os.path.join(base, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(base)
        finally:
            os.close(handle)
