"""Rollouts: a policy plays many episodes side by side, one turn of all of them at a time.

Failures never reach the trainer: an environment that raises, or whose tool is unavailable, gives a masked episode with
the reason, and its environment is thrown away.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gymnasium as gym
import numpy as np

from agentic_gym.episodes import Episode, Group, Response
from agentic_gym.policies.base import Policy, Sampling
from agentic_gym.ranges import Count, check
from agentic_gym.text_env import TextEnv
from agentic_gym.trainers.threads import DaemonThreads

__all__ = [
    "EnvPool",
    "EpisodeRequest",
    "TextEnvironment",
    "group_requests",
    "groups_of",
    "reset_episode",
    "rollout",
    "step_episode",
    "with_stops",
]

TextEnvironment = gym.Env[str, str]


@dataclass(frozen=True)
class EpisodeRequest:
    """One episode to play."""

    task: int | str
    """Index or id."""
    seed: int
    """Of the environment and of the sampling noise."""
    tool_free: bool = False


class EnvPool:
    """Environments made once and used again.

    Args:
        env_fn: makes one environment.
        threads: how many may be stepped at once where steps block (``TextEnv.blocking``, or a foreign environment that says
            so by an attribute of that name), at least 1.
    """

    def __init__(self, env_fn: Callable[[], TextEnvironment], *, threads: int = 16) -> None:
        check("threads", threads, Count)
        self.env_fn = env_fn
        self._idle: list[TextEnvironment] = []
        self._threads = DaemonThreads(threads, name="env-step")

    def take(self) -> TextEnvironment:
        """An idle environment, or a new one."""
        return self._idle.pop() if self._idle else self.env_fn()

    def give_back(self, env: TextEnvironment, *, usable: bool = True) -> None:
        """Keep ``env`` for the next episode; close it when something went wrong in it."""
        if usable:
            self._idle.append(env)
        else:
            # It is broken already: that it cannot even be closed must not hide what happened, nor keep others open.
            with contextlib.suppress(Exception):
                env.close()

    def map(self, function: Callable[..., Any], *columns: Sequence[Any], blocking: bool) -> list[Any]:
        """``function`` over rows, in threads where its steps block. An interruption does not wait for them."""
        rows = list(zip(*columns, strict=True))
        if self._threads.size == 1 or not blocking or len(rows) < 2:
            return [function(*row) for row in rows]
        return self._threads.map(function, rows)

    def close(self) -> None:
        """Close every environment and thread."""
        self._threads.close()
        with contextlib.ExitStack() as stack:  # one that cannot be closed does not keep the others open
            while self._idle:
                stack.callback(self._idle.pop().close)

    def __enter__(self) -> EnvPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def group_requests(
    tasks: Sequence[int | str], *, group_size: int, tool_free: int = 0, seed: Sequence[int] = (0,)
) -> list[EpisodeRequest]:
    """Requests for one group a task: ``group_size`` episodes, the last ``tool_free`` of them without tools.

    ``seed`` (a sequence, such as run seed and iteration) fixes all sampling noise.
    """
    seeds = (
        np.random.SeedSequence(list(seed)).generate_state(len(tasks) * group_size, np.uint32).reshape(len(tasks), -1)
    )
    return [
        EpisodeRequest(task, int(seeds[t, m]), tool_free=m >= group_size - tool_free)
        for t, task in enumerate(tasks)
        for m in range(group_size)
    ]


def rollout(
    policy: Policy,
    pool: EnvPool,
    requests: Sequence[EpisodeRequest],
    sampling: Sampling,
    *,
    on_finished: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Play every request to its end, in lock step, and return the episodes in order.

    ``on_finished`` is called with each episode as it ends, also with those that ended in a turn that is interrupted. What the
    policy raises is the caller's; what an environment raises masks its episode.
    """
    envs: list[TextEnvironment] = []
    episodes: list[Episode] = []

    def step(i: int, response: Response, stepped: list[int]) -> None:
        step_episode(envs[i], episodes[i], response)
        stepped.append(i)

    try:
        for request in requests:
            envs.append(pool.take())
            episodes.append(reset_episode(envs[-1], request))
            if on_finished is not None and episodes[-1].done:
                on_finished(episodes[-1])
        blocking = any(getattr(env.unwrapped, "blocking", False) for env in envs)
        active = [i for i, episode in enumerate(episodes) if not episode.done]
        sampling = with_stops(sampling, envs)
        while active:
            responses = policy.respond([episodes[i] for i in active], sampling)
            stepped: list[int] = []
            try:
                pool.map(step, active, responses, [stepped] * len(active), blocking=blocking)
            finally:
                if on_finished is not None:
                    for i in sorted(stepped):
                        if episodes[i].done:
                            on_finished(episodes[i])
            active = [i for i in active if not episodes[i].done]
    finally:
        for i, env in enumerate(envs):
            usable = i < len(episodes) and episodes[i].error is None and episodes[i].done
            pool.give_back(env, usable=usable)
    return episodes


def with_stops(sampling: Sampling, envs: Sequence[TextEnvironment]) -> Sampling:
    """``sampling`` that also ends a turn at the closing tags of these environments, such as those of tools of your own.

    They come first: some servers take only a few stop strings.
    """
    grammars = dict.fromkeys(env.unwrapped.grammar for env in envs if isinstance(env.unwrapped, TextEnv))
    own = [tag for grammar in grammars for tag in grammar.stop_strings]
    return replace(sampling, stop=tuple(dict.fromkeys((*own, *sampling.stop))))


def groups_of(episodes: Sequence[Episode], group_size: int) -> list[Group]:
    """Cut the episodes of ``group_requests`` into their groups."""
    return [
        Group(episodes[start].task_id, list(episodes[start : start + group_size]))
        for start in range(0, len(episodes), group_size)
    ]


def reset_episode(env: TextEnvironment, request: EpisodeRequest) -> Episode:
    """Begin the requested episode; masked where the environment's infrastructure fails."""
    options: dict[str, Any] = {"task": request.task}
    if request.tool_free:
        options["tool_free"] = True
    try:
        observation, info = env.reset(seed=request.seed, options=options)
    except (ValueError, KeyError, IndexError, TypeError):
        # A wrong task or a missing wrapper is the caller's mistake, the same for every episode.
        raise
    except Exception as error:
        episode = Episode(str(request.task), "", "", seed=request.seed)
        episode.mask(f"reset failed: {type(error).__name__}: {error}")
        return episode
    return Episode(
        task_id=str(info.get("task_id", request.task)),
        instructions=str(info.get("instructions", "")),
        observation=observation,
        level=info.get("level"),
        seed=request.seed,
        tool_free=bool(info.get("tool_free", request.tool_free)),
        base_instructions=info.get("base_instructions"),
        info=info,
    )


def step_episode(env: TextEnvironment, episode: Episode, response: Response) -> None:
    """Carry out one response and record it; what the environment raises masks the episode."""
    if response.finish == "context":
        episode.truncated, episode.outcome = True, "context_limit"
        return
    if response.finish == "unavailable":
        episode.mask("the policy's server did not answer")
        return
    try:
        observation, reward, terminated, truncated, info = env.step(response.text)
        if not isinstance(observation, str) or not math.isfinite(reward):
            raise TypeError(f"a step gives a text and a finite reward, got {observation!r:.80} and {reward!r}")
    except Exception as error:
        episode.mask(f"step failed: {type(error).__name__}: {error}")
        return
    episode.record(response, observation, float(reward), terminated, truncated, info)
    if episode.masked:
        episode.error = f"tool unavailable: {observation}"
