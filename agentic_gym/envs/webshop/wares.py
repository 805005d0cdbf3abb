"""The vocabulary of the generated shop, read from ``wares.yaml``: departments, kinds of products, words that describe them.

A star marks the nouns of a phrase, so that the generator knows the nouns of every title it composes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

__all__ = ["Department", "Kind", "Wares", "load_wares", "nouns", "plain"]


def plain(phrase: str) -> str:
    """A phrase without its marks.

    >>> plain("long *sleeve"), nouns("long *sleeve")
    ('long sleeve', ['sleeve'])
    """
    return phrase.replace("*", "")


def nouns(phrase: str) -> list[str]:
    """The marked words of a phrase, in lower case."""
    return [word[1:].strip(",").lower() for word in phrase.split() if word.startswith("*")]


@dataclass(frozen=True)
class Kind:
    """A kind of product: what a customer would search for."""

    query: str
    """Plural, as the shop's ``query`` field has it."""
    path: tuple[str, ...]
    """The steps of ``product_category`` below the department."""
    head: str
    """What a title calls one of them."""
    dollars: float
    """Median price."""
    groups: tuple[str, ...]
    """Names of its option groups."""


@dataclass(frozen=True)
class Department:
    """A department of the shop: one ``category``."""

    category: str
    path: str
    share: int
    """Percent of the products."""
    adjectives: tuple[str, ...]
    attributes: tuple[str, ...]
    purposes: tuple[str, ...]
    narrowings: tuple[str, ...]
    """Words that split a kind into narrower ones in large shops."""
    kinds: tuple[Kind, ...]
    options: Mapping[str, tuple[tuple[str, ...], ...]]
    """Option group -> families of values; a product takes its values from one family."""


@dataclass(frozen=True)
class Wares:
    """All that the generator knows."""

    departments: tuple[Department, ...]
    awkward_values: tuple[str, ...]
    """Option values that the shop's rules trip over; never in a synthetic goal."""


def _split(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(","))


def _kind(line: str) -> Kind:
    query, path, head, dollars, groups = (cell.strip() for cell in line.split("|"))
    names = tuple(name.replace("_", " ") for name in groups.split())
    return Kind(query, tuple(path.split(" > ")), head, float(dollars), names)


def _department(entry: Mapping[str, Any], colours: str) -> Department:
    options = {
        group: tuple(_split(colours if family == "colours" else family) for family in families)
        for group, families in entry["options"].items()
    }
    return Department(
        category=entry["category"],
        path=entry["path"],
        share=entry["share"],
        adjectives=_split(entry["adjectives"]),
        attributes=_split(entry["attributes"]),
        purposes=_split(entry["purposes"]),
        narrowings=_split(entry["narrowings"]),
        kinds=tuple(_kind(line) for line in entry["kinds"].splitlines()),
        options=options,
    )


@lru_cache(maxsize=1)
def load_wares() -> Wares:
    """The vocabulary of the package."""
    import yaml

    text = resources.files(__package__).joinpath("wares.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    departments = tuple(_department(entry, content["colours"]) for entry in content["departments"])
    return Wares(departments, _split(content["awkward_values"]))
