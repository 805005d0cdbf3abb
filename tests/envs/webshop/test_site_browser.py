"""The site in a real browser: what a person sees is what the text observation says."""

import asyncio
import contextlib
import json
import shutil
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from agentic_gym.envs.webshop.catalogue import Catalogue
from agentic_gym.envs.webshop.visit import Rules, Visit
from tests.envs.webshop.browser import Browser

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(PROGRAM is None, reason="needs Chromium: apt-get install chromium"),
]


@contextlib.contextmanager
def serving(shop: Catalogue) -> Iterator[str]:
    """The site on a free port."""
    uvicorn = pytest.importorskip("uvicorn")
    from agentic_gym.envs.webshop.site import make_app

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()  # a browser that comes before the server is ready waits
        server = uvicorn.Server(uvicorn.Config(make_app(shop), log_level="warning"))
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=30)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    assert PROGRAM is not None
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as opened:
        yield opened


def follow(browser: Browser, visit: Visit, label: str) -> None:
    """Click what carries a label: a button, a product link or an option."""
    node = visit.clickables[label]
    selector = {"button": "button", "product": "a.product-link", "option": "a.option"}[node.kind]
    wanted = json.dumps([selector, node.text, node.group])
    browser.act(
        f"(([selector, text, group]) => [...document.querySelectorAll(selector)].filter(element => element.textContent === text"
        f" && (!group || element.querySelector('input').name === group))[0].click())({wanted})"
    )


def visible(visit: Visit) -> list[str]:
    return [text for text in visit.observation("text").split(" [SEP] ") if text.strip()]


def episode(browser: Browser, site: str, shop: Catalogue, number: int) -> None:
    session = f"fixed_{number}"
    visit = Visit(shop, shop.goals[number], session, Rules(), np.random.default_rng(0))
    browser.go(f"{site}/{session}")
    assert browser.visible_texts() == visible(visit)
    query = visit.goal.name.lower()
    browser.act(
        f"document.getElementById('search_input').value = {json.dumps(query)}; document.querySelector('form').requestSubmit()"
    )
    visit.act(f"search[{query}]")
    assert browser.visible_texts() == visible(visit)
    options = visit.shop.by_asin[visit.goal.asin].options.values()
    chosen = [values[-1] for values in options if values]
    labels = [
        "next >",
        "< prev",
        visit.goal.asin.lower(),
        *chosen,
        "description",
        "< prev",
        "features",
        "< prev",
        "reviews",
    ]
    for label in [*labels, "< prev", "buy now"]:
        follow(browser, visit, label)
        visit.click(label)
        assert browser.visible_texts() == visible(visit), label
    checked = browser.evaluate("document.querySelectorAll('input:checked').length")
    assert checked == 0  # the page after the purchase has no options


def test_people_see_the_text_observation(shop: Catalogue, browser: Browser) -> None:
    with serving(shop) as site:
        for number in range(0, 60, 10):
            episode(browser, site, shop, number)


def test_people_see_the_text_observation_of_the_official_products(official_shop: Catalogue, browser: Browser) -> None:
    with serving(official_shop) as site:
        for number in (0, 1906, 4372):
            episode(browser, site, official_shop, number)


def test_a_chosen_option_is_shown_as_chosen(shop: Catalogue, browser: Browser, tmp_path: Path) -> None:
    number = next(number for number, goal in enumerate(shop.goals) if goal.goal_options)
    visit = Visit(shop, shop.goals[number], f"fixed_{number}", Rules(), np.random.default_rng(0))
    with serving(shop) as site:
        browser.go(f"{site}/fixed_{number}?click=back+to+search")
        browser.act(
            f"document.getElementById('search_input').value = {json.dumps(visit.goal.name)};"
            "document.querySelector('form').requestSubmit()"
        )
        visit.search(visit.goal.name.lower().split(" "))
        for label in (visit.goal.asin.lower(), *visit.goal.goal_options.values()):  # type: ignore[union-attr]
            follow(browser, visit, label)
            visit.click(label)
        shown = browser.evaluate("[...document.querySelectorAll('input:checked')].map(input => input.value)")
        assert shown == list(visit.options.values())
        assert browser.evaluate("document.getElementById('product-image').complete")
