"""The reward of a purchase: type times the share of wanted attributes, options and price that it meets.

reward = r_type * (attributes met + options met + price met) / (attributes wanted + options wanted + 1)
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.products import Product

__all__ = ["purchase_reward", "require_rapidfuzz", "similar", "wishes_met"]

_SIMILAR_ABOVE = 85
_COLOURS = (
    "alabaster", "apricot", "aqua", "ash", "asphalt", "azure", "banana", "beige", "black", "blue", "blush", "bordeaux",
    "bronze", "brown", "burgundy", "camel", "camo", "caramel", "champagne", "charcoal", "cheetah", "chestnut",
    "chocolate", "christmas", "coffee", "cognac", "copper", "coral", "cranberry", "cream", "crystal", "dark", "denim",
    "eggplant", "elephant", "espresso", "fuchsia", "gold", "granite", "grape", "graphite", "grass", "gray", "green",
    "grey", "heather", "indigo", "ivory", "ivy", "khaki", "lavender", "lemon", "leopard", "light", "lilac", "lime",
    "magenta", "maroon", "mauve", "merlot", "midnight", "mint", "mocha", "multicolor", "mushroom", "mustard", "natural",
    "navy", "nude", "olive", "orange", "peach", "pewter", "pink", "plum", "purple", "rainbow", "red", "rose", "royal",
    "rust", "sand", "sapphire", "seashell", "silver", "skull", "slate", "steel", "stone", "stonewash", "sunflower",
    "tan", "taupe", "teal", "tiger", "turquoise", "violet", "walnut", "wheat", "white", "wine", "yellow",
)  # fmt: skip
_DROP_LATIN_1 = dict.fromkeys(range(128, 256))


def require_rapidfuzz() -> None:
    """Raise ImportError with the install line where rapidfuzz is missing: before a shop opens, not at its first purchase."""
    if importlib.util.find_spec("rapidfuzz") is None:
        raise ImportError("WebShop's reward needs rapidfuzz: pip install 'agentic-gym[webshop]'")


@lru_cache(maxsize=1 << 17)
def _normalised(text: str) -> str:
    from rapidfuzz.utils import default_process

    return default_process(text.translate(_DROP_LATIN_1))


@lru_cache(maxsize=1 << 17)
def similar(first: str, second: str) -> bool:
    """Whether two texts count as the same wish: thefuzz's ``token_set_ratio`` above 85.

    >>> similar("machine washable", "washable machine"), similar("long sleeve", "short sleeve")
    (True, False)
    """
    from rapidfuzz.fuzz import token_set_ratio

    return round(token_set_ratio(_normalised(first), _normalised(second))) > _SIMILAR_ABOVE


def _plain_colour(value: str) -> str:
    """The first colour word that the value contains, letters inside other words included, else the value."""
    return next((colour for colour in _COLOURS if colour in value), value)


def _wanted_option(group: str, value: str) -> str:
    """A synthetic goal's option as the original compares it: the pair's own text.

    Only an exact colour word is normalised then, and the group's own words count: a chosen "size" would satisfy any size.
    """
    return next((colour for colour in _COLOURS if colour in (group, value)), str((group, value)))


def wishes_met(options: Mapping[str, str], goal: Goal, *, pair_options: bool = True) -> int:
    """How many of the goal's wanted options the chosen ones (group -> value) satisfy."""
    wanted = goal.goal_options
    values = [_plain_colour(value) for value in options.values()]
    if not isinstance(wanted, Mapping):
        wishes = [_plain_colour(value) for value in wanted]
    elif pair_options:
        wishes = [_wanted_option(group, value) for group, value in wanted.items()]
    else:
        wishes = [_plain_colour(value) for value in wanted.values()]
    return sum(any(similar(value, wish) for value in values) for wish in wishes)


def _attributes_met(product: Product, wanted: Sequence[str]) -> int:
    texts = (product.title.lower(), " ".join(product.bullets).lower(), product.description.lower())
    return sum(
        any(similar(attribute, wish) for attribute in product.attributes) or any(wish in text for text in texts)
        for wish in wanted
    )


def _type_factor(
    product: Product, goal: Goal, nouns: Sequence[str], goal_nouns: Sequence[str]
) -> tuple[float, dict[str, Any]]:
    query_match = product.query == goal.query
    goal_path = {step.strip() for step in goal.product_category.split("\u203a")}
    category_match = len(product.category_path & goal_path) >= 2
    title_score = len(set(nouns) & set(goal_nouns)) / len(goal_nouns) if goal_nouns else 0.2
    factor = 1.0 if query_match or category_match or title_score > 0.2 else 0.5
    if title_score < 0.1:
        factor = 0.1
    if title_score == 0.0:
        factor = 0.0
    return factor, {
        "r_type": factor,
        "query_match": query_match,
        "category_match": category_match,
        "title_score": title_score,
    }


def purchase_reward(
    product: Product,
    goal: Goal,
    *,
    price: float,
    options: Mapping[str, str],
    nouns: Sequence[str],
    goal_nouns: Sequence[str],
    pair_options: bool = True,
) -> tuple[float, dict[str, Any]]:
    """The reward in [0, 1] of buying a product for a goal, and its components.

    Args:
        product: what was bought.
        goal: what was wanted.
        price: the product's actual price in dollars.
        options: chosen group -> value; the group names are ignored.
        nouns: nouns of the product's title.
        goal_nouns: nouns of the target's title.
        pair_options: compare a synthetic goal's option as the text of its (group, value) pair, like the original, instead of
            its value alone.

    Returns:
        The reward, and ``r_type query_match category_match title_score r_att w_att [r_option w_option] r_price w_price``:
        a component's value and its weight in the sum, the option pair only where the goal has options.
    """
    factor, info = _type_factor(product, goal, nouns, goal_nouns)
    price_met = price <= goal.price_upper
    attributes_met = _attributes_met(product, goal.attributes)
    options_met = wishes_met(options, goal, pair_options=pair_options)
    wishes = len(goal.attributes) + len(goal.goal_options) + 1
    reward = (attributes_met + options_met + price_met) / wishes * factor
    info |= {"r_att": attributes_met / len(goal.attributes), "w_att": len(goal.attributes) / wishes}
    if goal.goal_options:
        info |= {"r_option": options_met / len(goal.goal_options), "w_option": len(goal.goal_options) / wishes}
    info |= {"r_price": price_met, "w_price": 1 / wishes}
    return reward, info
