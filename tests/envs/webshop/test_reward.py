from dataclasses import replace
from typing import Any

import pytest

from agentic_gym.envs.webshop.catalogue import Catalogue
from agentic_gym.envs.webshop.goals import Goal
from agentic_gym.envs.webshop.reward import purchase_reward, similar, wishes_met
from tests.envs.webshop.records import products

GOAL = Goal(
    "A0",
    "garden",
    "table lamps",
    "Lamp",
    "Home \u203a Lamps \u203a Table",
    "buy",
    ("bright",),
    20.0,
    {"size": "x-large"},
    1.0,
)


def reward(goal: Goal = GOAL, change: dict[str, Any] | None = None, **given: Any) -> tuple[float, dict[str, Any]]:
    (product,) = products(change or {})
    arguments: dict[str, Any] = {"price": 5.0, "options": {}, "nouns": ["lamp"], "goal_nouns": ["lamp"], **given}
    return purchase_reward(product, goal, **arguments)


def test_all_met() -> None:
    value, info = reward(options={"size": "x-large"})
    assert value == 1.0
    assert info == {
        "r_type": 1.0, "query_match": True, "category_match": True, "title_score": 1.0, "r_att": 1.0, "w_att": 1 / 3,
        "r_option": 1.0, "w_option": 1 / 3, "r_price": True, "w_price": 1 / 3,
    }  # fmt: skip


def test_parts_count_equally() -> None:
    assert reward()[0] == pytest.approx(2 / 3)
    assert reward(price=20.5)[0] == pytest.approx(1 / 3)
    assert "r_option" not in reward(replace(GOAL, goal_options={}))[1]


@pytest.mark.parametrize(
    ("nouns", "goal_nouns", "same_kind", "factor"),
    [
        (["lamp"], ["lamp"], False, 1.0),
        (["lamp"], ["lamp", "a", "b", "c", "d"], False, 0.5),  # exactly 0.2 is not enough alone
        (["lamp"], ["lamp", "a", "b", "c", "d"], True, 1.0),
        (["lamp"], ["lamp", *"abcdefghij"], True, 0.1),
        (["desk"], ["lamp"], True, 0.0),
        (["desk"], [], False, 0.5),
        (["lamp"], ["lamp", "lamp", "lamp"], False, 1.0),  # repetitions count in the length
    ],
)
def test_the_type_factor(nouns: list[str], goal_nouns: list[str], same_kind: bool, factor: float) -> None:
    goal = GOAL if same_kind else replace(GOAL, query="desks", product_category="Office \u203a Lamps")
    value, info = reward(goal, nouns=nouns, goal_nouns=goal_nouns)
    assert info["r_type"] == factor
    assert value == pytest.approx(2 / 3 * factor)


def test_an_attribute_is_met_by_similar_words_or_in_a_text() -> None:
    assert reward(replace(GOAL, attributes=("light bright",)))[1]["r_att"] == 1.0  # a subset of the words
    assert reward(replace(GOAL, attributes=("a lamp",)))[1]["r_att"] == 1.0  # in the description
    assert reward(replace(GOAL, attributes=("A LAMP.",)), {"name": "x"})[1]["r_att"] == 0.0  # its case counts


def test_similarity_is_thefuzzs_ratio_above_85() -> None:
    assert similar("Machine-Washable", "machine washable")
    assert similar("large", "x large")
    assert not similar("long sleeve", "short sleeve")
    assert not similar("", "")
    assert not similar("é", "é")  # nothing is left of either
    assert similar("café table", "caf table")


@pytest.mark.parametrize(
    ("wanted", "chosen", "pairs", "met"),
    [
        ({"size": "x-large"}, ["large"], True, 1),
        ({"size": "x-large"}, ["large"], False, 1),  # the fuzzy comparison alone lets it through
        ({"size": "large"}, ["x-large"], True, 0),
        ({"color": "dark red"}, ["dark wood"], True, 1),  # the choice becomes "dark", the pair keeps its words
        ({"color": "dark red"}, ["dark blue"], True, 0),  # the choice becomes "blue"
        ({"size": "x-large"}, ["size"], True, 1),  # the group's own name counts
        ({"size": "x-large"}, ["size"], False, 0),
        ({"color": "red"}, ["red stripes"], True, 1),
        ({"kind": "redwood"}, ["redwood"], True, 0),  # the choice becomes "red"
        ({"kind": "redwood"}, ["redwood"], False, 1),
        (("standard",), ["tan"], True, 1),
        (("red", "blue"), ["red"], True, 1),
        (("red", "dark red"), ["red"], True, 1),
        ((), ["red"], True, 0),
    ],
)
def test_wanted_options(wanted: Any, chosen: list[str], pairs: bool, met: int) -> None:
    options = {str(number): value for number, value in enumerate(chosen)}
    assert wishes_met(options, replace(GOAL, goal_options=wanted), pair_options=pairs) == met


def test_the_recorded_rewards(official_shop: Catalogue, golden: Any) -> None:
    for row in golden("golden_rewards.jsonl.gz"):
        product, goal = official_shop.by_asin[row["asin"]], official_shop.goals[row["goal"]]
        value, info = official_shop.reward(product, goal, row["options"])
        assert info.pop("noun_source") == "sidecar"
        assert (value, info) == (row["reward"], row["info"])
