"""Products: the official file schemas, read and checked.

Three files make a shop. The products file is a list of records, the attributes file maps an asin to ``attributes`` (and to
``instruction`` and ``instruction_attributes`` where the product has a synthetic goal), the human file maps an asin to its
written instructions.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["CatalogueError", "Product", "parse_price", "parse_products", "read_json"]

_CATEGORY_SEPARATOR = "\u203a"


class CatalogueError(ValueError):
    """The shop's data cannot be used; the message names the file or product and the fix."""


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One product as the shop shows and judges it; compared by identity, since an asin is unique in its shop."""

    asin: str
    title: str
    description: str
    bullets: tuple[str, ...]
    price_tag: str
    """What the pages show: ``$12.5`` or ``$9.99 to $19.99``."""
    price_range: tuple[float, ...]
    """One price in dollars, or the two ends that the actual price is drawn from."""
    options: Mapping[str, tuple[str, ...]]
    """Option group -> values, all lower case, in file order."""
    option_images: Mapping[str, str | None]
    attributes: tuple[str, ...]
    category: str
    query: str
    product_category: str
    image: str
    instruction: str | None
    """The synthetic instruction; None when the product has no synthetic goal."""
    instruction_attributes: tuple[str, ...]

    @property
    def category_path(self) -> frozenset[str]:
        """The steps of ``product_category``."""
        return frozenset(step.strip() for step in self.product_category.split(_CATEGORY_SEPARATOR))

    @property
    def search_text(self) -> str:
        """What the search engine indexes: title, description, first bullet and the options."""
        options = ", and ".join(f"{name}: {', '.join(values)}" for name, values in self.options.items())
        first_bullet = self.bullets[0] if self.bullets else ""
        return " ".join((self.title, self.description, first_bullet, options)).lower()


def read_json(path: Path) -> Any:
    """The content of a ``.json`` or ``.json.gz`` file.

    Raises:
        CatalogueError: the file is missing, cut short or not JSON.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8")
        return json.loads(text)
    except FileNotFoundError:
        raise CatalogueError(f"no such file: {path}") from None
    except (OSError, EOFError, UnicodeDecodeError, ValueError) as error:
        raise CatalogueError(f"{path} is cut short or is not UTF-8 JSON ({error}); copy the file again") from error


def parse_price(pricing: object) -> tuple[tuple[float, ...], str]:
    """The price range and the tag of a ``pricing`` text; an empty one costs 100 dollars.

    >>> parse_price("$1,299.50"), parse_price("$9.99$19.99"), parse_price("")
    (((1299.5,), '$1299.5'), ((9.99, 19.99), '$9.99 to $19.99'), ((100.0,), '$100.0'))
    """
    if not pricing:
        return (100.0,), "$100.0"
    if not isinstance(pricing, str):
        raise ValueError(f"pricing must be a text like '$12.99', got {pricing!r}")
    try:
        prices = tuple(float(re.sub(r"[^\d.]", "", part)) for part in pricing.split("$")[1:])
    except ValueError:
        prices = ()
    if not prices:
        raise ValueError(f"pricing {pricing!r} holds no price; write '$12.99', '$9.99$19.99' or ''")
    if len(prices) == 1:
        return prices, f"${prices[0]}"
    return prices[:2], f"${prices[0]} to ${prices[1]}"


def parse_products(
    records: object, attributes: object, *, source: str, limit: int | None = None, synthetic: bool = True
) -> tuple[tuple[Product, ...], Counter[str]]:
    """The products of a products file, in its order, and how many records were skipped for which reason.

    Records whose asin is "nan", longer than ten characters or a repetition are skipped, as in the original. With
    ``synthetic`` every product must be in the attributes file, since a goal would silently be lost otherwise.

    Raises:
        CatalogueError: a record lacks a field, has no image or an unreadable price, or misses its attributes.
    """
    if not isinstance(records, list) or not isinstance(attributes, dict):
        raise CatalogueError(f"{source}: expected a list of products and a dictionary of attributes by asin")
    products: dict[str, Product] = {}
    skipped: Counter[str] = Counter()
    for position, record in enumerate(records[:limit]):
        asin = record.get("asin") if isinstance(record, dict) else None
        if not isinstance(asin, str):
            raise CatalogueError(f"{source}: record {position} has no asin: {str(record)[:80]!r}")
        if asin == "nan" or len(asin) > 10:
            skipped["bad asin"] += 1
        elif asin in products:
            skipped["repeated asin"] += 1
        else:
            if synthetic and asin not in attributes:
                raise CatalogueError(
                    f"{source}: product {asin} is not in the attributes file; use the attributes file that belongs "
                    "to the products file, or goals='human'"
                )
            try:
                products[asin] = _parse_product(record, attributes.get(asin))
            except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
                reason = f"no field {error}" if isinstance(error, KeyError) else str(error)
                raise CatalogueError(f"{source}: product {asin}: {reason}") from error
    return tuple(products.values()), skipped


def _parse_product(record: Mapping[str, Any], attributes: Mapping[str, Any] | None) -> Product:
    bullets = record["small_description"]
    price_range, price_tag = parse_price(record.get("pricing"))
    options, images = _parse_options(record.get("customization_options"))
    if not record["images"]:
        raise ValueError("images is empty; give at least one image address")
    entry: Mapping[str, Any] = attributes if attributes is not None else {"attributes": ["DUMMY_ATTR"]}
    instruction = entry.get("instruction")
    if instruction is not None and not isinstance(instruction, str):
        raise TypeError(f"instruction must be a text, got {instruction!r}")
    return Product(
        asin=record["asin"],
        title=_text(record, "name"),
        description=_text(record, "full_description"),
        bullets=_texts((bullets,) if isinstance(bullets, str) else bullets, "small_description"),
        price_tag=price_tag,
        price_range=price_range,
        options=options,
        option_images=images,
        attributes=_texts(entry["attributes"], "attributes"),
        category=_text(record, "category"),
        query=_text(record, "query").lower().strip(),
        product_category=_text(record, "product_category"),
        image=_texts(record["images"][:1], "images")[0],
        instruction=instruction,
        instruction_attributes=_texts(entry.get("instruction_attributes") or (), "instruction_attributes"),
    )


def _parse_options(groups: object) -> tuple[dict[str, tuple[str, ...]], dict[str, str | None]]:
    options: dict[str, tuple[str, ...]] = {}
    images: dict[str, str | None] = {}
    if not groups:
        return options, images
    if not isinstance(groups, dict):
        raise TypeError(f"customization_options must be '' or an object of groups, got {str(groups)[:60]!r}")
    for name, contents in groups.items():
        if contents is None:
            continue
        values = []
        for content in contents:
            value = content["value"].strip().replace("/", " | ").lower()
            values.append(value)
            images[value] = content.get("image")
        options[name.lower()] = tuple(values)
    return options, images


def _text(record: Mapping[str, Any], field: str) -> str:
    value = record[field]
    if not isinstance(value, str):
        raise TypeError(f"{field} must be a text, got {value!r}")
    return value


def _texts(values: Iterable[object], field: str) -> tuple[str, ...]:
    if isinstance(values, str):
        raise TypeError(f"{field} must be a list of texts, got {values!r}")
    texts = []
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{field} must be a list of texts, holds {value!r}")
        texts.append(value)
    return tuple(texts)
