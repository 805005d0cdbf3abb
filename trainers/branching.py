"""Branching rollouts: part of a group's rows are copies of running episodes, made right after a tool result (ARPO, AEPO).

A branch gets an environment of its own, brought to the same state by the same seed and actions; where that does not give the same
observations the branch is masked with the reason. From then on it draws with noise of its own. Rows of one group share
prompts and prefixes, which ``TransformersPolicy`` reads only once.

Every group ends with exactly M rows: branches while there is room, fresh rows from the prompt where nothing is running any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np

from agentic_gym.episodes import Episode, Response
from agentic_gym.policies.base import Policy, Sampling
from agentic_gym.trainers.algorithm import Branching, RolloutPlan
from agentic_gym.trainers.credit.aepo import initial_rollouts
from agentic_gym.trainers.credit.arpo import ENTROPY_TOKENS
from agentic_gym.trainers.rollout import (
    EnvPool,
    EpisodeRequest,
    TextEnvironment,
    group_requests,
    reset_episode,
    rollout,
    step_episode,
    with_stops,
)

__all__ = ["branching_rollout", "group_rollout"]

OnFinished = Callable[[Episode], None]


@dataclass
class _Row:
    """One episode of a group while it runs."""

    env: TextEnvironment
    episode: Episode
    start: EpisodeRequest
    """What its environment was reset with; a branch has its root's."""
    entropies: list[float] = field(default_factory=list)
    """Of each segment; a branch inherits them, so the first is the one to compare with."""


@dataclass
class _Tree:
    """The rows of one task, in the order in which they began."""

    slots: list[EpisodeRequest]
    rows: list[_Row] = field(default_factory=list)
    made: int = 0
    """Branches so far."""
    planned: bool = False
    """Whether the rows that start at the prompt have been started."""

    @property
    def room(self) -> int:
        return len(self.slots) - len(self.rows)


def group_rollout(
    policy: Policy,
    pool: EnvPool,
    tasks: Sequence[int | str],
    plan: RolloutPlan,
    sampling: Sampling,
    *,
    vocabulary: int,
    seed: Sequence[int] = (0,),
    on_finished: OnFinished | None = None,
) -> list[Episode]:
    """Play M episodes of every task as ``plan`` says, group after group.

    Args:
        vocabulary: tokens the policy chooses from; entropies are measured in units of its logarithm.
        seed: fixes sampling noise and branching.
    """
    if plan.branching is not None:
        return branching_rollout(
            policy, pool, tasks, plan, sampling, vocabulary=vocabulary, seed=seed, on_finished=on_finished
        )
    requests = group_requests(tasks, group_size=plan.group_size, tool_free=plan.tool_free, seed=seed)
    return rollout(policy, pool, requests, sampling, on_finished=on_finished)


def branching_rollout(
    policy: Policy,
    pool: EnvPool,
    tasks: Sequence[int | str],
    plan: RolloutPlan,
    sampling: Sampling,
    *,
    vocabulary: int,
    seed: Sequence[int] = (0,),
    on_finished: OnFinished | None = None,
) -> list[Episode]:
    """Play exactly M episodes of every task, branching by ``plan.branching``; in each group a parent stands before its branches.

    Raises ValueError for a plan without branching, or a policy that records no entropies.
    """
    branching = plan.branching
    if branching is None:
        raise ValueError("plan.branching is None: use rollout()")
    sampling = replace(sampling, entropies=True)
    rng = np.random.default_rng((*seed, 0xB2A9))
    requests = group_requests(tasks, group_size=plan.group_size, seed=seed)
    size = plan.group_size
    trees = [_Tree(requests[start : start + size]) for start in range(0, len(requests), size)]
    try:
        while True:
            _begin(pool, trees, branching, plan.tool_free)
            active = [(tree, row) for tree in trees for row in tree.rows if not row.episode.done]
            if not active:
                return [row.episode for tree in trees for row in tree.rows]
            sampling = with_stops(sampling, [active[0][1].env])
            responses = policy.respond([row.episode for _, row in active], sampling)
            envs, episodes = [row.env for _, row in active], [row.episode for _, row in active]
            blocking = any(getattr(env.unwrapped, "blocking", False) for env in envs)
            pool.map(step_episode, envs, episodes, responses, blocking=blocking)
            for (_, row), response in zip(active, responses, strict=True):
                row.entropies.append(_entropy(response, vocabulary))
                if row.episode.done and on_finished is not None:
                    on_finished(row.episode)
            _branch(pool, active, branching, rng, blocking)
    finally:
        for tree in trees:
            for row in tree.rows:
                pool.give_back(row.env, usable=row.episode.error is None and row.episode.done)


def _begin(pool: EnvPool, trees: Sequence[_Tree], branching: Branching, tool_free: int) -> None:
    """Start the rows that are due: the probe, the initial ones, or fresh ones where nothing is running any more."""
    for tree in trees:
        idle = all(row.episode.done for row in tree.rows)
        if branching.monitored and not tree.rows:
            count, forced = 1, 0
        elif not tree.planned and (not branching.monitored or idle):
            initial = _monitored_initial(tree, tool_free) if branching.monitored else branching.initial
            count, forced = initial - len(tree.rows), tool_free
            tree.planned = True
        else:
            # Half of what is missing, so that fresh rows too may branch, and few rounds are needed.
            count, forced = (tree.room + 1) // 2 if idle else 0, 0
        for number in range(min(count + forced, tree.room)):
            request = replace(tree.slots[len(tree.rows)], tool_free=number >= count)
            with _given_back_on_failure(pool) as taken:
                taken.append(pool.take())
                tree.rows.append(_Row(taken[0], reset_episode(taken[0], request), request))


@contextmanager
def _given_back_on_failure(pool: EnvPool) -> Iterator[list[TextEnvironment]]:
    """A list for environments that no row holds yet, so that none of them stays open whatever is raised meanwhile."""
    taken: list[TextEnvironment] = []
    try:
        yield taken
    except BaseException:
        for env in taken:
            pool.give_back(env, usable=False)
        raise


def _monitored_initial(tree: _Tree, tool_free: int) -> int:
    """AEPO's split, from the first row: the more its entropy falls after tool results, the more rows start at the prompt."""
    probe = tree.rows[0]
    root = probe.entropies[0] if probe.entropies else 0.0
    after = [
        entropy
        for entropy, step in zip(probe.entropies[1:], probe.episode.steps)
        if step.tool is not None and step.tool.executed
    ]
    return initial_rollouts(len(tree.slots) - tool_free, root, float(np.mean(after)) if after else root)


def _branch(
    pool: EnvPool,
    active: Sequence[tuple[_Tree, _Row]],
    branching: Branching,
    rng: np.random.Generator,
    blocking: bool,
) -> None:
    """Give branches to the running rows that have just read a tool result."""
    chosen: list[tuple[_Tree, _Row]] = []
    taken: dict[int, int] = {}
    for tree, row in active:
        episode = row.episode
        tool = episode.steps[-1].tool if episode.steps else None
        if episode.done or episode.tool_free or not tree.planned or tool is None or not tool.executed:
            continue
        for _ in range(branching.beam - 1):
            if tree.room <= taken.get(id(tree), 0):
                break
            if rng.random() < branching.probability(row.entropies[-1], row.entropies[0], tree.made):
                tree.made += 1
                taken[id(tree)] = taken.get(id(tree), 0) + 1
                chosen.append((tree, row))
    with _given_back_on_failure(pool) as envs:
        for _ in chosen:
            envs.append(pool.take())
        infos = pool.map(_replay, envs, [row for _, row in chosen], blocking=blocking)
    for (tree, row), env, info in zip(chosen, envs, infos):
        index = len(tree.rows)
        child = replace(
            row.episode,
            seed=tree.slots[index].seed,
            steps=[replace(step) for step in row.episode.steps],
            trace=row.episode.trace.copy(),
            parent=next(i for i, other in enumerate(tree.rows) if other is row),
            branch_step=len(row.episode.steps),
        )
        if isinstance(info, str):
            child.mask(info)
        else:
            child.info = info
        tree.rows.append(_Row(env, child, row.start, list(row.entropies)))


def _replay(env: TextEnvironment, row: _Row) -> dict[str, object] | str:
    """Bring ``env`` to the state of ``row``. Returns the latest info, or why it could not be done."""
    copy = reset_episode(env, row.start)
    for number, step in enumerate(row.episode.steps):
        if copy.masked:
            return f"branch: {copy.error}"
        step_episode(env, copy, Response(step.action))
        if copy.done or copy.steps[-1].observation != step.observation:
            return f"branch: the same seed and actions gave another observation at step {number}"
    return dict(copy.info)


def _entropy(response: Response, vocabulary: int) -> float:
    """Sum of the first tokens' entropies, in units of the logarithm of the vocabulary (``credit.arpo.segment_entropy``)."""
    if len(response.entropies) != len(response.token_ids):
        raise ValueError("branching needs a token policy that records entropies (Sampling.entropies)")
    return float(sum(response.entropies[:ENTROPY_TOKENS])) / math.log(vocabulary)
