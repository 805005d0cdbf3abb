"""The policy protocol, functions as policies, and the settings of sampling."""

from __future__ import annotations

from typing import Any

import pytest

from agentic_gym.episodes import Episode, Response
from agentic_gym.policies.base import FunctionPolicy, Policy, Sampling, as_policy


def test_function_sees_last_observation_and_info() -> None:
    seen: list[Any] = []

    def agent(observation: str, info: Any) -> str:
        seen.append((observation, info))
        return f"<answer>{observation}</answer>"

    rows = [Episode("a", "", "first", info={"k": 1}), Episode("b", "", "other")]
    rows[1].record(Response("x"), "second", 0.0, False, False, {"k": 2})
    responses = as_policy(agent).respond(rows, Sampling())
    assert [r.text for r in responses] == ["<answer>first</answer>", "<answer>second</answer>"]
    assert seen == [("first", {"k": 1}), ("second", {"k": 2})]
    assert rows[1].last_observation == "second"  # unchanged


def test_a_policy_stays_itself() -> None:
    policy = as_policy(lambda observation, info: "x")
    assert isinstance(policy, FunctionPolicy)
    assert isinstance(policy, Policy)
    assert as_policy(policy) is policy

    class Own:
        def respond(self, episodes: Any, sampling: Sampling) -> list[Response]:
            return []

    own = Own()
    assert as_policy(own) is own


@pytest.mark.parametrize("value", [None, 3, "a text", ["x"]])
def test_what_is_no_policy(value: Any) -> None:
    with pytest.raises(TypeError, match="a policy has respond"):
        as_policy(value)


@pytest.mark.parametrize("value", [None, 3, b"x", Response("x")])
def test_function_must_return_text(value: Any) -> None:
    with pytest.raises(TypeError, match=f"got {type(value).__name__}"):
        as_policy(lambda observation, info: value).respond([Episode("t", "", "o")], Sampling())


def test_empty_batch() -> None:
    assert as_policy(lambda observation, info: "x").respond([], Sampling()) == []


@pytest.mark.parametrize(
    "settings",
    [{"temperature": -0.1}, {"top_p": 0.0}, {"top_p": 1.01}, {"max_tokens": 0}],
)
def test_bad_sampling(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be"):
        Sampling(**settings)


def test_sampling_is_a_value() -> None:
    assert Sampling() == Sampling(temperature=1.0)
    assert hash(Sampling(stop=("a",))) == hash(Sampling(stop=("a",)))
    with pytest.raises(AttributeError):
        Sampling().temperature = 2.0  # type: ignore[misc]
