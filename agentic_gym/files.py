"""Files that are whole whatever happens: an interruption, a full disk, a second process; and errors that say what to do.

- ``append_lines``: to a file of lines, all of them or none.
- ``write_text``: a file that is replaced at once.
- ``exclusive``: a folder that one process uses at a time.
- ``reading``: what a file that cannot be read was wanted for; ``read_json``: one that must hold JSON.
- ``explain``: an OSError in plain words.
- ``user_cache``: where what can be made again is kept.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

__all__ = ["CACHE_VARIABLE", "append_lines", "exclusive", "explain", "read_json", "reading", "user_cache", "write_text"]

CACHE_VARIABLE = "AGENTIC_GYM_CACHE"
_BLOCK = 1 << 16


def append_lines(path: Path, data: bytes) -> None:
    """Append ``data``, lines of JSON, or leave the file as it was and raise OSError. Processes take turns.

    A last line that an earlier process was killed over is removed first, so that nothing is ever written on to it.
    """
    with _naming(path), path.open("a+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        tail = _unfinished(file, size)
        if tail and _is_json(tail):  # whole but for its line end: somebody edited the file
            data = b"\n" + data
        elif tail:
            size -= len(tail)
            file.truncate(size)
        left = memoryview(data)
        try:
            while left:
                left = left[file.write(left) :]  # a disk that fills up takes a part
        except BaseException:
            file.truncate(size)
            raise


def _unfinished(file: FileIO, size: int) -> bytes:
    """What stands behind the last line end."""
    start, tail = size, b""
    while start and b"\n" not in tail:
        start = max(0, start - _BLOCK)
        file.seek(start)
        tail = file.read(min(_BLOCK, size - len(tail) - start)) + tail
    return tail[tail.rfind(b"\n") + 1 :]


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def write_text(path: Path, text: str) -> None:
    """Write ``text`` as UTF-8 so that ``path`` holds the old content or the new, never a part; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with _naming(path):
        try:
            partial.write_text(text, encoding="utf-8")
            partial.replace(path)
        except BaseException:
            with suppress(OSError):
                partial.unlink(missing_ok=True)
            raise


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Keep other processes out of ``folder`` (made where absent), by a lock that ends with this process however it ends.

    Raises RuntimeError when another process is in it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RuntimeError(
                f"another process is writing to {folder}: wait until it ends, or choose another output folder"
            ) from None
        yield


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Inside it, an OSError is one about ``path``: a failed write (a full disk) does not tell its file, and a partial is ours."""
    try:
        yield
    except OSError as error:
        if error.errno is not None:
            error.filename = str(path)
        raise


@contextmanager
def reading(path: Path, what: str, *, fix: str) -> Iterator[None]:
    """Inside it, an OSError says that ``path`` was to be read as a ``what``, and the ``fix``; its type stays.

    >>> with reading(Path("run.yaml"), "configuration file", fix="give a YAML file"):
    ...     text = Path("run.yaml").read_text()
    Traceback (most recent call last):
    FileNotFoundError: there is no configuration file at run.yaml: give a YAML file
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            text = f"there is no {what} at {path}: {fix}"
        elif error.errno == errno.EISDIR:
            text = f"{path} is a folder, not a {what}: {fix}"
        elif error.errno in (errno.EACCES, errno.EPERM):
            text = f"{path} may not be read: change its permissions, or {fix}"
        else:
            text = f"{path} cannot be read as a {what} ({error.strerror or error}): {fix}"
        raise type(error)(text) from error


def read_json(path: Path, what: str, *, fix: str) -> Any:
    """The JSON in ``path``. Raises OSError as ``reading`` does, and ValueError when it is cut off or is no JSON."""
    with reading(path, what, fix=fix):
        data = path.read_bytes()
    try:
        return json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no whole {what} ({error}): {fix}") from error


_REASONS = {
    errno.ENOENT: "there is no such file or folder; check the path",
    errno.ENOTDIR: "a part of the path is a file, not a folder; choose another path",
    errno.EISDIR: "it is a folder, not a file; choose another path",
    errno.EEXIST: "a file of that name stands where a folder is needed; choose another path",
    errno.EACCES: "permission denied; change its permissions, or choose another path",
    errno.EPERM: "permission denied; change its permissions, or choose another path",
    errno.EROFS: "its disk can only be read; choose a path on another",
    errno.ENOSPC: "the disk is full; free space, or choose a path on another",
    errno.EDQUOT: "your share of the disk is used up; free space, or choose a path on another",
    errno.ENAMETOOLONG: "the name is too long; choose another path",
}


def explain(error: OSError) -> str:
    """One sentence for a person: which path, why, and what to do.

    >>> explain(PermissionError(errno.EACCES, "Permission denied", "/data"))
    '/data: permission denied; change its permissions, or choose another path'
    """
    if error.errno is None:
        return str(error)  # made with a text of its own
    reason = _REASONS.get(error.errno, (error.strerror or str(error)).lower())
    return reason if error.filename is None else f"{os.fsdecode(error.filename)}: {reason}"


def user_cache() -> Path:
    """``$AGENTIC_GYM_CACHE``, else ``agentic-gym`` in the user's cache folder. Not created here.

    That is ``$XDG_CACHE_HOME`` or ``~/.cache``; on macOS ``~/Library/Caches``.
    """
    if explicit := os.environ.get(CACHE_VARIABLE):
        return Path(explicit).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "agentic-gym"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentic-gym"
