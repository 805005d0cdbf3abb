import hashlib
import json
from collections import Counter
from pathlib import Path

import gymnasium as gym
import pytest

import agentic_gym  # noqa: F401
from agentic_gym.envs.webshop.bots import OracleBot
from agentic_gym.envs.webshop.catalogue import load_catalogue
from agentic_gym.envs.webshop.expert import short_queries
from agentic_gym.envs.webshop.generator import generate, main


def digest(size: int) -> str:
    content = generate(size)
    data = [content.products, content.attributes, content.human, content.nouns]
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def test_the_default_shop_never_changes_unnoticed() -> None:
    assert digest(1000) == "75c12096dacedff741bea8b48bc2a53035ce0c149e5b7616d1465dae1d4a50e3"


def test_the_shop_has_what_makes_the_real_one_hard() -> None:
    content = generate(1000)
    products = content.products
    shares = {name: number / 1000 for name, number in Counter(product["category"] for product in products).items()}
    assert shares == pytest.approx(
        {"beauty": 0.24, "electronics": 0.23, "garden": 0.21, "fashion": 0.2, "grocery": 0.12}, abs=0.05
    )
    titles = [len(product["name"]) for product in products]
    assert min(titles) >= 60
    assert max(titles) <= 200
    groups = [product["customization_options"] for product in products if product["customization_options"]]
    assert 0.4 < len(groups) / 1000 < 0.6
    assert any(None in group.values() for group in groups)
    values = {entry["value"] for group in groups for entries in group.values() if entries for entry in entries}
    assert {"Large", "X-Large", "Black/White", '28" x 28"', "Description"} <= values
    assert 0.05 < sum(product["pricing"].count("$") == 2 for product in products) / 1000 < 0.15
    assert 0.2 < sum(not product["full_description"] for product in products) / 1000 < 0.4
    assert any(product["pricing"] == "" for product in products)
    assert any(isinstance(product["small_description"], str) for product in products)
    assert 0.3 < sum("instruction" in entry for entry in content.attributes.values()) / 1000 < 0.55
    counts = [len(entry["attributes"]) for entry in content.attributes.values()]
    assert 0.12 < counts.count(0) / 1000 < 0.25
    assert max(counts) == 6


def test_distractors_differ_by_one_attribute() -> None:
    content = generate(1000)
    by_query: dict[str, list[set[str]]] = {}
    for product in content.products:
        by_query.setdefault(product["query"], []).append(set(content.attributes[product["asin"]]["attributes"]))
    pairs = [(a, b) for sets in by_query.values() for a in sets for b in sets if len(a) > 2 and len(a) == len(b)]
    assert sum(len(a & b) == len(a) - 1 for a, b in pairs) > 50


def test_title_nouns_are_words_of_the_title() -> None:
    content = generate(200)
    assert content.nouns is not None
    for product in content.products:
        found = content.nouns[product["asin"]]
        assert found
        assert all(noun in product["name"].lower() for noun in found)


def test_asins_are_distinct_and_of_the_official_form() -> None:
    asins = [product["asin"] for product in generate(1000).products]
    assert len(set(asins)) == 1000
    assert all(len(asin) == 10 and asin == asin.upper() for asin in asins)


def test_written_files_are_the_shop(tmp_path: Path) -> None:
    main([str(tmp_path), "--products", "50"])
    from_files, generated = load_catalogue(tmp_path), load_catalogue(products=50)
    assert from_files.goals == generated.goals
    assert from_files.prices == generated.prices


def unsolved(kind: str, size: int, *, every: int = 1) -> list[int]:
    env = gym.make("agentic_gym/WebShop-v0", goals=kind, products=size)
    bot = OracleBot(env)
    failed = []
    for task in range(0, len(env.unwrapped.tasks), every):  # type: ignore[attr-defined]
        page, info = env.reset(options={"task": task})
        done = truncated = False
        reward: object = 0.0
        while not (done or truncated):
            page, reward, done, truncated, info = env.step(bot(page, info))
        if reward != 1.0:
            failed.append(task)
    return failed


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("size", [100, 1000])
def test_every_goal_can_be_met(kind: str, size: int) -> None:
    assert unsolved(kind, size) == []


@pytest.mark.parametrize("kind", ["synthetic", "human"])
@pytest.mark.parametrize("size", [100, 1000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_every_target_is_found_by_a_short_query_from_its_instruction(kind: str, size: int) -> None:
    shop = load_catalogue(products=size, goals=kind)  # type: ignore[arg-type]
    for goal in {goal.asin: goal for goal in shop.goals}.values():
        queries = list(short_queries(goal))[:-1]  # all but the one from the title
        assert all(len(query.split()) <= 8 for query in queries)
        found = any(shop.products[number].asin == goal.asin for query in queries for number in shop.index.top(query))
        assert found, goal.instruction_text


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["synthetic", "human"])
def test_goals_of_the_large_shop_can_be_met(kind: str) -> None:
    assert unsolved(kind, 10_000, every=7) == []
