"""A customer's visit: the page state machine behind every front end (Gymnasium, legacy API, web site)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_gym.envs.webshop import pages
from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.pages import RESULTS_PER_PAGE, SUB_PAGES, Node
from agentic_gym.envs.webshop.products import Product

if TYPE_CHECKING:
    from agentic_gym.envs.webshop.catalogue import Catalogue

__all__ = ["OBSERVATION_MODES", "Rules", "Visit", "parse_action"]

OBSERVATION_MODES = ("text", "text_rich", "html", "url")
BASE_URL = "http://127.0.0.1:3000"
# The original finds out where it is by searching its address for these, in this order; a query word can mislead it.
_PAGE_KINDS = ("search_results", "item_page", "item_sub_page", "done")


@dataclass(frozen=True)
class Rules:
    """What the original does oddly, kept by default."""

    pair_options: bool = True
    """A synthetic goal's option is compared as the text of its (group, value) pair, not by its value as a written goal's is."""
    search_anywhere: bool = True
    """A search works on every page, not only where the search bar is."""
    endless_pages: bool = True
    """Every result page has a next page, the last one too."""
    show_attributes: bool = False
    """Item pages have a button to the product's attributes."""


def parse_action(action: str) -> tuple[str, str | None]:
    """Name and lower-case argument of an action text; the argument is None where there is none.

    >>> parse_action("search[Red Shoes] please"), parse_action("search[]"), parse_action("click[a [b] c]")
    (('search', 'red shoes'), ('search[]', None), ('click[a ', 'b] c'))
    """
    # The original's pattern (.+)\[(.+)\] at the start of the text: within the first line, the last bracket that leaves something
    # on both sides. Found without the pattern, which takes quadratic time on a row of brackets.
    line = action.partition("\n")[0]
    closing = line.rfind("]")
    opening = line.rfind("[", 1, max(1, closing - 1))
    return (action, None) if opening < 0 else (line[:opening], line[opening + 1 : closing].lower())


class Visit:
    """One session in the shop: a goal, the page on show, the options chosen so far.

    Args:
        shop: the catalogue.
        goal: what the customer is told to buy.
        session: the session's name, part of every address.
        rules: the shop's oddities.
        rng: for ``search[<r>]``, which shows 50 products at random.
    """

    def __init__(self, shop: Catalogue, goal: Goal, session: str, rules: Rules, rng: np.random.Generator) -> None:
        self.shop = shop
        self.goal = goal
        self.session = session
        self.rules = rules
        self.rng = rng
        self.instruction = goal.instruction_text
        self.purchase: dict[str, Any] = {}
        """The reward's components, after a purchase."""
        self.start()

    # The pages. Each method moves the customer there.

    def start(self) -> None:
        """Go to the start page; everything chosen is forgotten."""
        self.keywords: Sequence[str] = ()
        self.page = 1
        self.asin: str | None = None
        self.seen: set[str] = set()
        """Asins whose page was opened since the last fresh start."""
        self.options: dict[str, str] = {}
        self._show(self.session, pages.index_page(self.instruction))

    def search(self, keywords: Sequence[str], page: int = 1) -> None:
        """Go to a page of results; the product and its options are forgotten."""
        self.keywords, self.page, self.asin, self.options = keywords, page, None, {}
        products = self.shop.search(" ".join(keywords), self.rng)
        first = (page - 1) * RESULTS_PER_PAGE
        # Page 0 (a misled "< prev") is empty: the slice then ends where it begins or before.
        shown = products[first : page * RESULTS_PER_PAGE]
        more = self.rules.endless_pages or page * RESULTS_PER_PAGE < len(products)
        nodes = pages.results_page(self.instruction, shown, page, len(products), more=more)
        self._show(f"search_results/{self.session}/{'+'.join(keywords)}/{page}", nodes)

    def open_item(self) -> None:
        """Go to the page of the product at hand."""
        address = (
            f"item_page/{self.session}/{self.asin}/{'+'.join(self.keywords)}/{self.page}/{json.dumps(self.options)}"
        )
        nodes = pages.item_page(self.instruction, self.product, show_attributes=self.rules.show_attributes)
        self._show(address, nodes)

    def open_sub_page(self, name: str) -> None:
        """Go to a page behind the product's page."""
        place = f"{self.session}/{self.asin}/{'+'.join(self.keywords)}/{self.page}"
        nodes = pages.sub_page(self.instruction, self.product, name)
        self._show(f"item_sub_page/{place}/{name}/{self.options}", nodes)

    def buy(self) -> float:
        """Buy the product at hand and return the reward in [0, 1]."""
        product = self.product
        reward, self.purchase = self.shop.reward(product, self.goal, self.options, pair_options=self.rules.pair_options)
        nodes = pages.done_page(product.asin, self.options, reward)
        self._show(f"done/{self.session}/{product.asin}/{self.options}", nodes)
        return reward

    # Actions.

    def act(self, action: str) -> tuple[float, bool, bool]:
        """Carry out an action text: (reward, whether it was a purchase, whether the action was valid).

        An invalid action changes nothing.
        """
        name, argument = parse_action(action)
        if argument is None:
            return 0.0, False, False
        if name == "search" and (self.rules.search_anywhere or self.has_search_bar):
            self.search(argument.split(" "))
            return 0.0, False, True
        return self.click(argument) if name == "click" else (0.0, False, False)

    def click(self, label: str) -> tuple[float, bool, bool]:
        """Follow one of the page's `clickables`; the answer is that of `act`."""
        if label not in self.clickables or label == "search":
            return 0.0, False, False
        if label == "buy now":
            return self.buy(), True, True
        self._follow(label)
        return 0.0, False, True

    def _follow(self, label: str) -> None:
        """The label decides before the kind of node does, so an option that is called like a button acts as that button."""
        node = self.clickables[label]
        here = self.page_kind
        if label == "back to search":
            self.start()
        elif label == "next >" and here == "search_results":
            self.search(self.keywords, self.page + 1)
        elif label == "< prev" and here == "search_results":
            self.search(self.keywords, self.page - 1)
        elif label == "< prev" and here == "item_page":
            self.search(self.keywords, self.page)
        elif label in SUB_PAGES:
            self.open_sub_page(SUB_PAGES[label])
        else:
            if node.kind == "product":
                self.asin = node.text
                self.seen.add(node.text)
            elif node.kind == "option":
                self.options[node.group] = label
            self.open_item()

    # What is on show.

    def _show(self, address: str, nodes: tuple[Node, ...]) -> None:
        self.url = f"{BASE_URL}/{address}"
        self.nodes = nodes
        self.clickables = pages.clickable_nodes(nodes)

    @property
    def product(self) -> Product:
        """The product at hand. Raises KeyError where there is none."""
        return self.shop.by_asin[self.asin or ""]

    @property
    def page_kind(self) -> str:
        """``search_results``, ``item_page``, ``item_sub_page``, ``done`` or empty (the start page), told from the address."""
        return next((kind for kind in _PAGE_KINDS if kind in self.url), "")

    @property
    def has_search_bar(self) -> bool:
        """Whether this is the start page."""
        return self.nodes[0].kind == "brand"

    def observation(self, mode: str) -> str:
        """The page in one of `OBSERVATION_MODES`."""
        if mode == "text":
            return pages.text(self.nodes)
        if mode == "text_rich":
            return pages.rich_text(self.nodes, self.url, self.seen)
        if mode == "url":
            return self.url
        from agentic_gym.envs.webshop.markup import render

        return render(self.nodes, session=self.session, options=self.options, seen=self.seen, image=self._image())

    def _image(self) -> str | None:
        """The address of the product's picture on an item page: the one of the option chosen last, if it has one."""
        if self.asin is None or self.nodes[-1].text != "Buy Now":
            return None
        product = self.product
        images = [product.option_images.get(value) for value in self.options.values()]
        return next((image for image in reversed(images) if image), product.image)
