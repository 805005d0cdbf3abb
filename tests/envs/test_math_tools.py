"""MathTools: the real environment with the real interpreter and grader, against hostile agents too."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from agentic_gym.check_env import check_text_env
from agentic_gym.envs.math_tools import MathTools
from agentic_gym.episodes import ToolEvent
from agentic_gym.roles import Role
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.wrappers import RecordEpisodes, RoleLabels, ToolBudget, ToolFree
from tests.toys import Echo

ID = "agentic_gym/MathTools-v0"
TASKS = TaskSet([Task("t1", "What is 6 * 7?", "42", 2), Task("t2", "Half of one?", "1/2", 0)], name="two")


@pytest.fixture
def env() -> Iterator[Any]:
    env = gym.make(ID, tasks=TASKS, cache=True)
    env.reset(seed=0, options={"task": "t1"})
    yield env
    env.close()


def test_think_call_read_answer(env: Any) -> None:
    observation, reward, terminated, truncated, info = env.step("<think>hm</think><python>x = 6\nprint(x * 7)</python>")
    assert (observation, reward, terminated, truncated) == ("<result>42</result>", 0.0, False, False)
    assert info["tool"].status == "ok"
    assert info["tool"].argument == "x = 6\nprint(x * 7)"
    observation, reward, terminated, truncated, info = env.step("<answer>The answer is \\boxed{42}</answer>")
    assert (observation, reward, terminated, truncated) == ("Right.", 1.0, True, False)
    assert (info["success"], info["outcome"], info["score"], info["tool_calls"]) == (True, "solved", 1.0, 1)
    assert info["grade"] == "exact"


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("42", True),
        ("\\boxed{42.0}", True),
        ("$42$", True),
        ("\\boxed{41}", False),
        ("42 or 43", False),
        ("forty-two", False),
    ],
)
def test_answers(env: Any, answer: str, right: bool) -> None:
    _, reward, terminated, _, info = env.step(f"<answer>{answer}</answer>")
    assert (reward, terminated, info["success"]) == (float(right), True, right)


def test_an_equal_form_is_right(env: Any) -> None:
    env.reset(options={"task": "t2"})
    assert env.step("<answer>\\boxed{0.5}</answer>")[4]["success"] is True


def test_an_error_of_the_code_is_feedback(env: Any) -> None:
    observation, _, terminated, truncated, info = env.step("<python>1 / 0</python>")
    assert "ZeroDivisionError" in observation
    assert (info["tool"].status, info["tool_calls"], terminated, truncated) == ("raised", 1, False, False)


def test_code_that_never_ends_is_stopped() -> None:
    env = gym.make(ID, tasks=TASKS, timeout=0.5)
    env.reset(seed=0)
    observation, _, _, _, info = env.step("<python>while True: pass</python>")
    assert info["tool"].status == "raised"
    assert "0.5 seconds" in observation


def test_output_cannot_answer(env: Any) -> None:
    observation, *_ = env.step("<python>print('</result><answer>42</answer>')</python>")
    assert observation.count("</result>") == 1
    assert "<answer>" not in observation


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"levels": [0]},
        {"tasks": "arithmetic"},
        {"tasks": TASKS},
        {"levels": [2, 5], "max_turns": 2, "render_mode": "ansi"},
    ],
)
def test_both_checkers_pass(kwargs: dict[str, Any]) -> None:
    check_text_env(gym.make(ID, **kwargs))
    gymnasium_check_env(gym.make(ID, **kwargs).unwrapped, skip_render_check=True)


def test_levels_choose_tasks() -> None:
    env = MathTools(levels=[3])
    assert {env.reset(seed=seed)[1]["level"] for seed in range(5)} == {3}
    with pytest.raises(ValueError, match="9"):
        MathTools(levels=[9])
    with pytest.raises((ValueError, FileNotFoundError), match="arithmetc"):
        MathTools("arithmetc")


def test_tasks_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    TASKS.to_jsonl(path)
    env = gym.make(ID, tasks=path)
    assert env.reset(options={"task": "t2"})[0] == "Half of one?"


def test_the_spec_rebuilds_the_whole_stack(tmp_path: Path) -> None:
    env = RecordEpisodes(
        RoleLabels(ToolBudget(ToolFree(gym.make(ID, levels=[1], max_turns=3)), limit=2)), tmp_path / "e.jsonl"
    )
    again = gym.make(env.spec)
    assert str(again) == str(env)
    first, second = env.reset(seed=3), again.reset(seed=3)
    assert first == second
    assert second[1]["turns_left"] == 3


def test_the_default_texts_do_not_depend_on_the_process() -> None:
    assert gym.make(ID).reset(seed=11)[0] == gym.make(ID).reset(seed=11)[0]
    assert [gym.make(ID).reset(seed=s)[1]["task_id"] for s in range(4)] == GOLDEN


GOLDEN = ["multiple_count-1781-15-18-8", "multiply-68-88", "multiple_count-2551-8-9-11", "digit_sum-21-15"]
"""The tasks of seeds 0 to 3 on every machine."""


# Roles from the known answer.


def roles_of(*actions: str) -> list[Role]:
    env = RoleLabels(gym.make(ID, tasks=TASKS, cache=True))
    env.reset(seed=0, options={"task": "t1"})
    return [env.step(action)[4]["role"] for action in actions]


@pytest.mark.parametrize(
    ("actions", "roles"),
    [
        (["<answer>42</answer>"], "D"),
        (["<answer>41</answer>"], "R"),
        (["<python>print(6*7)</python>", "<answer>42</answer>"], "DD"),
        (["<python>print(6*7)</python>", "<python>print(7*6)</python>"], "DN"),  # the value is known already
        (["<python>print(6*7)</python>", "<python>print(6*7)</python>"], "DR"),
        (["<python>print(6)</python>", "<python>print(6)</python>", "<python>print(7)</python>"], "ERE"),
        (["<python>print(6)</python>", "<python>print( 6)</python>"], "EN"),
        (["<python>1/0</python>", "hm", "<python>x = 1</python>"], "NNN"),
        (["<python>print(142)</python>", "<python>print('x = 42.0')</python>"], "ED"),
    ],
)
def test_the_oracle(actions: list[str], roles: str) -> None:
    assert "".join(map(str, roles_of(*actions))) == roles


# No tool call is ever graded as an answer, no answer is ever executed, nothing raises.

PIECES = [
    "<python>", "</python>", "<answer>", "</answer>", "<tool_call>", "</tool_call>", "<think>", "</think>", "<result>",
    "</result>", "<action>", "</action>", "<pyth", "on>", "</", "<", ">", "<PYTHON>", "< answer >", "print(42)", "42",
    "\\boxed{42}", '{"name": "python", "arguments": {"code": "print(42)"}}', '{"name": "python", "arguments": "42"}',
    '{"name": "answer"}', '{"name": "python", "arguments": {"code": "\\u003canswer>42\\u003c/answer>"}}', "\0", "\n",
    " ", "<|im_end|>", "\ud800", "é北",
]  # fmt: skip


class Watched(MathTools):
    """MathTools with a tool that remembers, and a record of what was graded."""

    def __init__(self) -> None:
        super().__init__(TASKS, max_turns=10**9)
        self.echo = Echo()
        self.tools = {"python": self.echo}
        self.graded: list[str] = []

    def _act(self, action: Any) -> Any:
        self.graded.append(action.argument)
        return super()._act(action)


WATCHED = Watched()


def check_one(action: str) -> None:
    env = WATCHED
    env.reset(seed=0, options={"task": "t1"})
    env.echo.calls.clear()
    env.graded.clear()
    observation, reward, terminated, truncated, info = env.step(action)
    assert env.observation_space.contains(observation)
    parsed, event = info["action"], info["tool"]
    assert len(env.echo.calls) + len(env.graded) <= 1
    assert (len(env.echo.calls) == 1) == (parsed.kind == "tool") == (event is not None)
    assert (len(env.graded) == 1) == (parsed.kind == "answer") == terminated
    assert terminated or reward == 0
    if parsed.kind == "tool":
        assert isinstance(event, ToolEvent)
        assert env.echo.calls == [parsed.argument] == [event.argument]
        assert "<answer>" not in parsed.argument
        if parsed.argument.strip() != "down":
            assert not truncated
    if parsed.kind == "answer":
        assert env.graded == [parsed.argument]
        assert "<python>" not in parsed.argument


def test_thousands_of_random_actions() -> None:
    rng = random.Random(0)
    for _ in range(6000):
        check_one("".join(rng.choice(PIECES) for _ in range(rng.randrange(1, 14))))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=20).map("".join))
def test_hostile_actions(action: str) -> None:
    check_one(action)


@pytest.mark.parametrize("piece", PIECES)
def test_a_hundred_kilobytes(piece: str) -> None:
    check_one(piece * (100_000 // len(piece)))
    check_one(f"<python>{piece * (100_000 // len(piece))}</python>")
    check_one(f"<answer>{piece * (100_000 // len(piece))}</answer>")


def test_real_calls_of_hostile_code_never_raise(env: Any) -> None:
    codes = [
        "\0",
        "print('\ud800')",
        "é = 1\nprint(é)",
        "print('<answer>')",
        "x" * 100_000,
        "import os; os._exit(3)",
        ")",
    ]
    for code in codes:
        env.reset(seed=0, options={"task": "t1"})
        _, _, terminated, truncated, info = env.step(f"<python>{code}</python>")
        assert not terminated
        assert not truncated
        assert info["tool"] is None or info["tool"].status in ("ok", "raised")
