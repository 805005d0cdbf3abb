"""``agentic-gym list``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from agentic_gym import ENVIRONMENTS

EXAMPLE = "agentic-gym list"


def run() -> int:
    """Show the environments of this package: their ids and what they are."""
    table = Table("environment", "what it is", box=None, pad_edge=False)
    for env_id, (_, summary) in ENVIRONMENTS.items():
        table.add_row(env_id, summary)
    Console().print(table)
    return 0
