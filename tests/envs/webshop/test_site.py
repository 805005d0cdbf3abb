import pytest

from agentic_gym.envs.webshop.catalogue import Catalogue
from agentic_gym.envs.webshop.visit import Rules, Visit

pytest.importorskip("starlette")
import numpy as np
from starlette.testclient import TestClient

from agentic_gym.envs.webshop.site import make_app
from tests.envs.webshop.page_text import text_nodes


@pytest.fixture
def client(shop: Catalogue) -> TestClient:
    return TestClient(make_app(shop, sessions=3))


def observation(html: str) -> str:
    return " [SEP] ".join(node.strip() for node in text_nodes(html))


def test_an_episode_reads_like_the_text_observations(shop: Catalogue, client: TestClient) -> None:
    visit = Visit(shop, shop.goals[2], "fixed_2", Rules(), np.random.default_rng(0))
    assert observation(client.get("/fixed_2").text) == visit.observation("text")
    query = visit.goal.name.lower()
    visit.act(f"search[{query}]")
    assert observation(client.post("/fixed_2", data={"search_query": query}).text) == visit.observation("text")
    for label in (visit.goal.asin.lower(), "features", "< prev"):
        by_link = visit.clickables[label].kind != "button"
        visit.click(label)
        page = (
            client.get("/fixed_2", params={"click": label})
            if by_link
            else client.post("/fixed_2", data={"click": label})
        )
        assert observation(page.text) == visit.observation("text")
    visit.click("buy now")
    page = client.post("/fixed_2", data={"click": "buy now"})
    assert observation(page.text) == visit.observation("text")
    assert page.url.path == "/fixed_2"
    assert not page.url.query


def test_reloading_repeats_nothing(client: TestClient) -> None:
    first = client.post("/fixed_0", data={"search_query": "with"}).text
    assert client.get("/fixed_0").text == client.get("/fixed_0").text == first


def test_sessions_do_not_meet(client: TestClient) -> None:
    client.post("/fixed_0", data={"search_query": "with"})
    assert "Search</button>" in client.get("/fixed_1").text
    home = client.get("/")
    assert home.url.path.startswith("/visit_")


def test_old_sessions_are_forgotten_with_their_goal_kept(client: TestClient) -> None:
    start = client.get("/someone").text
    client.post("/someone", data={"search_query": "with"})
    for number in range(3):
        client.get(f"/fixed_{number}")
    assert client.get("/someone").text == start


@pytest.mark.parametrize("path", ["/fixed_99999", "/a.b", "/" + "x" * 65, "/a/b"])
def test_what_is_not_there(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_hostile_forms(client: TestClient) -> None:
    assert client.post("/fixed_0", data={"click": "nope"}).status_code == 200
    assert client.post("/fixed_0", content=b"\xff\xfe&&=").status_code == 200
    assert client.post("/fixed_0", data={"search_query": "x" * 70_000}).status_code == 413


def test_style_and_pictures_are_served_here(client: TestClient) -> None:
    assert client.get("/static/style.css").headers["content-type"].startswith("text/css")
    picture = client.get("/images/AG12.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert "AG12" in picture.text
