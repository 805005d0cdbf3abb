"""Looking at the processes of a test, by /proc."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from agentic_gym.benchmarks.speed.python import descendants

READABLE = Path("/proc/self/stat").exists()


def family(root: int) -> set[int]:
    """All descendants of a process."""
    return set(descendants(root))


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
