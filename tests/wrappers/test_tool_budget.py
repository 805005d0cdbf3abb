"""ToolBudget: surplus calls are refused, on our environments and on foreign ones."""

import re

import gymnasium as gym
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.actions import Grammar
from agentic_gym.wrappers import ToolBudget, ToolFree
from agentic_gym.wrappers.tool_budget import LAST_TURN
from agentic_gym.wrappers.tool_free import REFUSAL
from tests.toys import Foreign, Sums

CALL, SEARCH = "<python>1</python>", "<search>1</search>"


def started(limit: int, max_turns: int = 8, **kwargs: object) -> ToolBudget:
    env = ToolBudget(Sums(max_turns=max_turns), limit, **kwargs)  # type: ignore[arg-type]
    env.reset(seed=0, options={"task": "sum-3"})
    return env


def test_calls_within_the_budget_run_and_the_surplus_does_not() -> None:
    env = started(2)
    statuses = [env.step(CALL)[4]["tool"].status for _ in range(4)]
    assert statuses == ["ok", "ok", "refused", "refused"]
    assert len(env.unwrapped.tools["python"].calls) == 2  # type: ignore[attr-defined]
    _, reward, terminated, _, info = env.step("<answer>6</answer>")
    assert (reward, terminated, info["tool_calls"], info["outcome"]) == (1.0, True, 2, "solved")


def test_a_refused_call_says_why_and_is_never_graded() -> None:
    env = started(0)
    observation, reward, terminated, _, info = env.step("<python>6</python><answer>6</answer>")
    assert "budget of 0 tool calls is used up" in observation
    assert (reward, terminated, info["success"], info["tool"].status) == (0.0, False, False, "refused")


def test_announcements() -> None:
    env = ToolBudget(Sums(), 2, per_tool={"search": 1})
    _, info = env.reset(seed=0)
    assert info["instructions"].endswith("You may call tools at most 2 times (search: 1).")
    assert env.step(CALL)[0].endswith("\n[tool calls left: 1]")
    quiet = ToolBudget(Sums(), 2, announce=False)
    assert quiet.reset(seed=0)[1]["instructions"] == Sums().instructions
    assert "left" not in quiet.step(CALL)[0]


def test_a_tool_of_its_own_limit() -> None:
    env = started(3, per_tool={"search": 1})
    assert [env.step(action)[4]["tool"].status for action in (SEARCH, SEARCH, CALL, CALL, CALL)] == [
        "ok", "refused", "ok", "ok", "refused",
    ]  # fmt: skip
    zero = started(3, per_tool={"python": 0})
    assert zero.step(CALL)[4]["tool"].status == "refused"
    assert zero.step(SEARCH)[4]["tool"].status == "ok"


def test_a_tool_that_raised_counts_and_one_that_is_down_does_not() -> None:
    env = started(1)
    assert env.step("<python>bad</python>")[4]["tool"].status == "raised"
    assert env.step(CALL)[4]["tool"].status == "refused"
    _, _, _, truncated, info = started(1).step("<python>down</python>")
    assert (truncated, info["outcome"]) == (True, "masked")


@pytest.mark.parametrize("length", [65_000, 65_024, 65_500, 65_536, 200_000])
def test_announcements_keep_an_observation_inside_the_space(length: int) -> None:
    env = started(9, max_turns=2)
    observation = env.step(f"<python>{'a' * length}b</python>")[0]
    assert env.observation_space.contains(observation)
    assert observation.endswith(f"b</result>\n[tool calls left: 8]\n{LAST_TURN}")
    marker = re.search(r"\n\[\.\.\. (\d+) characters left out \.\.\.\]\n", observation)
    missing = 0 if marker is None else int(marker[1]) - len(marker[0])
    whole = f"<result>{'a' * length}b</result>\n[tool calls left: 8]\n{LAST_TURN}"
    assert len(observation) + missing == len(whole)


def test_announcements_keep_a_foreign_observation_inside_its_space() -> None:
    env = ToolBudget(Foreign(), 9, parse=Grammar(tools=("python",)).parse)
    env.reset()
    observation = env.step(f"<python>{'a' * (1000 - 9 - 17)}</python>")[0]
    assert env.observation_space.contains(observation)
    assert observation.endswith("</python>\n[tool calls left: 8]")


def test_the_last_turn_is_for_the_answer() -> None:
    env = started(9, max_turns=3)
    assert LAST_TURN not in env.step("hm")[0]
    assert env.step("hm")[0].endswith(LAST_TURN)
    observation, _, terminated, truncated, info = env.step(CALL)
    assert "this was the last turn" in observation
    assert (terminated, truncated, info["outcome"], info["tool_calls"]) == (False, True, "budget", 0)
    free = started(9, max_turns=1, force_answer=False)
    assert free.step(CALL)[4]["tool"].status == "ok"


def test_one_turn_only_is_told_at_reset() -> None:
    observation, _ = ToolBudget(Sums(max_turns=1), 1).reset(seed=0)
    assert observation.endswith(LAST_TURN)


def test_turns_run_out_on_an_executed_call_is_a_turn_limit() -> None:
    env = started(9, max_turns=1, force_answer=False)
    assert env.step(CALL)[4]["outcome"] == "turn_limit"


def test_the_budget_is_new_in_every_episode() -> None:
    env = started(1)
    env.step(CALL)
    env.reset()
    assert env.step(CALL)[4]["tool"].status == "ok"


@pytest.mark.parametrize("limit", [-1, 1.5, None, "2"])
def test_bad_limits_are_refused(limit: object) -> None:
    with pytest.raises(ValueError, match="limit must be a whole number of calls, 0 or more; got"):
        ToolBudget(Sums(), limit)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="search must be a whole number"):
        ToolBudget(Sums(), 1, per_tool={"search": limit})  # type: ignore[dict-item]


def test_an_unknown_tool_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'pyhton' is no tool of Sums: it has python, search"):
        ToolBudget(Sums(), 1, per_tool={"pyhton": 1})


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 4), st.lists(st.sampled_from([CALL, SEARCH, "hm", "<python>bad</python>"]), max_size=9))
def test_the_budget_is_never_exceeded(limit: int, actions: list[str]) -> None:
    env = started(limit, max_turns=10)
    for action in actions:
        assert env.step(action)[4]["tool_calls"] <= limit


# Foreign environments.


def test_a_foreign_environment_needs_a_parser() -> None:
    with pytest.raises(TypeError, match=r"Foreign is not a TextEnv.*pass parse="):
        ToolBudget(Foreign(), 1)


def test_a_foreign_environment_never_sees_a_refused_call() -> None:
    env = ToolBudget(Foreign(), 1, parse=Grammar(tools=("python",)).parse)
    observation, info = env.reset()
    assert observation == "hello"
    assert info["instructions"] == "You may call tools at most 1 times."
    assert env.step(CALL)[4]["tool_calls"] == 1
    observation, reward, terminated, truncated, info = env.step(CALL)
    assert "used up" in observation
    assert (reward, terminated, truncated, info["tool_calls"]) == (0.0, False, False, 1)
    assert env.unwrapped.received == [CALL]  # type: ignore[attr-defined]
    assert env.step("stop")[2] is True


def test_calls_that_a_wrapper_below_refused_are_not_counted() -> None:
    parse = Grammar(tools=("python",)).parse
    env = ToolBudget(ToolFree(Foreign(), parse=parse), 1, parse=parse)
    env.reset(options={"tool_free": True})
    for _ in range(3):
        observation, _, _, _, info = env.step(CALL)
        assert observation == REFUSAL
        assert (info["tool"].status, info["tool"].name, info["tool_calls"]) == ("refused", "python", 0)


def test_endless_refusals_of_a_foreign_environment_are_truncated() -> None:
    env = ToolBudget(Foreign(), 0, parse=Grammar(tools=("python",)).parse)
    env.reset()
    steps = [env.step(CALL) for _ in range(env.max_refusals)]
    assert [truncated for _, _, _, truncated, _ in steps] == [False] * 7 + [True]
    assert steps[-1][4]["outcome"] == "budget"


# The stack.


def test_the_spec_rebuilds_the_stack() -> None:
    env = ToolFree(ToolBudget(gym.make("toys/Sums-v0"), 3, per_tool={"python": 2}, announce=False))
    spec = env.spec
    assert spec is not None
    again = gym.make(spec)
    assert repr(again) == repr(env)
    budget = again.env
    assert isinstance(budget, ToolBudget)
    assert (budget.limit, budget.per_tool, budget.announce) == (3, {"python": 2}, False)
