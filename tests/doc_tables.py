"""Reading the tables of the pages, so that tests can hold them against the code."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["table"]


def table(page: Path, heading: str, which: int = 0) -> list[dict[str, str]]:
    """Rows of the table number ``which`` under ``heading``, by the names of its columns, without backticks around a whole cell.

    The first column can also be had as "column 1", since a heading may hold anything.
    """
    text = page.read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)$", text, flags=re.MULTILINE)
    bodies = dict(zip(parts[1::2], parts[2::2], strict=True))
    if heading not in bodies:
        raise KeyError(f"{page.name} has no heading {heading!r}")
    tables = re.findall(r"(?:^\|.*\n)+", bodies[heading], flags=re.MULTILINE)
    lines = tables[which].splitlines()
    names, rows = cells(lines[0]), [cells(line) for line in lines[2:]]
    return [{"column 1": row[0], **dict(zip(names, row, strict=True))} for row in rows]


def cells(line: str) -> list[str]:
    """The cells of a row; ``\\|`` is no border."""
    found = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    return [re.sub(r"^`([^`]*)`$", r"\1", cell).replace("\\|", "|") for cell in found]
