"""ToolFree: episodes without tools, told and enforced."""

import gymnasium as gym
import pytest

from agentic_gym.actions import Grammar
from agentic_gym.wrappers import RoleLabels, ToolBudget, ToolFree
from agentic_gym.wrappers.tool_budget import LAST_TURN
from agentic_gym.wrappers.tool_free import NOTICE, REFUSAL
from tests.toys import Foreign, Sums

CALL = "<python>1</python>"
PARSE = Grammar(tools=("python",)).parse


def test_the_option_decides_and_active_is_the_default() -> None:
    for active in (False, True):
        env = ToolFree(Sums(), active)
        assert env.reset(seed=0)[1]["tool_free"] is active
        for forced in (False, True):
            _, info = env.reset(seed=0, options={"tool_free": forced, "task": 2})
            assert (info["tool_free"], info["task_id"]) == (forced, "sum-2")
            assert env.step(CALL)[4]["tool"].status == ("refused" if forced else "ok")


def test_the_instructions_forbid_tools_and_the_old_ones_are_kept() -> None:
    env = ToolFree(Sums(instructions="Add."))
    _, info = env.reset(options={"tool_free": True})
    assert (info["instructions"], info["base_instructions"]) == (f"Add.\n{NOTICE}", "Add.")
    _, info = env.reset()
    assert info["instructions"] == "Add."
    assert "base_instructions" not in info


def test_a_refused_call_executes_nothing_and_costs_the_turn() -> None:
    env = ToolFree(Sums(max_turns=2), active=True)
    env.reset(seed=0, options={"task": 3})
    observation, reward, _, _, info = env.step("<think>try</think>" + CALL)
    assert (observation, reward, info["tool_calls"], info["turns_left"]) == (REFUSAL, 0.0, 0, 1)
    assert env.unwrapped.tools["python"].calls == []  # type: ignore[attr-defined]
    assert env.step("<answer>6</answer>")[4]["success"] is True


def test_a_refusal_passes_through_the_wrappers_below() -> None:
    env = ToolFree(ToolBudget(Sums(), 1), active=True)
    env.reset(seed=0)
    for _ in range(3):
        assert env.step(CALL)[4]["tool"].status == "refused"
    env.reset(seed=0, options={"tool_free": False})
    assert env.step(CALL)[4]["tool"].status == "ok"


def test_budget_over_tool_free_counts_no_refused_call() -> None:
    env = ToolBudget(ToolFree(Sums(), active=True), 1)
    env.reset(seed=0)
    env.step(CALL)
    assert env.step(CALL)[0] == REFUSAL  # the budget is not used up: nothing was executed


STACKS = {
    "budget outside": lambda **kwargs: ToolBudget(ToolFree(Sums(**kwargs)), 2),
    "budget inside": lambda **kwargs: ToolFree(ToolBudget(Sums(**kwargs), 2)),
    "one between": lambda **kwargs: ToolFree(RoleLabels(ToolBudget(Sums(**kwargs), 2))),
    "foreign, outside": lambda: ToolBudget(ToolFree(Foreign(), parse=PARSE), 2, parse=PARSE),
    "foreign, inside": lambda: ToolFree(ToolBudget(Foreign(), 2, parse=PARSE), parse=PARSE),
}


@pytest.mark.parametrize("stack", STACKS)
def test_no_budget_is_announced_without_tools_whichever_wrapper_is_outside(stack: str) -> None:
    env = STACKS[stack]()
    budget = "You may call tools at most 2 times."
    for forced in (True, False, True):
        own = getattr(env.unwrapped, "instructions", "")
        _, info = env.reset(seed=0, options={"tool_free": forced})
        normal = "\n".join(filter(None, (own, budget)))
        if forced:
            assert info["instructions"] == "\n".join(filter(None, (own, NOTICE)))
            assert info["base_instructions"] == normal
        else:
            assert info["instructions"] == normal
            assert "base_instructions" not in info
        observations = [env.step(CALL)[0] for _ in range(2)]
        assert ("calls left" in "".join(observations)) is not forced
        assert (observations == [REFUSAL, REFUSAL]) is forced


@pytest.mark.parametrize("stack", ["budget outside", "budget inside"])
def test_the_last_turn_of_an_episode_without_tools_is_like_the_others(stack: str) -> None:
    env = STACKS[stack](max_turns=2)
    for forced in (True, False):
        env.reset(seed=0, options={"tool_free": forced})
        assert env.step("hm")[0].endswith(LAST_TURN) is not forced


def test_a_notice_of_ones_own() -> None:
    _, info = ToolFree(Sums(), True, notice="By heart.").reset()
    assert info["instructions"].endswith("\nBy heart.")


def test_a_foreign_environment() -> None:
    env = ToolFree(Foreign(), True, parse=Grammar(tools=("python",)).parse)
    _, info = env.reset()
    assert (info["instructions"], info["base_instructions"]) == (NOTICE, "")
    assert env.step(CALL)[0] == REFUSAL
    assert env.step("hi")[0] == "you said hi"
    assert env.unwrapped.received == ["hi"]  # type: ignore[attr-defined]


def test_the_spec_rebuilds_the_wrapper() -> None:
    env = ToolFree(gym.make("toys/Sums-v0"), active=True, notice="By heart.")
    again = gym.make(env.spec)
    assert isinstance(again, ToolFree)
    assert (again.active, again.notice) == (True, "By heart.")
