from typing import Any

import gymnasium as gym
import pytest

import agentic_gym  # noqa: F401
from agentic_gym.envs.webshop.bots import OracleBot
from agentic_gym.envs.webshop.env import WebShop
from agentic_gym.wrappers.role_labels import RoleLabels


@pytest.fixture
def env() -> RoleLabels:
    return RoleLabels(gym.make("agentic_gym/WebShop-v0", products=100, max_turns=100))


def begin(env: RoleLabels, *, options: int = 1) -> WebShop:
    """Start the first goal that wants this many options, of a product with several values in each group."""
    shop = env.unwrapped
    assert isinstance(shop, WebShop)
    number = next(
        number
        for number, goal in enumerate(shop.catalogue.goals)
        if len(goal.goal_options) == options
        and all(len(values) > 2 for values in shop.catalogue.by_asin[goal.asin].options.values())
    )
    env.reset(options={"task": number})
    return shop


def roles(env: RoleLabels, *actions: str) -> str:
    return "".join(str(env.step(action)[4]["role"]) for action in actions)


def titled(shop: WebShop) -> str:
    return f"search[{shop.goal.name.lower()}]"


def wanted(shop: WebShop) -> list[str]:
    assert isinstance(shop.goal.goal_options, dict)
    return [f"click[{value}]" for value in shop.goal.goal_options.values()]


def unwanted(shop: WebShop) -> list[str]:
    """Values of the wanted group that do not satisfy the goal."""
    from agentic_gym.envs.webshop.reward import wishes_met

    goal = shop.goal
    assert isinstance(goal.goal_options, dict)
    (group,) = goal.goal_options
    values = shop.catalogue.by_asin[goal.asin].options[group]
    return [f"click[{value}]" for value in values if not wishes_met({group: value}, goal)]


def test_the_straight_way(env: RoleLabels) -> None:
    shop = begin(env)
    assert roles(env, titled(shop), f"click[{shop.goal.asin.lower()}]", *wanted(shop), "click[buy now]") == "EDDD"


def test_wrong_purchases_and_products(env: RoleLabels) -> None:
    shop = begin(env)
    assert roles(env, titled(shop)) == "E"
    other = next(
        label for label, node in shop.visit.clickables.items() if node.kind == "product" and node.text != shop.goal.asin
    )
    assert roles(env, f"click[{other}]", "click[< prev]", f"click[{other}]", "click[buy now]") == "ENRR"


def test_a_wrong_option_over_a_right_one(env: RoleLabels) -> None:
    shop = begin(env)
    roles(env, titled(shop), f"click[{shop.goal.asin.lower()}]")
    right, wrong = wanted(shop)[0], unwanted(shop)[0]
    assert roles(env, wrong, right, right, wrong, right, "click[buy now]") == "NDRRND"


def test_leaving_right_options_behind_and_coming_back(env: RoleLabels) -> None:
    shop = begin(env)
    target = f"click[{shop.goal.asin.lower()}]"
    roles(env, titled(shop), target)
    assert roles(env, "click[features]", "click[< prev]", "click[features]", "click[< prev]") == "ENRR"
    assert roles(env, *wanted(shop), "click[< prev]", target, *wanted(shop)) == "DRNN"


def test_empty_and_repeated_pages(env: RoleLabels) -> None:
    begin(env)
    assert roles(env, "search[the of]", "click[next >]", "click[< prev]", "click[next >]") == "NNNR"
    assert roles(env, "click[back to search]", "search[the of]", "search[the of]") == "NRR"


def test_reviews_hold_nothing_and_invalid_actions_change_nothing(env: RoleLabels) -> None:
    shop = begin(env)
    roles(env, titled(shop), f"click[{shop.goal.asin.lower()}]")
    assert roles(env, "click[reviews]", "nonsense", "nonsense", "<answer>x</answer>") == "NNRN"


def test_the_oracle_never_regresses(env: RoleLabels) -> None:
    bot = OracleBot(env)
    shop: Any = env.unwrapped
    for task in range(0, len(shop.tasks), 5):
        page, info = env.reset(options={"task": task})
        seen = ""
        terminated = False
        while not terminated:
            page, _, terminated, _, info = env.step(bot(page, info))
            seen += str(info["role"])
        assert set(seen) <= set("DEN")
        assert seen.endswith("D")
        assert seen.count("D") == 2 + len(shop.goal.goal_options)
