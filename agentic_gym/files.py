"""Files that are whole whatever happens: an interruption, a full disk, a second process.

- ``append_lines``: to a file of lines, all of them or none.
- ``write_text``: a file that is replaced at once.
- ``exclusive``: a folder that one process uses at a time.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

__all__ = ["append_lines", "exclusive", "write_text"]

_BLOCK = 1 << 16


def append_lines(path: Path, data: bytes) -> None:
    """Append ``data``, lines of JSON, or leave the file as it was and raise OSError. Processes take turns.

    A last line that an earlier process was killed over is removed first, so that nothing is ever written on to it.
    """
    with path.open("a+b", buffering=0) as file:
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
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except BaseException:
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
