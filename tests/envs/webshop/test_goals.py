import random
from typing import Any

import pytest

from agentic_gym.envs.webshop.catalogue import load_catalogue
from agentic_gym.envs.webshop.goals import NO_CAP, draw_prices, human_goals, shuffled, synthetic_goals
from agentic_gym.envs.webshop.products import CatalogueError, Product
from tests.envs.webshop.records import products


def synthetic(items: tuple[Product, ...], seed: int = 0) -> list[Any]:
    rng = random.Random(seed)
    return synthetic_goals(items, draw_prices(items, rng), rng)


def test_one_goal_per_combination_of_options() -> None:
    groups = {"size": [{"value": "s"}, {"value": "l"}], "Color": [{"value": "red"}, {"value": "blue"}]}
    goals = synthetic(
        products(
            {"customization_options": groups}, instruction="Find me lamps", instruction_attributes=["bright", "new"]
        )
    )
    assert [goal.goal_options for goal in goals] == [
        {"color": color, "size": size} for color in ("red", "blue") for size in ("s", "l")
    ]
    assert goals[1].instruction_text.startswith("Find me lamps with color: red, and size: l, and price lower than ")
    assert {goal.price_upper for goal in goals} == {goals[0].price_upper}
    assert [goal.weight for goal in goals] == [pytest.approx(1 / 4)] * 4


def test_an_empty_option_group_leaves_no_goal() -> None:
    items = products({"customization_options": {"size": []}}, instruction="Find", instruction_attributes=["bright"])
    assert synthetic(items) == []


@pytest.mark.parametrize(
    ("price", "caps"), [("$5.00", {20, 30, 40}), ("$979.99", {990}), ("$980.00", {NO_CAP}), ("$2000", {NO_CAP})]
)
def test_the_price_cap_is_one_of_the_next_tens(price: str, caps: set[float]) -> None:
    items = products({"pricing": price}, instruction="Find", instruction_attributes=["bright"])
    drawn = {synthetic(items, seed)[0].price_upper for seed in range(40)}
    assert drawn == caps
    text = synthetic(items)[0].instruction_text
    assert text.endswith(" dollars") == (NO_CAP not in caps)


def test_an_instruction_needs_attributes() -> None:
    with pytest.raises(CatalogueError, match="no instruction_attributes"):
        synthetic(products({}, instruction="Find"))


def test_human_goals() -> None:
    items = products({}, {})
    records = {
        "A1": [
            {"instruction": "..i need a lamp.", "instruction_attributes": ["bright"], "instruction_options": ["red"]},
            {"instruction": "nothing wanted", "instruction_attributes": [], "instruction_options": []},
        ]
    }
    (goal,) = human_goals(items, {"A0": 2000.0, "A1": 2000.0}, records, random.Random(0))
    assert (goal.instruction_text, goal.goal_options, goal.weight) == ("i need a lamp", ("red",), 1.0)
    with pytest.raises(CatalogueError, match="A1"):
        human_goals(items, {"A1": 1.0}, {"A1": [{"instruction": "x"}]}, random.Random(0))


def test_the_shuffle_does_not_touch_the_global_generator() -> None:
    state = random.getstate()
    items = products(*[{}] * 20, instruction="Find", instruction_attributes=["bright"])
    goals = synthetic(items)
    assert shuffled(goals) == shuffled(list(goals)) != tuple(goals)
    assert random.getstate() == state


def test_the_recorded_goals_and_prices(official_shop: Any, golden: Any) -> None:
    recorded = golden("synthetic_goals_seed0.json.gz")
    assert official_shop.prices == recorded["prices"]
    assert [goal.as_dict() for goal in official_shop.goals] == recorded["goals"]


def test_the_human_goals_of_the_official_products(official_data: Any) -> None:
    assert len(load_catalogue(official_data, goals="human").goals) == 13
