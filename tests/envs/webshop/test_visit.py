import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.envs.webshop.catalogue import Catalogue, load_catalogue
from agentic_gym.envs.webshop.visit import Rules, Visit, parse_action


def visit_of(shop: Catalogue, goal: int = 0, **rules: bool) -> Visit:
    return Visit(shop, shop.goals[goal], "s", Rules(**rules), np.random.default_rng(0))


def with_options(shop: Catalogue) -> Visit:
    """A visit on the item page of a goal that wants an option."""
    number = next(number for number, goal in enumerate(shop.goals) if goal.goal_options)
    visit = visit_of(shop, number)
    visit.search(visit.goal.name.lower().split(" "))
    visit.click(visit.goal.asin.lower())
    return visit


@given(st.text(alphabet="[]ab \n", max_size=30))
def test_actions_are_parsed_like_the_originals_pattern(action: str) -> None:
    found = re.match(r"(.+)\[(.+)\]", action)
    assert parse_action(action) == ((action, None) if found is None else (found[1], found[2].lower()))


def test_a_row_of_brackets_takes_no_time() -> None:
    assert parse_action("[" * 1_000_000)[1] is None


@pytest.mark.parametrize(
    "action",
    [
        "search[]",
        "think[x]",
        "CLICK[back to search]",
        " click[back to search]",
        "search[a [b] c]",
        "click[search]",
        "click[nope]",
        "",
        "x",
    ],
)
def test_invalid_actions_change_nothing(shop: Catalogue, action: str) -> None:
    visit = visit_of(shop)
    visit.act("search[lamp]")
    before = (visit.url, visit.nodes)
    assert visit.act(action) == (0.0, False, False)
    assert (visit.url, visit.nodes) == before


def test_addresses_and_trailing_text(shop: Catalogue) -> None:
    visit = visit_of(shop)
    assert visit.url == "http://127.0.0.1:3000/s"
    visit.act("search[Face  Creams] thanks")
    assert visit.url == "http://127.0.0.1:3000/search_results/s/face++creams/1"
    assert visit.keywords == ["face", "", "creams"]


def test_pages_have_no_end_unless_asked_for(shop: Catalogue) -> None:
    visit = visit_of(shop)
    visit.act("search[for]")
    for _ in range(3):
        assert visit.act("click[next >]")[2]
    assert visit.url.endswith("/for/4")
    assert "Total results: 0" in visit.observation("text")
    bounded = visit_of(shop, endless_pages=False)
    bounded.act("search[with]")
    assert "next >" not in bounded.clickables


def test_searching_anywhere_can_be_forbidden(shop: Catalogue) -> None:
    assert visit_of(shop).act("search[lamp]")[2]
    strict = visit_of(shop, search_anywhere=False)
    assert strict.act("search[lamp]")[2]
    assert not strict.act("search[sofa]")[2]


def test_options_survive_sub_pages_and_not_the_way_back(shop: Catalogue) -> None:
    visit = with_options(shop)
    label = next(label for label, node in visit.clickables.items() if node.kind == "option")
    visit.click(label)
    assert list(visit.options.values()) == [label]
    visit.act("click[features]")
    assert "/Features/{'" in visit.url
    visit.act("click[< prev]")
    assert visit.options
    assert "item_page" in visit.url
    visit.act("click[< prev]")
    assert not visit.options
    assert visit.asin is None
    assert visit.seen == {visit.goal.asin}
    visit.act("click[back to search]")
    assert not visit.seen


def test_a_query_word_misleads_prev_as_in_the_original(shop: Catalogue) -> None:
    visit = visit_of(shop)
    visit.search(["search_results", *visit.goal.query.split(" ")])
    visit.click(next(label for label, node in visit.clickables.items() if node.kind == "product"))
    visit.click("< prev")
    assert visit.page == 0
    assert not any(node.kind == "product" for node in visit.nodes)


def test_a_purchase_pays_and_a_search_goes_on(shop: Catalogue) -> None:
    visit = with_options(shop)
    reward, bought, valid = visit.act("click[buy now]")
    assert (bought, valid) == (True, True)
    assert 0 < reward <= 1
    assert visit.purchase["r_type"] == 1.0
    assert visit.clickables == {}
    assert visit.act("search[lamp]")[2]


def test_an_option_called_like_a_button_acts_as_the_button() -> None:
    shop = load_catalogue(products=1000)
    product = next(
        product for product in shop.products if ("description",) in [values[-1:] for values in product.options.values()]
    )
    visit = visit_of(shop)
    visit.asin = product.asin
    visit.open_item()
    visit.click("description")
    assert "/Description/{}" in visit.url
    assert not visit.options


def test_search_operators(shop: Catalogue) -> None:
    rng = np.random.default_rng(0)
    assert len(shop.search("<r>", rng)) == 50
    assert {product.category for product in shop.search("<c> beauty and more", rng)} == {"beauty"}
    query = shop.goals[0].query
    assert {product.query for product in shop.search(f"<q> {query}", rng)} == {query}
    assert not shop.search("<a> bright", rng)
    assert not shop.search("<c>", rng)


def test_huge_queries_are_harmless(shop: Catalogue) -> None:
    visit = visit_of(shop)
    visit.act(f"search[{'lamp ' * 50_000}]")
    assert "Total results" in visit.observation("text")


def test_the_recorded_episodes(official_shop: Catalogue, golden: Any) -> None:
    visit = None
    for row in golden("golden_trajectories.jsonl.gz"):
        reward, done = 0.0, False
        if row["action"] is None:
            goal = official_shop.goals[row["goal"]]
            visit = Visit(official_shop, goal, str(row["goal"]), Rules(), np.random.default_rng(0))
        else:
            assert visit is not None
            reward, done, _ = visit.act(row["action"])
        assert (reward, done, visit.url) == (row["reward"], row["done"], row["url"])
        assert visit.observation("text") == row["text"]
        assert visit.observation("text_rich") == row["text_rich"]
        assert (visit.has_search_bar, list(visit.clickables)) == (
            row["avail"]["has_search_bar"],
            row["avail"]["clickables"],
        )
