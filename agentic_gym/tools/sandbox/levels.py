"""The isolation levels: what each needs, and which one a machine can reach."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

LEVELS = ("process", "seccomp", "landlock", "namespaces")
"""From the weakest to the strongest."""


@dataclass(frozen=True)
class Features:
    """What this machine's kernel was seen to enforce, by trying each in a throw-away process."""

    system: str
    """Kernel name, release and machine."""
    seccomp: str = ""
    """Why the system-call filter cannot be used; empty if it can."""
    landlock: str = ""
    """Why Landlock cannot be used; empty if it can."""
    landlock_abi: int = 0
    """Version of the Landlock interface, 0 for none."""
    namespaces: str = ""
    """Why private namespaces cannot be used; empty if they can."""
    notify: str = ""
    """Why new threads cannot be supervised by notification (they are polled then); empty if they can."""
    level: str = ""
    """The level in force; empty when only the machine was asked."""

    def as_dict(self) -> dict[str, Any]:
        """The fields as a plain dict."""
        return asdict(self)

    def obstacle(self, level: str) -> str:
        """Why this machine cannot reach `level`; empty if it can."""
        if level == "process":
            return ""
        if self.seccomp:
            return f"seccomp: {self.seccomp}"
        if level == "landlock" and self.landlock:
            return f"Landlock: {self.landlock}"
        if level == "namespaces" and self.namespaces:
            return f"namespaces: {self.namespaces}"
        return ""


class SandboxUnavailable(RuntimeError):
    """The isolation asked for cannot be reached on this machine."""


def check_names(isolation: str, min_level: str) -> None:
    """Raise ValueError unless both name a level (`isolation` may be "auto")."""
    if isolation not in ("auto", *LEVELS):
        raise ValueError(f"isolation must be 'auto' or one of {', '.join(LEVELS)}; got {isolation!r}")
    if min_level not in LEVELS:
        raise ValueError(f"min_level must be one of {', '.join(LEVELS)}; got {min_level!r}")


def choose(features: Features, isolation: str, min_level: str) -> str:
    """The level to use. Raises SandboxUnavailable below `min_level` or when `isolation` cannot be had."""
    check_names(isolation, min_level)
    if isolation != "auto":
        if LEVELS.index(isolation) < LEVELS.index(min_level):
            raise SandboxUnavailable(
                f"isolation={isolation!r} is below min_level={min_level!r}; "
                f"pass min_level={isolation!r} if the weaker isolation is meant"
            )
        if reason := features.obstacle(isolation):
            raise SandboxUnavailable(f"isolation={isolation!r} cannot be reached: {reason}")
        return isolation
    best = next(level for level in reversed(LEVELS) if not features.obstacle(level))
    if LEVELS.index(best) < LEVELS.index(min_level):
        obstacles = dict.fromkeys(features.obstacle(level) for level in LEVELS[LEVELS.index(min_level) :])
        raise SandboxUnavailable(
            f"this machine reaches isolation {best!r}, below min_level={min_level!r} "
            f"({'; '.join(obstacles)}); pass min_level={best!r} to accept it, or run the code "
            "elsewhere with RemoteSandbox(url)"
        )
    return best
