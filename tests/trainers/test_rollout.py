"""Rollouts: order, noise, and environments that fail."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from agentic_gym.episodes import Response
from agentic_gym.policies.base import Sampling, as_policy
from agentic_gym.tasks import Task, TaskSet
from agentic_gym.trainers.algorithms import make_algorithm
from agentic_gym.trainers.rollout import EnvPool, EpisodeRequest, group_requests, groups_of, rollout
from tests.toys import Echo, Sums

TASKS = TaskSet([Task(f"t{i}", f"{i}", str(2 * i), level=i) for i in range(6)], name="six")
SAMPLING = Sampling(max_tokens=12)


class Fragile(Sums):
    """Fails in the way that the task's number says, at the second step."""

    closed: list[Fragile]
    made: list[Fragile]
    failure: Any = {}  # noqa: RUF012

    def __init__(self) -> None:
        super().__init__(TASKS, tools=[Echo()], max_turns=4)
        self.made.append(self)

    def step(self, action: str) -> Any:
        result = super().step(action)
        if self._turn == 2 and self.task.id in self.failure:
            return self.failure[self.task.id](*result)
        return result

    def close(self) -> None:
        self.closed.append(self)


@pytest.fixture
def fragile(monkeypatch):
    for name in ("closed", "made"):
        monkeypatch.setattr(Fragile, name, [], raising=False)
    monkeypatch.setattr(Fragile, "failure", {})
    return Fragile


def caller(observation: str, info: Any) -> str:
    """Two calls, then an answer."""
    return "<answer>4</answer>" if info["tool_calls"] == 2 else "<python>1</python>"


def requests(n: int = 6) -> list[EpisodeRequest]:
    return group_requests([task.id for task in TASKS][:n], group_size=1)


def raising(error: Exception) -> Any:
    def fail(*_: Any) -> Any:
        raise error

    return fail


FAILURES = {
    "raises": (raising(RuntimeError("lost")), "step failed: RuntimeError: lost"),
    "not five values": (lambda *result: result[:3], "step failed: ValueError"),
    "no text": (lambda o, *rest: (None, *rest), "a step gives a text and a finite reward, got None"),
    "NaN reward": (lambda o, r, *rest: (o, float("nan"), *rest), "finite reward, got .* and nan"),
    "reward is a text": (lambda o, r, *rest: (o, "1", *rest), "step failed: TypeError"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_an_environment_that_fails_masks_its_episode_only(fragile, name):
    failure, message = FAILURES[name]
    fragile.failure["t3"] = failure
    with EnvPool(fragile) as pool:
        episodes = rollout(as_policy(caller), pool, requests(), SAMPLING)
        assert [e.masked for e in episodes] == [e.task_id == "t3" for e in episodes]
        assert [e.task_id for e in episodes] == [t.id for t in TASKS]
        import re

        assert re.search(message, episodes[3].error or "")
        assert (episodes[3].success, episodes[3].score, episodes[3].done) == (False, 0.0, True)
        assert [e.success for e in episodes] == [e.task_id == "t2" for e in episodes]
        # The broken environment is closed and never used again; the others are.
        broken = [env for env in fragile.made if env.task.id == "t3"]
        assert fragile.closed == broken
        fragile.failure.clear()
        again = rollout(as_policy(caller), pool, requests(), SAMPLING)
        assert not any(e.masked for e in again)
        assert len(fragile.made) == 7
    assert sorted(map(id, fragile.closed)) == sorted(map(id, fragile.made))


def test_a_tool_that_dies_masks_its_episode_only(fragile):
    def act(observation: str, info: Any) -> str:
        return "<python>down</python>" if info.get("task_id") == "t1" else caller(observation, info)

    with EnvPool(fragile) as pool:
        episodes = rollout(as_policy(act), pool, requests(), SAMPLING)
    assert [e.masked for e in episodes] == [e.task_id == "t1" for e in episodes]
    assert "tool unavailable" in (episodes[1].error or "")


def test_masked_episodes_are_never_credited(fragile):
    fragile.failure["t1"] = raising(OSError("gone"))
    with EnvPool(fragile) as pool:
        episodes = rollout(as_policy(caller), pool, group_requests(["t2", "t1"], group_size=3), SAMPLING)
    credit = make_algorithm("grpo", group_size=3).credit(groups_of(episodes, 3))
    assert credit.episodes == episodes[:3]


def test_an_environment_that_cannot_be_closed_hides_nothing(fragile, monkeypatch):
    fragile.failure["t3"] = raising(RuntimeError("lost"))

    def stuck(self: Any) -> None:
        Fragile.closed.append(self)
        if self.task.id == "t3":
            raise OSError("cannot close")

    monkeypatch.setattr(Fragile, "close", stuck)
    with EnvPool(fragile) as pool:
        assert sum(e.masked for e in rollout(as_policy(caller), pool, requests(), SAMPLING)) == 1


def test_a_broken_reset_masks_and_is_reported(fragile, monkeypatch):
    reset = Fragile.reset

    def failing(self: Any, *, seed: int | None = None, options: Any = None) -> Any:
        if options["task"] == "t4":
            raise OSError("no connection")
        return reset(self, seed=seed, options=options)

    monkeypatch.setattr(Fragile, "reset", failing)
    seen: list[str] = []
    with EnvPool(fragile) as pool:
        episodes = rollout(as_policy(caller), pool, requests(), SAMPLING, on_finished=lambda e: seen.append(e.task_id))
    assert episodes[4].error == "reset failed: OSError: no connection"
    assert sorted(seen) == [task.id for task in TASKS]


@pytest.mark.parametrize("error", [KeyError, KeyboardInterrupt, RuntimeError])
def test_whoever_raises_no_environment_stays_open(fragile, error):
    wrong = [*requests(3), EpisodeRequest("unknown", 0)] if error is KeyError else requests(3)

    def act(observation: str, info: Any) -> str:
        raise error("stop")

    with pytest.raises(error), EnvPool(fragile) as pool:
        rollout(as_policy(act), pool, wrong, SAMPLING)
    assert len(fragile.made) >= 3
    assert sorted(map(id, fragile.closed)) == sorted(map(id, fragile.made))


def test_blocking_steps_run_at_once(fragile, monkeypatch):
    monkeypatch.setattr(Fragile, "blocking", True)
    barrier = threading.Barrier(6, timeout=20)
    run = Echo.run

    def together(self: Any, argument: str) -> Any:
        barrier.wait()
        return run(self, argument)

    monkeypatch.setattr(Echo, "run", together)
    with EnvPool(fragile, threads=6) as pool:
        episodes = rollout(as_policy(caller), pool, requests(), SAMPLING)
    assert not any(e.masked for e in episodes)


def test_an_interrupted_turn_reports_what_ended_in_it(fragile, monkeypatch):
    def interrupted(self: Any, argument: str) -> Any:
        while len(done) < 5:
            time.sleep(0.01)
        raise KeyboardInterrupt

    done: list[str] = []
    act = fragile._act
    monkeypatch.setattr(fragile, "_act", lambda self, action: (act(self, action), done.append(self.task.id))[0])
    monkeypatch.setattr(fragile, "blocking", True)
    monkeypatch.setattr(Echo, "run", interrupted)
    ended: list[Any] = []
    agent = as_policy(lambda text, info: "<python>1</python>" if text == "3" else "<answer>4</answer>")
    with pytest.raises(KeyboardInterrupt), EnvPool(fragile, threads=6) as pool:
        rollout(agent, pool, requests(), SAMPLING, on_finished=ended.append)
    reported = [e.task_id for e in ended]
    assert set(reported) <= {"t0", "t1", "t2", "t4", "t5"}
    assert len(reported) >= 4  # the last one may still have been on its way
    assert all(e.done for e in ended)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "4"])
def test_a_pool_has_threads(fragile, threads):
    with pytest.raises(ValueError, match="threads must be"):
        EnvPool(fragile, threads=threads)


def test_a_full_window_truncates(fragile):
    class Full:
        def respond(self, episodes: Any, sampling: Any) -> list[Response]:
            return [Response("", finish="context" if e.task_id == "t0" else "unavailable") for e in episodes]

    with EnvPool(fragile) as pool:
        first, second = rollout(Full(), pool, requests(2), SAMPLING)
    assert (first.outcome, first.truncated, first.terminated, first.masked) == ("context_limit", True, False, False)
    assert second.masked


def test_requests_are_groups_with_noise_of_their_own():
    made = group_requests(["a", "b"], group_size=4, tool_free=1, seed=(3, 4))
    assert [r.task for r in made] == ["a"] * 4 + ["b"] * 4
    assert [r.tool_free for r in made] == [False, False, False, True] * 2
    assert len({r.seed for r in made}) == 8
    assert made == group_requests(["a", "b"], group_size=4, tool_free=1, seed=(3, 4))
    assert made != group_requests(["a", "b"], group_size=4, tool_free=1, seed=(3, 5))


def test_a_rollout_does_not_depend_on_its_batch(policy, make_env, tasks):
    made = group_requests([task.id for task in tasks][::20], group_size=3, tool_free=1)
    with EnvPool(make_env) as pool:
        together = rollout(policy, pool, made, SAMPLING)
        alone = [rollout(policy, pool, [request], SAMPLING)[0] for request in made]
    assert [e.trace.token_ids for e in together] == [e.trace.token_ids for e in alone]
    assert [e.outcome for e in together] == [e.outcome for e in alone]
    assert {len(e.steps) for e in together} != {1}
    for episode in together:
        assert [s.start for s in episode.trace.spans] == [0, *[s.end for s in episode.trace.spans[:-1]]]
        assert episode.trace.spans[-1].end == len(episode.trace)


@pytest.mark.parametrize("branching", [False, True])
def test_a_turn_also_ends_at_the_tag_of_a_tool_of_ones_own(branching):
    from agentic_gym.trainers.algorithm import Branching, RolloutPlan
    from agentic_gym.trainers.branching import group_rollout

    class Lamp(Echo):
        name = "lamp"

    asked = []

    class Listening:
        def respond(self, episodes, sampling):
            asked.append(sampling.stop)
            return [Response("<answer>0</answer>", (1,), (2,), (0.0,), (0.5,), (18,)) for _ in episodes]

    plan = RolloutPlan(2, branching=Branching(initial=1) if branching else None)
    with EnvPool(lambda: Sums(tools=[Lamp()])) as pool:
        group_rollout(Listening(), pool, [0], plan, Sampling(), vocabulary=10)
    assert all(stop[:3] == ("</lamp>", "</tool_call>", "</answer>") for stop in asked)
    assert all(set(Sampling().stop) < set(stop) and len(set(stop)) == len(stop) for stop in asked)
