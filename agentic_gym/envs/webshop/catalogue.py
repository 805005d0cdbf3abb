"""The catalogue: everything that all environments of a process share, loaded once and never changed.

- ``load_catalogue``: from a folder of official files, or the generated shop.
- ``Catalogue``: products, prices, goals, search index and title nouns, with search and reward.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from agentic_gym.envs.webshop.files import ShopFiles, find_files
from agentic_gym.envs.webshop.goals import Goal, draw_prices, human_goals, shuffled, synthetic_goals
from agentic_gym.envs.webshop.index_store import load_or_build
from agentic_gym.envs.webshop.nouns import TitleNouns
from agentic_gym.envs.webshop.products import CatalogueError, Product, parse_products
from agentic_gym.envs.webshop.reward import purchase_reward
from agentic_gym.envs.webshop.search import SearchIndex
from agentic_gym.envs.webshop.splits import Split, split_range
from agentic_gym.tasks import Task, TaskSet

__all__ = ["DATA_VARIABLE", "Catalogue", "GoalKind", "load_catalogue"]

_LOG = logging.getLogger(__name__)
DATA_VARIABLE = "WEBSHOP_DATA"
"""Environment variable with the folder of official files; used where no folder is given."""
GoalKind = Literal["synthetic", "human"]
_MOST_RESULTS = 50
_LONGEST_KEPT_QUERY = 1000
_GENERATED_PRODUCTS = 1000


@dataclass(frozen=True)
class _Key:
    """What identifies a stock: its files (with their dates and sizes) or None for the generated shop, and its size."""

    files: ShopFiles | None
    products: int | None


@dataclass(frozen=True, eq=False)
class _Stock:
    """What does not depend on the goals: shared by catalogues with other seeds or goals."""

    products: tuple[Product, ...]
    index: SearchIndex
    nouns: TitleNouns
    human: Mapping[str, Any] | None
    source: str
    skipped: Mapping[str, int]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """One shop: immutable, shared by every environment of a process and safe in threads."""

    products: tuple[Product, ...]
    """In file order."""
    prices: Mapping[str, float]
    """Actual price by asin, in dollars."""
    goals: tuple[Goal, ...]
    """In the original's shuffled order; task i is goal i."""
    index: SearchIndex
    nouns: TitleNouns
    source: str
    """Where the products come from: a path, or "generated-<number>"."""
    kind: GoalKind
    skipped: Mapping[str, int]
    """Reason -> number of product records that were left out."""
    origin: tuple[_Key, GoalKind, int] | None
    """How to load it again; None when its prices were drawn without a seed."""

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy is the shared object of the process that reads it. Only unseeded prices and goals have to travel.
        if self.origin is not None:
            return _shared, self.origin
        fields = (self.products, self.prices, self.goals, self.index, self.nouns, self.source, self.kind, self.skipped)
        return Catalogue, (*fields, None)

    def __deepcopy__(self, memo: dict[int, Any]) -> Catalogue:
        return self

    @cached_property
    def by_asin(self) -> Mapping[str, Product]:
        """The products by asin."""
        return {product.asin: product for product in self.products}

    @cached_property
    def tasks(self) -> TaskSet:
        """One task a goal, in order, with ids like ``synthetic-17``."""
        tasks = (
            Task(f"{self.kind}-{number}", goal.instruction_text, info={"goal": number, "asin": goal.asin})
            for number, goal in enumerate(self.goals)
        )
        return TaskSet(tasks, name=f"WebShop {self.source} {self.kind}")

    @cached_property
    def split_tasks(self) -> Callable[[Split | None], TaskSet]:
        """``split_tasks(split)``: the tasks of a split, made once."""

        def tasks(split: Split | None) -> TaskSet:
            chosen = split_range(split, len(self.goals), self.kind)
            part = self.tasks[chosen.start : chosen.stop]
            return TaskSet(part, name=self.tasks.name, split=split)

        return lru_cache(maxsize=None)(tasks)

    @cached_property
    def split_weights(self) -> Callable[[Split | None], Sequence[float]]:
        """``split_weights(split)``: the running sum of the goals' weights in a split."""

        def weights(split: Split | None) -> Sequence[float]:
            chosen = split_range(split, len(self.goals), self.kind)
            return tuple(itertools.accumulate(self.goals[number].weight for number in chosen))

        return lru_cache(maxsize=None)(weights)

    @cached_property
    def _top(self) -> Callable[[str], tuple[Product, ...]]:
        # Agents of one task type the same queries again and again.
        return lru_cache(maxsize=1 << 14)(self._ranked)

    def _ranked(self, query: str) -> tuple[Product, ...]:
        return tuple(self.products[number] for number in self.index.top(query, _MOST_RESULTS))

    def search(self, query: str, rng: np.random.Generator) -> Sequence[Product]:
        """What a search shows, best first: at most 50 products for plain words.

        The original's operators: ``<r>`` 50 products at random, ``<c> word`` all of a category, ``<q> words`` all found under
        exactly that query. ``<a>`` finds nothing (it crashed the original).
        """
        operator, _, rest = query.partition(" ")
        if operator == "<r>":
            chosen = rng.choice(len(self.products), size=min(_MOST_RESULTS, len(self.products)), replace=False)
            return [self.products[int(number)] for number in chosen]
        if operator == "<a>":
            return ()
        if operator == "<c>":
            category = rest.split(" ")[0].strip()
            return [product for product in self.products if product.category == category]
        if operator == "<q>":
            return [product for product in self.products if product.query == rest.strip()]
        # Huge queries are not worth the memory.
        return self._top(query) if len(query) <= _LONGEST_KEPT_QUERY else self._ranked(query)

    def reward(
        self, product: Product, goal: Goal, options: Mapping[str, str], *, pair_options: bool = True
    ) -> tuple[float, dict[str, Any]]:
        """The reward in [0, 1] of buying a product with these options, and its components.

        ``noun_source`` among them tells where the nouns of the bought product's title come from.
        """
        reward, info = purchase_reward(
            product,
            goal,
            price=self.prices[product.asin],
            options=options,
            nouns=self.nouns(product),
            goal_nouns=self.nouns(self.by_asin[goal.asin]),
            pair_options=pair_options,
        )
        return reward, info | {"noun_source": self.nouns.source(product)}


def load_catalogue(
    data: str | os.PathLike[str] | None = None,
    *,
    goals: GoalKind = "synthetic",
    seed: int | None = 0,
    products: int | None = None,
) -> Catalogue:
    """The catalogue of a data folder; a second call with the same arguments returns the same object.

    Args:
        data: a folder with the official files, or the path of one of its products files; None takes the folder named by
            ``WEBSHOP_DATA``, and without that the generated shop.
        goals: "synthetic" (one goal per combination of options) or "human" (written instructions).
        seed: of prices and price caps; None draws them anew in each call, as the original does.
        products: how many products: the first ones of the file (None: all), or the size of the generated shop (None: 1000).

    Raises:
        CatalogueError: the data are incomplete or broken; the message names the file, the product and the fix.
    """
    if goals not in ("synthetic", "human"):
        raise ValueError(f"goals must be 'synthetic' or 'human', got {goals!r}")
    if products is not None and products < 1:
        raise ValueError(f"products must be at least 1, got {products}")
    place = data if data is not None else os.environ.get(DATA_VARIABLE) or None
    key = _Key(find_files(Path(place)), products) if place is not None else _Key(None, products or _GENERATED_PRODUCTS)
    if seed is None:
        return _assemble(key, goals, None)
    return _shared(key, goals, seed)


@lru_cache(maxsize=8)
def _shared(key: _Key, kind: GoalKind, seed: int) -> Catalogue:
    return _assemble(key, kind, seed)


def _assemble(key: _Key, kind: GoalKind, seed: int | None) -> Catalogue:
    stock = _stock(key, kind == "synthetic")
    rng = random.Random(seed)
    prices = draw_prices(stock.products, rng)
    if kind == "synthetic":
        goals = synthetic_goals(stock.products, prices, rng)
    elif stock.human is None:
        raise CatalogueError(f"{stock.source}: goals='human' needs items_human_ins.json beside the products file")
    else:
        goals = human_goals(stock.products, prices, stock.human, rng)
    if not goals:
        raise CatalogueError(f"{stock.source}: no product has a {kind} goal")
    return Catalogue(
        products=stock.products,
        prices=prices,
        goals=shuffled(goals),
        index=stock.index,
        nouns=stock.nouns,
        source=stock.source,
        kind=kind,
        skipped=stock.skipped,
        origin=None if seed is None else (key, kind, seed),
    )


@lru_cache(maxsize=4)
def _stock(key: _Key, synthetic: bool) -> _Stock:
    if key.files is None:
        from agentic_gym.envs.webshop.generator import generate

        size = key.products or _GENERATED_PRODUCTS
        content, source, limit = generate(size), f"generated-{size}", None
    else:
        content, source, limit = key.files.read(), str(key.files.products), key.products
    products, skipped = parse_products(
        content.products, content.attributes, source=source, limit=limit, synthetic=synthetic
    )
    if not products:
        raise CatalogueError(f"{source}: no usable product among {len(content.products)} records")
    if skipped:
        _LOG.warning("%s: left out %s", source, _reasons(skipped))
    return _Stock(products, load_or_build(products), TitleNouns(content.nouns), content.human, source, dict(skipped))


def _reasons(skipped: Counter[str]) -> str:
    return ", ".join(f"{number} x {reason}" for reason, number in sorted(skipped.items()))
