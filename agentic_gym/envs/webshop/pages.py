"""What a page shows, as a list of nodes, and the two text renderings of it.

A page is a tuple of `Node`. The observations, the clickable labels and the HTML are all made from that one list, so they cannot
disagree. The white-space rules are those of the HTML parser that stands between the original's pages and its observations: an
empty text makes no node, an all-blank text counts as one blank, and one with a newline in it vanishes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from agentic_gym.envs.webshop.products import Product

__all__ = [
    "RESULTS_PER_PAGE",
    "SUB_PAGES",
    "Node",
    "clickable_nodes",
    "done_page",
    "index_page",
    "item_page",
    "results_page",
    "rich_text",
    "sub_page",
    "text",
]

RESULTS_PER_PAGE = 10
SUB_PAGES = {name.lower(): name for name in ("Description", "Features", "Reviews", "Attributes")}
"""Label -> name of the pages behind an item page."""

NodeKind = Literal[
    "brand", "heading", "caption", "goal", "button", "status", "product", "title", "price", "rating", "group", "option",
    "paragraph", "bullet", "field", "value",
]  # fmt: skip
_ASCII_BLANKS = " \n\t\f\r"


class Node(NamedTuple):
    """One visible text of a page."""

    kind: NodeKind
    text: str
    group: str = ""
    """The option group that an option belongs to."""


_WEBSHOP = Node("brand", "WebShop")
_SEARCH = Node("button", "Search")
_BACK = Node("button", "Back to Search")
_PREVIOUS = Node("button", "< Prev")
_NEXT = Node("button", "Next >")
_BUY = Node("button", "Buy Now")


def _free(kind: NodeKind, content: str) -> tuple[Node, ...]:
    """The node of a text that comes from the data: at most one."""
    if content.strip(_ASCII_BLANKS):
        return (Node(kind, content),)
    return () if not content or "\n" in content else (Node(kind, " "),)


def _head(instruction: str) -> tuple[Node, ...]:
    return (Node("caption", "Instruction:"), *_free("goal", instruction), _BACK)


def index_page(instruction: str) -> tuple[Node, ...]:
    """The start page with the search bar."""
    return (_WEBSHOP, Node("caption", "Instruction: "), *_free("goal", instruction), _SEARCH)


def results_page(
    instruction: str, products: Sequence[Product], page: int, total: int, *, more: bool = True
) -> tuple[Node, ...]:
    """One page of search results.

    Args:
        instruction: the goal's text.
        products: the products on this page.
        page: page number, from 1.
        total: number of results on all pages.
        more: whether there is a button to the next page.
    """
    nodes = [*_head(instruction), Node("status", f"Page {page} (Total results: {total})")]
    if page > 1:
        nodes.append(_PREVIOUS)
    if more:
        nodes.append(_NEXT)
    for product in products:
        nodes.extend(_result_row(product))
    return tuple(nodes)


@lru_cache(maxsize=1 << 14)
def _result_row(product: Product) -> tuple[Node, ...]:
    return (Node("product", product.asin), *_free("title", product.title), Node("price", product.price_tag))


def item_page(instruction: str, product: Product, *, show_attributes: bool = False) -> tuple[Node, ...]:
    """A product's page: options, title, price and the buttons."""
    return (*_head(instruction), _PREVIOUS, *_item_body(product, show_attributes))


@lru_cache(maxsize=1 << 12)
def _item_body(product: Product, show_attributes: bool) -> tuple[Node, ...]:
    nodes: list[Node] = []
    for group, values in product.options.items():
        nodes += _free("group", group)
        # An option without text shows nothing, yet it can be clicked: its node stays, with an empty text.
        nodes += (Node("option", value, group) for value in values)
    nodes += _free("title", product.title)
    nodes += (Node("price", f"Price: {product.price_tag}"), Node("rating", "Rating: N.A."))
    names = list(SUB_PAGES.values()) if show_attributes else list(SUB_PAGES.values())[:-1]
    return (*nodes, *(Node("button", name) for name in names), _BUY)


def sub_page(instruction: str, product: Product, name: str) -> tuple[Node, ...]:
    """The page ``name`` (a value of `SUB_PAGES`) behind a product's page."""
    body: Iterable[Node]
    if name == "Description":
        body = _free("paragraph", product.description)
    elif name == "Features":
        body = (node for bullet in product.bullets for node in _free("bullet", " " + bullet))
    elif name == "Attributes":
        facts = (product.category, product.query, product.product_category)
        body = (
            *(node for attribute in product.attributes for node in _free("bullet", " " + attribute)),
            *(node for fact in facts for node in _free("field", fact)),
        )
    else:  # no reviews are kept
        body = ()
    return (*_head(instruction), _PREVIOUS, *body)


def done_page(asin: str, options: Mapping[str, str], reward: float) -> tuple[Node, ...]:
    """The page after a purchase; its fixed texts, spelling included, are the original's."""
    unknown = ("attrs", "category", "query", "product category")
    bought = (("asin", asin), ("options", _html_safe_json(options)), *((name, "None") for name in unknown))
    target = ("asin", "options", "attrs", "price upper", "instuction text", "category", "product category", "query")
    return (
        Node("heading", "Thank you for shopping with us!"),
        Node("field", "Your code: "),
        Node("value", "None"),
        Node("field", " (Paste it in your MTurk interface.)"),
        Node("heading", "Purchased"),
        *(node for name, value in bought for node in (Node("field", name), Node("value", value))),
        Node("heading", "Target"),
        *(Node("field", name) for name in target),
        Node("field", "Goal "),
        Node("value", "None"),
        Node("heading", "Reward"),
        Node("field", "Your score (min 0.0, max 1.0)"),
        Node("value", str(reward)),
        Node("field", "Reward Details "),
        Node("value", "None"),
    )


def _html_safe_json(options: Mapping[str, str]) -> str:
    """JSON with sorted keys that holds none of ``< > & '``."""
    encoded = json.dumps(dict(options), sort_keys=True)
    return encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("'", "\\u0027")


def clickable_nodes(nodes: Iterable[Node]) -> dict[str, Node]:
    """Label -> node of everything that can be clicked: buttons, product links, then options.

    Labels are lower case; of two nodes with one label the later counts, at the place of the first.
    """
    buttons, products, options = [], [], []
    for node in nodes:
        if node.kind == "button":
            buttons.append((node.text.lower(), node))
        elif node.kind == "product":
            products.append((node.text.lower(), node))
        elif node.kind == "option":
            options.append((node.text, node))
    return dict(buttons + products + options)


def text(nodes: Iterable[Node]) -> str:
    """The observation "text": node texts without outer white space, joined by `` [SEP] ``."""
    return " [SEP] ".join([node.text.strip() for node in nodes if node.text])


def rich_text(nodes: Iterable[Node], url: str, seen: Collection[str]) -> str:
    """The observation "text_rich": one node a line, clickables marked.

    Args:
        nodes: the page.
        url: the page's address: an option is marked as clicked when its quoted value stands in it.
        seen: the asins whose link was clicked since the last fresh start.
    """
    clicked = ""
    lines = []
    for kind, content, _ in nodes:
        if not content:
            continue
        if kind == "button":
            content = f"[button] {content} [button_]"
        elif kind == "option" and f'"{content}"' in url:
            clicked = f"You have clicked {content}.\n{clicked}"
            content = f"  [clicked button] {content} [clicked button_]"
        elif kind == "option":
            content = f"  [button] {content} [button_]"
        elif kind == "product" and content in seen:
            content = f"\n[clicked button] {content} [clicked button_]"
        elif kind == "product":
            content = f"\n[button] {content} [button_]"
        lines.append(content + "\n")
    return clicked + "".join(lines)
