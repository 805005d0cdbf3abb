"""``agentic-gym serve``."""

from __future__ import annotations

from collections.abc import Sequence

import tyro

from agentic_gym.tools.retrieval.server import ServeSearch, serve

__all__ = ["EXAMPLE", "main"]

EXAMPLE = "agentic-gym serve search --corpus corpus.jsonl --port 8000"


def main(arguments: Sequence[str]) -> int:
    """Serve something until interrupted; ``search`` is what there is. Raises ValueError for anything else."""
    what = arguments[0] if arguments else "--help"
    if what in ("-h", "--help"):
        arguments = ["search", "--help"]
    elif what != "search":
        raise ValueError(f"cannot serve {what!r}: the one service is search. Example: {EXAMPLE}")
    description = f"{ServeSearch.__doc__}\n\nExample: {EXAMPLE}"
    serve(tyro.cli(ServeSearch, args=list(arguments[1:]), prog="agentic-gym serve search", description=description))
    return 0
