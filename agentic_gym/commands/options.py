"""Flags that stand apart from a typed configuration."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["take_option"]


def take_option(arguments: Sequence[str], name: str) -> tuple[str | None, list[str]]:
    """The value of ``--name VALUE`` or ``--name=VALUE`` (the last one counts, None without), and the other arguments.

    Raises:
        ValueError: the flag is the last argument, without a value.

    Example:
        >>> take_option(["--config", "run.yaml", "--lr", "1"], "--config")
        ('run.yaml', ['--lr', '1'])
    """
    value, rest = None, []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == name:
            value = next(waiting, None)
            if value is None:
                raise ValueError(f"{name} needs a value")
        elif argument.startswith(f"{name}="):
            value = argument.partition("=")[2]
        else:
            rest.append(argument)
    return value, rest
