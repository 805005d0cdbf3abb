import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.trainers.credit import toolstar

BOTH = ("python", "search")
GOOD = r"<think>why</think><search>q</search><result>text</result><answer>\boxed{4}</answer>"


@pytest.mark.parametrize(
    ("score", "fine", "tools", "expected"),
    [
        (1.0, False, BOTH, -1.0),
        (None, True, BOTH, -1.0),
        (0.0, True, BOTH, 0.0),
        (0.4, True, ("search",), 0.4),
        (0.4, True, BOTH, 0.5),
        (1.0, True, ("search", "python", "search"), 1.1),
    ],
)
def test_reward(score, fine, tools, expected):
    assert toolstar.reward(score, well_formed=fine, tools_used=tools) == pytest.approx(expected)


def test_reward_without_bonus_and_with_a_score_out_of_range():
    assert toolstar.reward(0.4, well_formed=True, tools_used=BOTH, bonus=0.0) == 0.4
    with pytest.raises(ValueError, match="score must lie in"):
        toolstar.reward(1.5, well_formed=True)


@pytest.mark.parametrize(
    "response",
    [
        GOOD,
        r"<think>a</think><answer>\boxed{1}</answer>",
        r"<think>a</think> <python>1</python> <result>1</result><think>b</think><answer>so \boxed{1}</answer>",
        r"<think>a</think><search>q</search><result><answer>trap</answer></think></result><answer>\boxed{1}</answer>",
    ],
)
def test_good_formats(response):
    assert toolstar.keeps_format(response)


@pytest.mark.parametrize(
    "response",
    [
        "",
        r"<answer>\boxed{1}</answer>",
        r"<think>a<answer>\boxed{1}</answer>",
        r"<think>a</think></think><answer>\boxed{1}</answer>",
        r"<think>a</think><answer>1</answer>",
        r"<think>a</think>\boxed{1}<answer>1</answer>",
        r"<think>a</think><answer>\boxed{1}</answer><answer>\boxed{1}</answer>",
        r"<think>a</think><search>q</search><answer>\boxed{1}</answer>",
        r"<think>a</think><search>q</search>",
        r"<think>a</think><result>r</result><answer>\boxed{1}</answer>",
        r"<think>a</think><search>q<result>r</result><answer>\boxed{1}</answer>",
        r"<think>a</think><search>q</python><result>r</result><answer>\boxed{1}</answer>",
    ],
)
def test_bad_formats(response):
    assert not toolstar.keeps_format(response)


def test_box_is_a_switch():
    assert toolstar.keeps_format("<think>a</think><answer>1</answer>", boxed=False)


@given(
    st.lists(
        st.sampled_from(["<think>", "</think>", "<search>", "</search>", "<result>", "</result>", "<answer>", "x"])
    )
)
def test_any_text_gets_a_verdict(parts):
    assert toolstar.keeps_format("".join(parts)) in (True, False)


def test_hostile_text_takes_linear_time():
    began = time.perf_counter()
    toolstar.keeps_format("<think>" * 200_000)
    toolstar.keeps_format("<" * 1_000_000)
    assert time.perf_counter() - began < 5.0
