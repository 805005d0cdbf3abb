"""Goals: what the customer is told to buy, with the price caps and the order of the original.

The random draws follow the original's order exactly: one price per product with a price range, then one cap per product
(synthetic) or per instruction (human), from one `random.Random`; the list is then shuffled with the fixed seed 233.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from operator import add
from typing import Any

from agentic_gym.envs.webshop.products import CatalogueError, Product

__all__ = ["NO_CAP", "Goal", "draw_prices", "human_goals", "shuffled", "synthetic_goals"]

_CAPS = tuple(range(10, 1000, 10))
_SHUFFLE_SEED = 233
NO_CAP = 1000000
"""The price cap of a goal whose product is too dear for one."""


@dataclass(frozen=True, slots=True)
class Goal:
    """One shopping task."""

    asin: str
    category: str
    query: str
    name: str
    """The target's title."""
    product_category: str
    instruction_text: str
    attributes: tuple[str, ...]
    """Wanted attributes, at least one."""
    price_upper: float
    """The most that the purchase may cost, in dollars."""
    goal_options: Mapping[str, str] | tuple[str, ...]
    """Wanted options: group -> value (synthetic) or values only (human)."""
    weight: float
    """Relative frequency in a weighted draw of goals."""

    def as_dict(self) -> dict[str, Any]:
        """The goal under the original's keys, with lists for tuples."""
        record = asdict(self)
        record["attributes"] = list(self.attributes)
        options = self.goal_options
        record["goal_options"] = dict(options) if isinstance(options, Mapping) else list(options)
        return record


def draw_prices(products: Iterable[Product], rng: random.Random) -> dict[str, float]:
    """The actual price of every product, in dollars; a range is drawn from uniformly."""
    return {
        product.asin: rng.uniform(*product.price_range) if len(product.price_range) == 2 else product.price_range[0]
        for product in products
    }


def _draw_cap(price: float, rng: random.Random) -> tuple[float, str]:
    """A price cap above a price, and how the instruction states it."""
    candidates = [cap for cap in _CAPS if cap > price][:4]
    if len(candidates) < 2:
        return NO_CAP, ""
    cap = float(max(rng.sample(candidates, 2)))
    return cap, f", and price lower than {cap:.2f} dollars"


def synthetic_goals(products: Iterable[Product], prices: Mapping[str, float], rng: random.Random) -> list[Goal]:
    """One goal for each combination of options of each product that has an instruction.

    A goal's weight is the mean over its attributes of 1 / (number of goals with that attribute).
    """
    goals: list[Goal] = []
    for product in products:
        if product.instruction is None:
            continue
        if not product.instruction_attributes:
            raise CatalogueError(f"product {product.asin} has an instruction but no instruction_attributes; remove one")
        cap, cap_text = _draw_cap(prices[product.asin], rng)
        groups = sorted(product.options)
        for values in itertools.product(*(product.options[group] for group in groups)):
            wanted = dict(zip(groups, values))
            options_text = ", and ".join(f"{group}: {value}" for group, value in wanted.items())
            text = product.instruction + (f" with {options_text}" if options_text else "") + cap_text
            goals.append(_goal(product, text, product.instruction_attributes, cap, wanted))
    counts = Counter(attribute for goal in goals for attribute in goal.attributes)
    return [replace(goal, weight=_weight(goal.attributes, counts)) for goal in goals]


def _weight(attributes: Sequence[str], counts: Mapping[str, int]) -> float:
    # Not sum(): from Python 3.12 on it compensates for rounding, and the weights would depend on the interpreter.
    return reduce(add, (1 / counts[attribute] for attribute in attributes)) / len(attributes)


def human_goals(
    products: Iterable[Product], prices: Mapping[str, float], records: Mapping[str, Any], rng: random.Random
) -> list[Goal]:
    """One goal for each written instruction that names an attribute.

    Args:
        products: the shop, in file order.
        prices: actual prices by asin.
        records: the human file: asin -> list of instruction records.
        rng: source of the price caps.
    """
    goals = []
    for product in products:
        for record in records.get(product.asin, ()):
            try:
                attributes = tuple(record["instruction_attributes"])
                options = tuple(record["instruction_options"])
                text = record["instruction"].strip(".")
            except (KeyError, TypeError, AttributeError) as error:
                raise CatalogueError(
                    f"human instruction of product {product.asin}: missing or bad field {error}"
                ) from error
            if attributes:
                cap, cap_text = _draw_cap(prices[product.asin], rng)
                goals.append(_goal(product, text + cap_text, attributes, cap, options))
    return goals


def _goal(
    product: Product, text: str, attributes: tuple[str, ...], cap: float, options: dict[str, str] | tuple[str, ...]
) -> Goal:
    return Goal(
        asin=product.asin,
        category=product.category,
        query=product.query,
        name=product.title,
        product_category=product.product_category,
        instruction_text=text,
        attributes=attributes,
        price_upper=cap,
        goal_options=options,
        weight=1.0,
    )


def shuffled(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    """The goals in the original's fixed order, which depends on their number only."""
    order = list(goals)
    random.Random(_SHUFFLE_SEED).shuffle(order)
    return tuple(order)
