"""``agentic-gym serve``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TypeVar

import tyro

from agentic_gym.tasks import near

__all__ = ["EXAMPLE", "main"]

T = TypeVar("T")

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

        serve(_options(ServeSearch, flags, "search", EXAMPLE))
        return 0
    if name == "webshop":
        from agentic_gym.envs.webshop.site import ServeShop
        from agentic_gym.envs.webshop.site import serve as serve_shop

        serve_shop(_options(ServeShop, flags, "webshop", "agentic-gym serve webshop --products 200 --port 3000"))
        return 0
    raise ValueError(f"cannot serve {name!r}.{near(name, SERVICES)} The services: {', '.join(SERVICES)}. Example: {EXAMPLE}")


def _options(cls: type[T], flags: Sequence[str], service: str, example: str) -> T:
    description = f"{cls.__doc__}\n\nExample: {example}"
    return tyro.cli(cls, args=flags, prog=f"agentic-gym serve {service}", description=description)
