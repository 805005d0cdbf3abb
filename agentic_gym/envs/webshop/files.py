"""Finding and reading the files of a shop."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_gym.envs.webshop.products import CatalogueError, read_json

__all__ = ["ShopContent", "ShopFiles", "find_files"]

_PRODUCTS = "items_shuffle"
_ATTRIBUTES = "items_ins_v2"
_HUMAN = "items_human_ins"
_NOUNS = "title_nouns"
_SIZES = ("_1000", "")  # the original's default is its small set
_HOW_TO = (
    "place items_shuffle_1000.json (or items_shuffle.json), items_ins_v2_1000.json (or items_ins_v2.json) and, for human goals, "
    "items_human_ins.json there; .json.gz will do"
)


@dataclass(frozen=True)
class ShopContent:
    """The parsed files of a shop, in the official schemas."""

    products: Sequence[Mapping[str, Any]]
    attributes: Mapping[str, Any]
    human: Mapping[str, Any] | None
    nouns: Mapping[str, Sequence[str]] | None
    """The sidecar of the reward: asin -> lower-case nouns of the title."""


@dataclass(frozen=True)
class ShopFiles:
    """The paths of a shop's files and a fingerprint of their state, so that changed files are read anew."""

    products: Path
    attributes: Path
    human: Path | None
    nouns: Path | None
    fingerprint: tuple[tuple[int, int], ...]

    def read(self) -> ShopContent:
        """The content of all files. Raises CatalogueError for a broken one."""
        human = None if self.human is None else _dictionary(self.human)
        nouns = None if self.nouns is None else _dictionary(self.nouns)
        products = read_json(self.products)
        if not isinstance(products, list):
            raise CatalogueError(f"{self.products} must hold a list of products, got {type(products).__name__}")
        return ShopContent(products, _dictionary(self.attributes), human, nouns)


def _dictionary(path: Path) -> dict[str, Any]:
    content = read_json(path)
    if not isinstance(content, dict):
        raise CatalogueError(f"{path} must hold an object with asins as keys, got {type(content).__name__}")
    return content


def find_files(place: Path) -> ShopFiles:
    """The files of a shop in a folder, or those beside the given products file.

    Raises:
        CatalogueError: the place, the products or the attributes are missing.
    """
    if place.is_file():
        folder, products = place.parent, place
        size = place.name.removesuffix(".gz").removesuffix(".json").removeprefix(_PRODUCTS)
    elif place.is_dir():
        folder = place
        found = next(((path, size) for size in _SIZES for path in _variants(folder, _PRODUCTS + size)), None)
        if found is None:
            raise CatalogueError(f"no products file in {folder}: {_HOW_TO}")
        products, size = found
    else:
        raise CatalogueError(f"no such folder: {place}; {_HOW_TO}")
    names = dict.fromkeys((_ATTRIBUTES + size, _ATTRIBUTES, f"{_ATTRIBUTES}_1000"))
    attributes = next((path for name in names for path in _variants(folder, name)), None)
    if attributes is None:
        raise CatalogueError(f"no attributes file beside {products}: {_HOW_TO}")
    human = next(_variants(folder, _HUMAN), None)
    nouns = next(_variants(folder, _NOUNS), None)
    states = [path.stat() for path in (products, attributes, human, nouns) if path is not None]
    fingerprint = tuple((state.st_mtime_ns, state.st_size) for state in states)
    return ShopFiles(products.resolve(), attributes.resolve(), human, nouns, fingerprint)


def _variants(folder: Path, name: str) -> Iterator[Path]:
    """The existing spellings of a file name."""
    return (path for path in (folder / f"{name}.json", folder / f"{name}.json.gz") if path.is_file())
