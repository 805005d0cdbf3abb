"""How a step's role looks on a terminal."""

from __future__ import annotations

from agentic_gym.roles import Role

__all__ = ["role_line"]

_COLOURS = {Role.DECISIVE: 32, Role.EXPLORATION: 36, Role.NO_PROGRESS: 33, Role.REGRESSION: 31}


def role_line(role: Role | None, left: int | None) -> str:
    """The line after a step: its role in colour (ANSI escapes), and how many commands a shortest plan still needs.

    >>> role_line(Role.DECISIVE, 3)
    '\\x1b[32m  D decisive, 3 to go\\x1b[0m'
    """
    if role is None:
        return "  role not known"
    words = role.name.lower().replace("_", " ")
    rest = "" if left is None else f", {left} to go" if left else ", done"
    return f"\x1b[{_COLOURS[role]}m  {role.value} {words}{rest}\x1b[0m"
