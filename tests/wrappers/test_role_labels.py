"""RoleLabels: oracles label at once, judges at the end, and nobody sees the outcome."""

from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import pytest

from agentic_gym.episodes import Episode, Response
from agentic_gym.roles import JudgedStep, Role
from agentic_gym.wrappers import RoleLabels
from tests.toys import Corridor, Foreign, KnowingOracle, Sums


class Recorder:
    """A hindsight judge that keeps what it was shown."""

    def __init__(self, extra: int = 0) -> None:
        self.seen: list[tuple[str, Sequence[JudgedStep]]] = []
        self.extra = extra

    def label_episode(self, task: str, steps: Sequence[JudgedStep]) -> list[Role | None]:
        self.seen.append((task, steps))
        return [None, *[Role.EXPLORATION] * (len(steps) - 1 + self.extra)]


def test_the_environments_own_oracle_labels_each_step() -> None:
    env = RoleLabels(Sums())
    env.reset(seed=0, options={"task": 3})
    assert env.step("<python>1</python>")[4]["role"] is Role.EXPLORATION
    assert env.step("<answer>6</answer>")[4]["role"] is Role.DECISIVE
    env.reset(options={"task": 3})
    info = env.step("<answer>7</answer>")[4]
    assert info["role"] is Role.REGRESSION
    assert "roles" not in info


def test_a_hindsight_judge_labels_at_the_end_and_sees_no_outcome() -> None:
    judge = Recorder()
    env = RoleLabels(Sums(), judge)
    judge = env.judge  # type: ignore[assignment]
    for _ in range(2):
        env.reset(seed=0, options={"task": 3})
        info = env.step("<python>1</python>")[4]
        assert "role" not in info
        assert "roles" not in info
        info = env.step("<answer>6</answer>")[4]
        assert info["roles"] == [None, Role.EXPLORATION]
    task, steps = judge.seen[-1]
    assert task == "What is 3 + 3?"
    assert steps == (JudgedStep("<python>1</python>", "<result>1</result>"), JudgedStep("<answer>6</answer>", ""))


def test_labels_reach_the_episode() -> None:
    env = RoleLabels(Sums(), Recorder())
    observation, _ = env.reset(seed=0)
    episode = Episode("t", "", observation)
    for action in ("<python>1</python>", "<answer>6</answer>"):
        observation, reward, terminated, truncated, info = env.step(action)
        episode.record(Response(action), observation, reward, terminated, truncated, info)
    assert [step.role for step in episode.steps] == [None, Role.EXPLORATION]


def test_a_truncated_episode_is_judged_too() -> None:
    env = RoleLabels(Sums(max_turns=1), Recorder())
    env.reset()
    assert env.step("hm")[4]["roles"] == [None]


def test_a_judge_with_a_wrong_number_of_labels_is_refused() -> None:
    env = RoleLabels(Sums(), Recorder(extra=1))
    env.reset()
    with pytest.raises(ValueError, match="the judge gave 2 labels for 1 steps"):
        env.step("<answer>1</answer>")


@pytest.mark.parametrize("make", [Corridor, Foreign])
def test_without_an_oracle_a_judge_is_asked_for(make: Any) -> None:
    with pytest.raises(TypeError, match=f"{make.__name__} has no oracle of its own: pass judge="):
        RoleLabels(make())


def test_no_judge_is_refused() -> None:
    with pytest.raises(TypeError, match="pass judge=, an object with begin"):
        RoleLabels(Sums(), object())  # type: ignore[arg-type]


def test_a_foreign_environment_with_a_judge() -> None:
    env = RoleLabels(Foreign(), Recorder())
    env.reset()
    env.step("hi")
    assert env.step("stop")[4]["roles"] == [None, Role.EXPLORATION]


def test_the_spec_rebuilds_the_wrapper_with_its_judge() -> None:
    judge = KnowingOracle()
    env = RoleLabels(gym.make("toys/Sums-v0"), judge)
    assert env.judge is judge
    again = gym.make(env.spec)
    assert isinstance(again, RoleLabels)
    assert isinstance(again.judge, KnowingOracle)


def test_a_judge_that_cannot_be_copied_is_taken_as_it_is() -> None:
    class Client(Recorder):
        def __deepcopy__(self, memo: dict[int, Any]) -> Any:
            raise TypeError("holds a socket")

    env = RoleLabels(Sums(), Client())
    env.reset()
    assert env.step("<answer>1</answer>")[4]["roles"] == [None]
