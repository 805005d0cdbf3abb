"""``agentic-gym serve``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import tyro

from agentic_gym.tasks import near

__all__ = ["EXAMPLE", "main"]

EXAMPLE = "agentic-gym serve search --corpus corpus.jsonl --port 8000"

SERVICES = {
    "search": "a retriever over a corpus, by the Search-R1 protocol",
    "webshop": "the simulated shop as a web site for people",
}


def main(arguments: Sequence[str]) -> int:
    """Serve something until interrupted. Raises ValueError for an unknown service."""
    name, flags = (arguments[0], list(arguments[1:])) if arguments else ("--help", [])
    if name in ("-h", "--help"):
        lines = "\n".join(f"  {service:<10}{what}" for service, what in SERVICES.items())
        sys.stdout.write(f"usage: agentic-gym serve SERVICE ...\n\n{lines}\n\nExample: {EXAMPLE}\n")
        return 0
    if name == "search":
        from agentic_gym.tools.retrieval.server import ServeSearch, serve

        description = f"{ServeSearch.__doc__}\n\nExample: {EXAMPLE}"
        serve(tyro.cli(ServeSearch, args=flags, prog="agentic-gym serve search", description=description))
        return 0
    if name == "webshop":
        from agentic_gym.envs.webshop.site import serve as serve_shop

        return serve_shop(flags)
    raise ValueError(f"cannot serve {name!r}.{near(name, SERVICES)} The services: {', '.join(SERVICES)}. Example: {EXAMPLE}")
