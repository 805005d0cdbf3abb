"""Playing without learning, and the figures."""

import math

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.episodes import Episode
from agentic_gym.policies.base import Sampling
from agentic_gym.trainers.evaluation import by_level, evaluate, summarise
from agentic_gym.trainers.rollout import EnvPool
from tests.trainers.synthetic import episode


def test_figures_are_means_over_what_counts():
    episodes = [episode(1.0, 0), episode(0.0, 2, well_formed=False), episode(1.0, 4, masked=True)]
    s = summarise(episodes)
    assert (s.episodes, s.masked, s.success, s.score, s.calls) == (2, 1, 0.5, 0.5, 1.0)
    assert (s.turns, s.tokens, s.ill_formed) == (2.0, 10.0, 0.5)


def test_nothing_to_count_is_nan_not_zero():
    s = summarise([episode(1.0, masked=True)])
    assert (s.episodes, s.masked) == (0, 1)
    assert math.isnan(s.success)
    assert math.isnan(summarise([]).calls)


def test_levels_are_in_order():
    episodes = []
    for level in (10, 2, "hard", None, 2):
        episodes.append(episode(1.0))
        episodes[-1].level = level
    table = by_level(episodes)
    assert list(table)[:2] == [2, 10]
    assert set(table) == {2, 10, "hard", None}
    assert table[2].episodes == 2


def test_a_failed_reset_stands_in_no_level():
    broken = Episode("t", "", "")
    broken.mask("reset failed")
    played = Episode("t", "", "", level=0)
    assert list(by_level([played, broken])) == [0]
    assert by_level([broken]) == {}
    assert summarise([played, broken]).masked == 1


def test_evaluation_is_repeatable_and_changes_nothing(policy, make_env, tasks):
    ids = [task.id for task in tasks][::15]
    weights = {k: v.clone() for k, v in policy.model.state_dict().items()}
    seen = []
    with EnvPool(make_env) as pool:
        first = evaluate(policy, pool, ids, Sampling(max_tokens=12), samples=2, on_finished=seen.append)
        again = evaluate(policy, pool, ids, Sampling(max_tokens=12), samples=2)
        other = evaluate(policy, pool, ids, Sampling(max_tokens=12), samples=2, seed=1)
        forbidden = evaluate(policy, pool, ids, Sampling(max_tokens=12), tool_free=True)
    assert [e.trace.token_ids for e in first] == [e.trace.token_ids for e in again]
    assert [e.trace.token_ids for e in first] != [e.trace.token_ids for e in other]
    assert [e.task_id for e in first] == [i for i in ids for _ in range(2)]
    assert len(seen) == len(first)
    assert all(e.tool_free and e.tool_calls == 0 for e in forbidden)
    assert all(torch.equal(v, weights[k]) for k, v in policy.model.state_dict().items())
