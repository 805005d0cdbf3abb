import random
import re

import numpy as np
import pytest

from agentic_gym.envs.webshop.catalogue import Catalogue
from agentic_gym.envs.webshop.markup import render
from agentic_gym.envs.webshop.pages import Node, item_page
from agentic_gym.envs.webshop.visit import Rules, Visit
from tests.envs.webshop.page_text import text_nodes
from tests.envs.webshop.records import products


def check_random_walk(shop: Catalogue, seed: int, steps: int = 60) -> None:
    """Wherever a walk leads, the page's HTML has exactly the text nodes of the observation."""
    rng = random.Random(seed)
    visit = Visit(
        shop, shop.goals[rng.randrange(len(shop.goals))], "s", Rules(show_attributes=True), np.random.default_rng(0)
    )
    for _ in range(steps):
        html = visit.observation("html")
        assert text_nodes(html) == [node.text for node in visit.nodes if node.text]
        labels = [label for label in visit.clickables if label != "search"]
        if labels and rng.random() < 0.9:
            visit.click(rng.choice(labels))
        else:
            visit.search(rng.choice(shop.goals).query.split(" "))


@pytest.mark.parametrize("seed", range(5))
def test_html_and_text_hold_the_same(shop: Catalogue, seed: int) -> None:
    check_random_walk(shop, seed)


@pytest.mark.parametrize("seed", range(3))
def test_html_and_text_hold_the_same_on_the_official_products(official_shop: Catalogue, seed: int) -> None:
    check_random_walk(official_shop, seed)


def test_foreign_text_is_escaped() -> None:
    nasty = "</h2><script>alert('x')</script>\" onclick=\""
    (product,) = products({"name": nasty, "customization_options": {nasty: [{"value": nasty}]}})
    html = render(item_page(nasty, product), session='"><x>', options={}, seen=(), image='"><x>')
    assert "<script" not in html
    assert "<x>" not in html
    assert not re.search(r"\sonclick=\"", html)


def test_agents_find_the_elements_they_know(shop: Catalogue) -> None:
    visit = Visit(shop, shop.goals[0], "s", Rules(), np.random.default_rng(0))
    assert 'id="search_input"' in visit.observation("html")
    visit.search(["set"])
    assert 'class="product-link"' in visit.observation("html")
    product = next(product for product in shop.products if any(product.options.values()))
    visit.asin = product.asin
    visit.open_item()
    label, node = next((label, node) for label, node in visit.clickables.items() if node.kind == "option")
    visit.click(label)
    html = visit.observation("html")
    assert re.search(r'<input type="radio"[^>]* checked>', html)
    assert 'id="product-image"' in html
    assert node.group in html


def test_nothing_is_loaded_from_elsewhere(shop: Catalogue) -> None:
    visit = Visit(shop, shop.goals[0], "s", Rules(), np.random.default_rng(0))
    assert not re.search(r"https?://", visit.observation("html"))


def test_a_page_without_a_goal_text() -> None:
    assert text_nodes(
        render((Node("caption", "Instruction:"), Node("button", "Back")), session="s", options={}, seen=())
    ) == [
        "Instruction:",
        "Back",
    ]
