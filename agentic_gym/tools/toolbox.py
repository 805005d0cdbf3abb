"""What a tool is to an environment."""

from __future__ import annotations

from typing import Protocol

__all__ = ["Tool", "ToolReply"]


class ToolReply(Protocol):
    """The result of one call."""

    @property
    def status(self) -> str:
        """``ok``, ``raised`` (it ran and reports an error: feedback) or ``unavailable`` (infrastructure failed)."""
        ...

    @property
    def text(self) -> str:
        """What the agent reads inside ``<result>``. The environment makes tags in it harmless."""
        ...

    @property
    def seconds(self) -> float:
        """Wall time of the call."""
        ...


class Tool(Protocol):
    """A named function from text to text. ``run`` is called from several threads at once."""

    @property
    def name(self) -> str:
        """The tag of the grammar that calls it."""
        ...

    @property
    def description(self) -> str:
        """One sentence for the instructions: what it does and how to call it."""
        ...

    def run(self, argument: str) -> ToolReply:
        """Execute one call. Never raises for anything that ``argument`` holds."""
        ...
