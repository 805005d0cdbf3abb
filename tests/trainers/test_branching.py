"""Branching rollouts with a scripted token policy: who branches, what is shared, how many rows there are."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from agentic_gym.actions import Grammar
from agentic_gym.episodes import Response
from agentic_gym.policies.base import Sampling
from agentic_gym.trainers.algorithm import Branching, RolloutPlan
from agentic_gym.trainers.branching import branching_rollout, group_rollout
from agentic_gym.trainers.credit import arpo
from agentic_gym.trainers.rollout import EnvPool, groups_of
from tests.toys import Sums

GRAMMAR = Grammar(("python", "search"))


class Script:
    """Calls the tool ``calls`` times, then answers; one token a character; entropy as told per turn."""

    def __init__(self, calls=2, entropy=lambda episode: 1.0):
        self.calls, self.entropy = calls, entropy
        self.asked = Counter()

    def respond(self, episodes, sampling):
        assert sampling.entropies
        return [self.one(episode) for episode in episodes]

    def one(self, episode):
        turn = len(episode.steps)
        self.asked[episode.seed] += 1
        text = f"<python>{episode.seed % 1000}</python>" if turn < self.calls else f"<answer>{episode.seed}</answer>"
        n = len(text)
        tokens = [ord(c) for c in text]
        entropies = [self.entropy(episode)] * n
        return Response(text, [1, 2], tokens, [-0.5] * n, entropies, list(range(1, n + 1)))


def play(plan, script=None, tasks=(0, 1), seed=(0,), env=Sums, **kwargs):
    with EnvPool(env, threads=1) as pool:
        return branching_rollout(
            script or Script(), pool, list(tasks), plan, Sampling(), vocabulary=128, seed=seed, **kwargs
        )


@pytest.mark.parametrize("base", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("beam", [1, 2, 4])
def test_exactly_m_rows_and_whole_episodes(base, beam):
    episodes = play(RolloutPlan(8, branching=Branching(initial=3, beam=beam, base=base)))
    assert len(episodes) == 16
    for group in groups_of(episodes, 8):
        assert len({e.task_id for e in group}) == 1
        assert all(e.done and e.outcome in ("solved", "failed") for e in group)
        branches = [e for e in group if e.parent is not None]
        assert len(branches) == (0 if base == 0.0 or beam == 1 else 5 if base == 1.0 else len(branches))
        assert len({e.seed for e in group}) == 8


def test_a_branch_shares_its_prefix_and_then_goes_its_own_way():
    episodes = play(RolloutPlan(6, branching=Branching(initial=2, base=1.0)))
    for group in groups_of(episodes, 6):
        for row in group:
            if row.parent is None:
                continue
            parent = group.episodes[row.parent]
            k = row.branch_step
            assert k >= 1
            assert [s.action for s in row.steps[:k]] == [s.action for s in parent.steps[:k]]
            assert [s.observation for s in row.steps[:k]] == [s.observation for s in parent.steps[:k]]
            shared = max(span.end for span in row.trace.spans if span.step < k)
            assert row.trace.token_ids[:shared] == parent.trace.token_ids[:shared]
            assert row.steps[k].action != parent.steps[k].action
            assert all(a is not b for a, b in zip(row.steps, parent.steps))
            assert row.tool_calls == 2
        # The tree is one that hard attribution can read.
        nodes = arpo.prefix_nodes(
            [e.parent for e in group], [e.branch_step for e in group], [len(e.steps) for e in group]
        )
        assert [ids.size for ids in nodes] == [3] * 6


def test_same_seed_same_tree():
    plan = RolloutPlan(8, branching=Branching(initial=3))
    first, again, other = play(plan), play(plan), play(plan, seed=(1,))
    assert [e.to_dict() for e in first] == [e.to_dict() for e in again]
    assert [e.to_dict() for e in first] != [e.to_dict() for e in other]


def test_branches_only_after_executed_tool_calls():
    for script in (Script(calls=0), Script(calls=1)):
        episodes = play(RolloutPlan(8, branching=Branching(initial=3, base=1.0)), script)
        branches = [e for e in episodes if e.parent is not None]
        assert bool(branches) == (script.calls > 0)
        assert all(e.steps[e.branch_step - 1].tool.executed for e in branches)


def test_an_entropy_jump_makes_branching_likelier_and_branches_inherit_the_first_entropy():
    def share(later):
        script = Script(calls=2, entropy=lambda e: later if e.steps else 1.0)
        plan = RolloutPlan(64, branching=Branching(initial=16, base=0.0, weight=0.2))
        episodes = play(plan, script, tasks=[0, 1, 2])
        assert all(e.branch_step in (0, 2) for e in episodes)  # no jump yet after the first call
        return sum(e.parent is not None for e in episodes)

    assert share(1.0) == share(0.5) == 0
    # 20 tokens of entropy 2 instead of 1: a jump of 20 / log(128) = 4.1, so P = 0.82.
    assert share(2.0) > 30


def test_tool_free_rows_do_not_branch():
    class Free(Sums):
        def reset(self, *, seed=None, options=None):
            options = dict(options or {})
            forced = options.pop("tool_free", False)
            observation, info = super().reset(seed=seed, options=options)
            return observation, {**info, "tool_free": forced}

    episodes = play(RolloutPlan(8, tool_free=2, branching=Branching(initial=3, base=1.0)), env=Free)
    for group in groups_of(episodes, 8):
        assert [e.tool_free for e in group] == [False] * 3 + [True] * 2 + [False] * 3
        assert not any(group.episodes[e.parent].tool_free for e in group if e.parent is not None)


def test_monitoring_sends_one_row_ahead_and_splits_by_its_entropies():
    def roots(later):
        script = Script(calls=2, entropy=lambda e: later if e.steps else 1.0)
        plan = RolloutPlan(16, branching=Branching(8, beam=16, base=0.0, penalty=0.0, monitored=True))
        group = groups_of(play(plan, script, tasks=[0]), 16)[0]
        assert group.episodes[0].parent is None
        return sum(e.parent is None for e in group)

    assert roots(1.0) == 9  # equal entropies: int(16 / 2) + 1
    assert roots(0.0) == 15  # the entropy falls by 20 / log(128) after a result: int(16 * 0.887) + 1 at the prompt
    assert roots(2.0) == 2


def test_penalty_makes_branches_rarer():
    def branches(penalty):
        plan = RolloutPlan(64, branching=Branching(initial=24, base=0.5, penalty=penalty))
        return sum(e.parent is not None for e in play(plan, tasks=[0]))

    assert branches(0.0) > branches(0.05) > branches(0.5) >= 1


def test_an_environment_that_does_not_repeat_itself_masks_the_branch():
    class Noisy(Sums):
        count = 0

        def _after_tool(self, event, reply):
            Noisy.count += 1
            return {}

        def step(self, action):
            observation, *rest = super().step(action)
            return f"{observation} {Noisy.count}", *rest

    episodes = play(RolloutPlan(4, branching=Branching(initial=2, base=1.0)), env=Noisy, tasks=[0])
    masked = [e for e in episodes if e.masked]
    assert len(masked) == 2
    assert "gave another observation at step 0" in str(masked[0].error)


class Fragile(Sums):
    """Counts what is open; its close fails where it is told to, its replay where the seed repeats."""

    opened: list
    breaks: str

    def __init__(self):
        super().__init__()
        self.opened.append(self)

    def step(self, action):
        if self.breaks == "step":
            raise OSError("the tool's machine is gone")
        return super().step(action)

    def reset(self, *, seed=None, options=None):
        if self.breaks == "reset" and len(self.opened) == 3:
            raise ValueError("no such task")
        if self.breaks == "replay" and len(self.opened) > 4:
            raise ValueError("no such task")
        return super().reset(seed=seed, options=options)

    def close(self):
        self.opened[self.opened.index(self)] = None
        if self.breaks == "step":
            raise RuntimeError("close fails too")


@pytest.fixture
def fragile(monkeypatch):
    monkeypatch.setattr(Fragile, "opened", [], raising=False)
    monkeypatch.setattr(Fragile, "breaks", "", raising=False)
    return Fragile


def test_an_environment_that_cannot_be_closed_masks_its_episode_and_nothing_more(fragile):
    fragile.breaks = "step"
    episodes = play(RolloutPlan(4, branching=Branching(initial=2, base=1.0)), env=fragile)
    assert [e.error for e in episodes] == ["step failed: OSError: the tool's machine is gone"] * 8
    assert set(fragile.opened) == {None}


@pytest.mark.parametrize("breaks", ["reset", "replay"])
def test_no_environment_stays_open_when_a_rollout_fails(fragile, breaks):
    fragile.breaks = breaks
    with pytest.raises(ValueError, match="no such task"):
        play(RolloutPlan(4, branching=Branching(initial=2, base=1.0)), env=fragile)
    assert len(fragile.opened) >= 3
    assert set(fragile.opened) == {None}


def test_finished_rows_are_reported_once_each():
    finished = []
    episodes = play(RolloutPlan(6, branching=Branching(initial=2)), on_finished=finished.append)
    assert sorted(map(id, finished)) == sorted(map(id, episodes))


def test_group_rollout_follows_the_plan():
    class Plain(Script):
        def respond(self, episodes, sampling):
            assert not sampling.entropies
            return [self.one(episode) for episode in episodes]

    with EnvPool(Sums, threads=1) as pool:
        episodes = group_rollout(Plain(), pool, [0, 1], RolloutPlan(3), Sampling(), vocabulary=128)
        assert [e.parent for e in episodes] == [None] * 6
        tree = group_rollout(
            Script(), pool, [0], RolloutPlan(4, branching=Branching(initial=1, base=1.0)), Sampling(), vocabulary=128
        )
        assert sum(e.parent is not None for e in tree) == 3


def test_a_policy_without_entropies_is_refused():
    class Blind(Script):
        def one(self, episode):
            response = super().one(episode)
            return Response(
                response.text, response.context_ids, response.token_ids, response.logprobs, (), response.char_ends
            )

    with pytest.raises(ValueError, match="records entropies"):
        play(RolloutPlan(4, branching=Branching(initial=2)), Blind())
    with pytest.raises(ValueError, match=r"plan\.branching is None"):
        play(RolloutPlan(4))


def test_impossible_plans_are_refused():
    with pytest.raises(ValueError, match="initial must be at least 1, got 0"):
        Branching(initial=0)
    with pytest.raises(ValueError, match="must fit into the group"):
        RolloutPlan(4, tool_free=2, branching=Branching(initial=3))


def test_probability_follows_the_rule():
    assert Branching().probability(2.0, 1.0, 3) == pytest.approx(0.7)
    assert Branching(penalty=0.05).probability(1.0, 1.0, 4) == pytest.approx(0.375)
    assert np.isclose(Branching(penalty=0.05).probability(1.0, 1.0, 20), 0.0)
