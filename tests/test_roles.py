"""Roles, their constants, and the two judge protocols."""

import json
import pickle

import pytest

from agentic_gym.roles import ROLE_CREDIT, HindsightJudge, OnlineJudge, Role


def test_credit_constants_of_the_paper() -> None:
    assert {str(role): credit for role, credit in ROLE_CREDIT.items()} == {"D": 1.0, "E": 0.5, "N": -0.1, "R": -0.5}


def test_credit_constants_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        ROLE_CREDIT[Role.DECISIVE] = 2.0  # type: ignore[index]


@pytest.mark.parametrize("role", Role)
def test_a_role_is_its_letter(role: Role) -> None:
    assert Role(role.value) is role
    assert f"{role}" == str(role) == role.value
    assert json.dumps(role) == f'"{role.value}"'
    assert pickle.loads(pickle.dumps(role)) is role


def test_judges_are_told_apart_by_their_methods() -> None:
    class Oracle:
        def begin(self, env, observation, info): ...
        def label(self, env, action, observation, info): ...

    class Hindsight:
        def label_episode(self, task, steps): ...

    assert isinstance(Oracle(), OnlineJudge)
    assert not isinstance(Oracle(), HindsightJudge)
    assert isinstance(Hindsight(), HindsightJudge)
    assert not isinstance(Hindsight(), OnlineJudge)
