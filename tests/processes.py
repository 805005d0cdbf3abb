"""Looking at the processes of a test, by /proc."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

READABLE = Path("/proc/self/stat").exists()


def family(root: int) -> set[int]:
    """All descendants of a process."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return set(found[1:])


def alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return (Path("/proc") / str(pid) / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def eventually(condition: Callable[[], object], seconds: float) -> bool:
    """Whether ``condition`` becomes true within so many seconds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return bool(condition())
