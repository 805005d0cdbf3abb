"""What one run of code came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal[
    "ok",
    "error",
    "timeout",
    "memory",
    "output_limit",
    "disk_limit",
    "thread_limit",
    "crashed",
    "session_lost",
    "sandbox_error",
]
"""How a run ended.

ok: to its end, or `sys.exit(0)`. error: an exception, or a non-zero exit. timeout, memory, output_limit, disk_limit,
thread_limit: over that limit. crashed: ended by a signal. session_lost: the session was already gone.
sandbox_error: the infrastructure failed; says nothing about the code and must not be scored.
"""


@dataclass(frozen=True)
class Result:
    """One run of code."""

    status: Status
    stdout: str = ""
    stderr: str = ""
    """Undecodable bytes of either are shown as backslash escapes."""
    returncode: int | None = None
    """Exit code; None where a signal ended the run, or nothing ran."""
    signal: int | None = None
    """The signal that ended the run."""
    wall: float = 0.0
    """Seconds from start to end."""
    cpu: float = 0.0
    """CPU seconds, user and system; 0 for a cell of a session."""
    maxrss_kb: int = 0
    """Peak resident memory in KiB, the preloaded libraries included; 0 for a cell of a session."""
    truncated: bool = False
    """Whether stdout or stderr went over the output limit and lost its end."""
    detail: str = ""
    """For sandbox_error: what failed."""
