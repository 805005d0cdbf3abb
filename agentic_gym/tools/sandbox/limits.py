"""What one run may use, and how a child puts the kernel's limits on itself and reads them back."""

from __future__ import annotations

import contextlib
import math
import resource
import sys
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Limits:
    """Resources of one run. A run that goes over one is ended and its status says which."""

    wall: float = 5.0
    """Seconds from start to kill; `execute(timeout=...)` overrides it."""
    memory_mb: int = 512
    """Address space on top of what the preloaded interpreter already maps."""
    output_kb: int = 64
    """Bytes kept of stdout, and as many of stderr; the head is kept."""
    scratch_mb: int = 64
    """Size of the scratch directory."""
    scratch_files: int = 2000
    """Files and directories in the scratch directory."""
    file_mb: int = 32
    """Size of one file."""
    open_files: int = 64
    """Open file descriptors."""
    threads: int = 16
    """Threads alive at once, the main one included."""
    cpu_margin: float = 1.0
    """CPU seconds allowed on top of `wall` (threads may burn CPU faster than the clock runs)."""
    session_cpu: float = 600.0
    """CPU seconds of a whole session."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
                raise ValueError(f"Limits.{field.name} must be a positive number, got {value!r}")

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dict."""
        return asdict(self)


class LimitError(RuntimeError):
    """A limit could not be set, or reads back as something else: the run is refused."""


def fixed_rlimits(limits: Limits, baseline_bytes: int) -> dict[int, tuple[int, int]]:
    """The (soft, hard) pair of every rlimit that a slot and its children share."""
    address_space = baseline_bytes + limits.memory_mb * 2**20
    values = {
        resource.RLIMIT_FSIZE: limits.file_mb * 2**20,
        resource.RLIMIT_CORE: 0,
    }
    if sys.platform == "linux":
        values[resource.RLIMIT_AS] = address_space
        values[resource.RLIMIT_MEMLOCK] = 0
        values[resource.RLIMIT_MSGQUEUE] = 0
        values[resource.RLIMIT_SIGPENDING] = 256
        values[resource.RLIMIT_NICE] = 0
        values[resource.RLIMIT_RTPRIO] = 0
    return {which: (value, value) for which, value in values.items()}


def last_rlimits(limits: Limits, cpu: float) -> dict[int, tuple[int, int]]:
    """The pairs that only a child gets: descriptors, which its slot has to pass on, and CPU time in whole seconds.

    Soft equals hard, so that the kernel kills and no handler runs.
    """
    whole = max(1, math.ceil(cpu))
    return {
        resource.RLIMIT_NOFILE: (limits.open_files, limits.open_files),
        resource.RLIMIT_CPU: (whole, whole),
    }


def raise_open_files() -> None:
    """Allow this process as many descriptors as it may allow itself.

    The kernel refuses to pass one on when the user has more under way, in all programs, than the sender may have open.
    """
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with contextlib.suppress(OSError, ValueError):  # macOS says "unlimited" and takes less
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def apply(rlimits: dict[int, tuple[int, int]]) -> None:
    """Set the limits on this process. Where a hard limit is already lower, the lower one stays."""
    for which, (soft, hard) in rlimits.items():
        ceiling = resource.getrlimit(which)[1]
        if ceiling != resource.RLIM_INFINITY:
            soft, hard = min(soft, ceiling), min(hard, ceiling)
        try:
            resource.setrlimit(which, (soft, hard))
        except (OSError, ValueError) as error:
            raise LimitError(f"rlimit {which} cannot be set to {hard}: {error}") from error


def verify(rlimits: dict[int, tuple[int, int]]) -> None:
    """Read the limits back; raise LimitError for one that is not at or below what was asked."""
    for which, (_, hard) in rlimits.items():
        found = resource.getrlimit(which)
        if any(value == resource.RLIM_INFINITY or value > hard for value in found):
            raise LimitError(f"rlimit {which} reads back as {found}, wanted at most {hard}")
