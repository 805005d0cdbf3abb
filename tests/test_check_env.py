"""check_text_env: sound environments pass, and every breach of the contract is named with its remedy."""

import random
import threading
from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

from agentic_gym.check_env import EnvContractError, check_text_env
from agentic_gym.tasks import Task
from agentic_gym.wrappers import RecordEpisodes, RoleLabels, ToolBudget, ToolFree
from tests.toys import Corridor, Sums


@pytest.mark.parametrize(
    "make",
    [
        Sums,
        Corridor,
        lambda: Sums(render_mode="ansi"),
        lambda: ToolBudget(Sums(), 2),
        lambda: ToolFree(Sums(), active=True),
        lambda: RoleLabels(ToolBudget(ToolFree(Sums()), 1)),
    ],
)
def test_sound_environments_pass(make: Callable[[], gym.Env[str, str]]) -> None:
    check_text_env(make())


def test_a_recorded_environment_passes(tmp_path: Any) -> None:
    check_text_env(RecordEpisodes(Corridor(), tmp_path / "x.jsonl"))


class Breach(gym.Wrapper[str, str, str, str]):
    """A sound environment with one thing wrong."""

    def __init__(
        self,
        env: gym.Env[str, str] | None = None,
        *,
        reset: Callable[..., Any] | None = None,
        step: Callable[..., Any] | None = None,
    ) -> None:
        super().__init__(env or Sums())
        self._reset, self._step = reset, step
        self.steps = 0

    def reset(self, **kwargs: Any) -> Any:
        self.steps = 0
        result = self.env.reset(**kwargs)
        return self._reset(*result) if self._reset else result

    def step(self, action: str) -> Any:
        self.steps += 1
        result = self.env.step(action)
        return self._step(*result) if self._step else result


def without(info: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in info.items() if k != key}


RESETS: list[tuple[Callable[..., Any], str]] = [
    (lambda o, i: o, "return (observation, info), a str and a dict"),
    (lambda o, i: (o, None), "return (observation, info), a str and a dict"),
    (lambda o, i: (np.str_(o).encode(), i), "returned the observation b'What is"),
    (lambda o, i: ("x" * 70_000, i), "an observation of 70000 characters outside UnicodeText"),
    (lambda o, i: (o, without(i, "instructions")), "info['instructions'] at reset is missing: give a str"),
    (lambda o, i: (o, {**i, "task_id": 3}), "info['task_id'] at reset is 3: give a str"),
    (lambda o, i: (o, without(i, "level")), "info['level'] at reset is missing"),
    (lambda o, i: (o, {**i, "level": 1.5}), "info['level'] at reset is 1.5"),
    (lambda o, i: (o, {**i, "success": 0}), "info['success'] at reset is 0: give a bool"),
    (lambda o, i: (o, without(i, "tool_calls")), "info['tool_calls'] at reset is missing"),
    (lambda o, i: (o, {**i, "tool_calls": 2}), "starts with tool_calls=2"),
    (lambda o, i: (o, {**i, "admissible_actions": "look"}), "info['admissible_actions'] at reset is 'look'"),
]


@pytest.mark.parametrize(("reset", "message"), RESETS)
def test_what_reset_returns(reset: Callable[..., Any], message: str) -> None:
    with pytest.raises(EnvContractError) as caught:
        check_text_env(Breach(reset=reset))
    assert message in str(caught.value)


STEPS: list[tuple[Callable[..., Any], str]] = [
    (lambda o, r, te, tr, i: (o, r, te or tr, i), "return (observation, reward, terminated, truncated, info)"),
    (lambda o, r, te, tr, i: (None, r, te, tr, i), "step() returned the observation None: return a str"),
    (lambda o, r, te, tr, i: (o, "1", te, tr, i), "the reward '1': return a finite float"),
    (lambda o, r, te, tr, i: (o, float("nan"), te, tr, i), "the reward nan: return a finite float"),
    (lambda o, r, te, tr, i: (o, r, int(te), tr, i), "terminated=0 (int): return a bool"),
    (lambda o, r, te, tr, i: (o, r, te, None, i), "truncated=None (NoneType): return a bool"),
    (lambda o, r, te, tr, i: (o, r, te, tr, []), "info=[]: return a dict"),
    (lambda o, r, te, tr, i: (o, r, True, True, i), "both terminated and truncated"),
    (lambda o, r, te, tr, i: (o, r, te, tr, without(i, "success")), "info['success'] at step is missing"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "success": r > 0 or None}), "info['success'] at step is None"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "tool_calls": -1}), "info['tool_calls'] at step is -1"),
    (lambda o, r, te, tr, i: (o, r, te, tr, without(i, "tool")), "info['tool'] at step is missing: give a ToolEvent"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "tool": "python"}), "info['tool'] at step is 'python'"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "action": "x"}), "info['action'] at step is 'x'"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "outcome": "failed"}), "info['outcome'] is 'failed' before the end"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "score": 0.0}), "info['score'] is 0.0 before the end"),
    (lambda o, r, te, tr, i: (o, r, te, tr, without(i, "outcome")), "of a truncated episode is missing: give one of"),
    (
        lambda o, r, te, tr, i: (o, r, te, tr, {**i, "outcome": "solved"} if tr else i),
        "of a truncated episode is 'solved'",
    ),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "outcome": "turn_limit"} if te else i), "of a terminated episode is"),
    (lambda o, r, te, tr, i: (o, r, te, tr, without(i, "score")), "info['score'] at the last step is missing"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "score": 2.0} if tr else i), "at the last step is 2.0"),
    (
        lambda o, r, te, tr, i: (o, r, te, tr, {**i, "success": True} if te else i),
        "success is True but the outcome is 'failed'",
    ),
    # A malformed action costs the turn and nothing else.
    (lambda o, r, te, tr, i: (o, -1.0, te, tr, i), "an empty action was rewarded with -1.0"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "success": True}), "an empty action counts as a success"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "tool_calls": 7}), "changed tool_calls from 0 to 7"),
    (lambda o, r, te, tr, i: ("", r, te, tr, i), "was met with an empty observation"),
    (lambda o, r, te, tr, i: (o, r, te, tr, {**i, "turns_left": 99}), "moved turns_left from 8 to 99"),
    (
        lambda o, r, te, tr, i: (o, r, te, tr, {**i, "admissible_actions": ["x"]}),
        "an empty action changed the admissible actions",
    ),
    (
        lambda o, r, te, tr, i: (o, r, True, False, {**i, "outcome": "failed", "score": 0.0}),
        "an empty action ended the task",
    ),
]


@pytest.mark.parametrize(("step", "message"), STEPS)
def test_what_step_returns(step: Callable[..., Any], message: str) -> None:
    with pytest.raises(EnvContractError) as caught:
        check_text_env(Breach(step=step))
    assert message in str(caught.value)


# Breaches of the way an environment behaves.


class WrongSpace(Sums):
    def __init__(self) -> None:
        super().__init__()
        self.observation_space = gym.spaces.Discrete(2)  # type: ignore[assignment]


class NarrowSpace(Sums):
    def __init__(self) -> None:
        super().__init__()
        self.action_space = gym.spaces.Text(100)  # type: ignore[assignment]


class Endless(Sums):
    def __init__(self) -> None:
        super().__init__(max_turns=10**9)


class NeverTired(Breach):
    """Goes on after the end."""

    def step(self, action: str) -> Any:
        try:
            return super().step(action)
        except gym.error.ResetNeeded:
            return "still here", 0.0, False, False, {}


class Fragile(Sums):
    def step(self, action: str) -> Any:
        if "\ud800" in action:
            action.encode()
        return super().step(action)


class NoTaskOption(Sums):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=seed)


class WrongTask(Sums):
    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        observation, info = super().reset(seed=seed, options=options)
        return observation, {**info, "task_id": "sum-0" if options else "sum-1"}


class Forgetful(Sums):
    """Keeps a counter from one episode to the next."""

    count = 0

    def _begin(self, task: Task) -> str:
        self.count += 1
        return f"{task.prompt} ({self.count})"


class Leaky(Sums):
    """Counts on across episodes, in the answers to an action."""

    count = 0

    def _act(self, action: Any) -> Any:
        self.count += 1
        return type(super()._act(action))(f"Answer {self.count}.", terminated=True)


class GlobalRandom(Sums):
    def _begin(self, task: Task) -> str:
        random.random()
        return task.prompt


class GlobalNumpy(Sums):
    def _begin(self, task: Task) -> str:
        np.random.rand()  # noqa: NPY002
        return task.prompt


class Reseeding(Sums):
    def _begin(self, task: Task) -> str:
        random.seed(0)
        return task.prompt


class NoTranscript(Sums):
    def __init__(self) -> None:
        super().__init__(render_mode="ansi")

    def render(self) -> None:
        return None


class Locked(Sums):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class ClosesOnce(Sums):
    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("already closed")
        self.closed = True


class SilentlyAccepting(Sums):
    """Takes any option for a task."""

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        options = {k: v for k, v in (options or {}).items() if k == "task"}
        return super().reset(seed=seed, options=options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (WrongSpace, "observation_space is Discrete(2): set it to agentic_gym.spaces.UnicodeText()"),
        (NarrowSpace, "holds only a fixed alphabet: use agentic_gym.spaces.UnicodeText()"),
        (Endless, "did not end the episode: truncate after a number of turns"),
        (NeverTired, "raise gymnasium.error.ResetNeeded"),
        (Fragile, "raised UnicodeEncodeError"),
        (WrongTask, "the option must choose the task"),
        (NoTaskOption, "raise KeyError or ValueError for an unknown task"),
        (SilentlyAccepting, "raise KeyError or ValueError for an unknown option"),
        (Forgetful, "with the same seed"),
        (Leaky, "with the same seed and actions, step"),
        (GlobalRandom, "process-wide generator of random: draw from self.np_random"),
        (Reseeding, "process-wide generator of random"),
        (GlobalNumpy, "process-wide generator of numpy.random"),
        (NoTranscript, "render() in mode 'ansi' returned None"),
        (Locked, "cannot be sent to another process"),
        (ClosesOnce, "close() called twice raised RuntimeError: already closed"),
    ],
)
def test_how_an_environment_behaves(make: Callable[[], gym.Env[str, str]], message: str) -> None:
    with pytest.raises(EnvContractError) as caught:
        check_text_env(make())
    assert message in str(caught.value)
