"""``check_text_env``: does an environment keep the contract of the library?

It plays a few short episodes and stops at the first breach, with an ``EnvContractError`` that says what was seen and how to mend
it. Run it on every environment that you write, before a trainer finds the breach for you.
"""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import gymnasium as gym
import numpy as np

from agentic_gym.actions import ParsedAction
from agentic_gym.episodes import ToolEvent

__all__ = ["EnvContractError", "check_text_env"]

OUTCOMES = {"terminated": ("solved", "failed"), "truncated": ("budget", "turn_limit", "context_limit", "masked")}
MALFORMED = ("", " \n")
HOSTILE = (
    "\0",
    "caf\u00e9 \u5317\u4eac \U0001f642 \ud800",
    "<answer>",
    "</think></answer>",
    "<result>1</result>",
    "<answer><answer>1</answer></answer>",
    '<tool_call>{"name": "no_such_tool", "arguments": {}}</tool_call>',
    "<tool_call>" + "[" * 5_000 + "</tool_call>",
    "x" * 100_000,
)
_MAX_STEPS = 2_000
_SCRIPT_LENGTH = 12

StepResult = tuple[str, float, bool, bool, dict[str, Any]]


class EnvContractError(Exception):
    """An environment breaks the contract; the message says what was seen and how to mend it."""


def check_text_env(env: gym.Env[Any, Any], *, seed: int = 0) -> None:
    """Check ``env``, wrapped or not, against the contract of ``TextEnv``.

    Checked: spaces, the types that ``reset`` and ``step`` return, the keys of ``info``, how episodes end, malformed and hostile
    actions, the ``task`` option, determinism, the process-wide random generators, pickling and closing.

    Args:
        env: the environment. It is closed at the end: make a new one for use.
        seed: of the episodes that are played.

    Raises:
        EnvContractError: at the first breach.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> check_text_env(gym.make("agentic_gym/MathTools-v0"))
    """
    _check_spaces(env)
    with _generators_untouched():
        _, info = _checked_reset(env, seed)
        _check_turn_limit(env, seed)
        _check_step_after_end(env)
        _check_hostile_actions(env, seed)
        _check_task_option(env, seed, info["task_id"])
        _check_determinism(env, seed)
    _check_render(env)
    _check_pickle(env)
    _check_close(env)


# Spaces.


def _check_spaces(env: gym.Env[Any, Any]) -> None:
    for name in ("observation_space", "action_space"):
        space = getattr(env, name, None)
        if not isinstance(space, gym.spaces.Text):
            raise EnvContractError(f"{name} is {space!r}: set it to agentic_gym.spaces.UnicodeText()")
        if not space.contains("any text: \u5317\u4eac,\n<tag> \U0001f642"):
            raise EnvContractError(
                f"{name} {space!r} holds only a fixed alphabet: use agentic_gym.spaces.UnicodeText(), which takes any text"
            )


# What reset and step return.


def _checked_reset(
    env: gym.Env[Any, Any], seed: int | None, options: dict[str, Any] | None = None
) -> tuple[str, dict[str, Any]]:
    result: Any = env.reset(seed=seed, options=options)
    if not (isinstance(result, tuple) and len(result) == 2 and isinstance(result[1], dict)):
        raise EnvContractError(f"reset() returned {_short(result)}: return (observation, info), a str and a dict")
    observation, info = result
    _check_observation(env, observation, "reset()")
    for key in ("instructions", "task_id"):
        if not isinstance(info.get(key), str):
            raise EnvContractError(f"info[{key!r}] at reset is {_got(info, key)}: give a str")
    level = info.get("level", _ABSENT)
    if level is not None and (isinstance(level, bool) or not isinstance(level, (int, str))):
        raise EnvContractError(
            f"info['level'] at reset is {_got(info, 'level')}: give an int, a str, or None if unknown"
        )
    _check_common_info(info, "reset")
    if info["tool_calls"] != 0 or info["success"]:
        raise EnvContractError(
            f"an episode starts with tool_calls={info['tool_calls']}, success={info['success']}: reset() must clear both"
        )
    return observation, info


def _checked_step(env: gym.Env[Any, Any], action: str) -> StepResult:
    try:
        result: Any = env.step(action)
    except Exception as error:
        raise EnvContractError(
            f"step({_short(action)}) raised {type(error).__name__}: {error}. No text may raise: answer with an observation "
            "that says what is wrong with it"
        ) from error
    if not (isinstance(result, tuple) and len(result) == 5):
        raise EnvContractError(
            f"step() returned {_short(result)}: return (observation, reward, terminated, truncated, info)"
        )
    observation, reward, terminated, truncated, info = result
    _check_observation(env, observation, "step()")
    if isinstance(reward, bool) or not isinstance(reward, (float, int)) or not math.isfinite(reward):
        raise EnvContractError(f"step() returned the reward {reward!r}: return a finite float")
    for name, flag in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(flag, bool):
            raise EnvContractError(f"step() returned {name}={flag!r} ({type(flag).__name__}): return a bool")
    if not isinstance(info, dict):
        raise EnvContractError(f"step() returned info={_short(info)}: return a dict")
    if terminated and truncated:
        raise EnvContractError(
            "step() returned both terminated and truncated: terminated when the task itself ended, truncated only when a limit "
            "stopped it before"
        )
    _check_common_info(info, "step")
    _check_step_info(info)
    _check_end(info, terminated, truncated)
    return observation, float(reward), terminated, truncated, info


def _check_observation(env: gym.Env[Any, Any], observation: object, where: str) -> None:
    if not isinstance(observation, str):
        raise EnvContractError(f"{where} returned the observation {_short(observation)}: return a str")
    if not env.observation_space.contains(observation):
        raise EnvContractError(
            f"{where} returned an observation of {len(observation)} characters outside {env.observation_space!r}: shorten it"
        )


def _check_common_info(info: Mapping[str, Any], where: str) -> None:
    if not isinstance(info.get("success"), bool):
        raise EnvContractError(
            f"info['success'] at {where} is {_got(info, 'success')}: give a bool (never leave it to the reward)"
        )
    calls = info.get("tool_calls")
    if isinstance(calls, bool) or not isinstance(calls, int) or calls < 0:
        raise EnvContractError(
            f"info['tool_calls'] at {where} is {_got(info, 'tool_calls')}: give the number of executed calls, an int"
        )
    commands = info.get("admissible_actions", [])
    if not (isinstance(commands, list) and all(isinstance(command, str) for command in commands)):
        raise EnvContractError(
            f"info['admissible_actions'] at {where} is {_short(commands)}: give a list of str, or leave the key out"
        )


def _check_step_info(info: Mapping[str, Any]) -> None:
    event = info.get("tool", _ABSENT)
    if event is not None and not isinstance(event, ToolEvent):
        raise EnvContractError(f"info['tool'] at step is {_got(info, 'tool')}: give a ToolEvent, or None without one")
    if "action" in info and not isinstance(info["action"], ParsedAction):
        raise EnvContractError(f"info['action'] at step is {_short(info['action'])}: give the ParsedAction")


def _check_end(info: Mapping[str, Any], terminated: bool, truncated: bool) -> None:
    if not (terminated or truncated):
        for key in ("outcome", "score"):
            if key in info:
                raise EnvContractError(f"info[{key!r}] is {info[key]!r} before the end: give it at the last step only")
        return
    how = "terminated" if terminated else "truncated"
    outcome, score = info.get("outcome"), info.get("score")
    if outcome not in OUTCOMES[how]:
        raise EnvContractError(
            f"info['outcome'] of a {how} episode is {_got(info, 'outcome')}: give one of {', '.join(OUTCOMES[how])}"
        )
    if isinstance(score, bool) or not isinstance(score, (float, int)) or not 0 <= score <= 1:
        raise EnvContractError(f"info['score'] at the last step is {_got(info, 'score')}: give a float from 0 to 1")
    if terminated and info["success"] != (outcome == "solved"):
        raise EnvContractError(
            f"success is {info['success']} but the outcome is {outcome!r}: an episode is 'solved' exactly when it succeeded"
        )


# How episodes go.


def _check_turn_limit(env: gym.Env[Any, Any], seed: int) -> None:
    """Nothing but malformed actions: each costs its turn and nothing else, and a limit ends the episode."""
    _, info = _checked_reset(env, seed)
    for turn in range(_MAX_STEPS):
        calls, left, commands = info["tool_calls"], info.get("turns_left"), info.get("admissible_actions")
        observation, reward, terminated, truncated, info = _checked_step(env, MALFORMED[turn % len(MALFORMED)])
        complaint = None
        if terminated:
            complaint = "ended the task"
        elif reward != 0:
            complaint = f"was rewarded with {reward}"
        elif info["success"]:
            complaint = "counts as a success"
        elif info["tool_calls"] != calls:
            complaint = f"changed tool_calls from {calls} to {info['tool_calls']}"
        elif info.get("admissible_actions") != commands:
            complaint = "changed the admissible actions"
        elif not observation.strip():
            complaint = "was met with an empty observation"
        elif left is not None and info.get("turns_left") != left - 1:
            complaint = f"moved turns_left from {left} to {info.get('turns_left')}"
        if complaint:
            raise EnvContractError(
                f"an empty action {complaint}: a malformed action costs its turn and nothing else, and the observation says what "
                "was wrong"
            )
        if truncated:
            return
    raise EnvContractError(f"{_MAX_STEPS} empty actions did not end the episode: truncate after a number of turns")


def _check_step_after_end(env: gym.Env[Any, Any]) -> None:
    try:
        env.step(MALFORMED[0])
    except Exception:
        return
    raise EnvContractError("step() after the end of an episode was accepted: raise gymnasium.error.ResetNeeded")


def _check_hostile_actions(env: gym.Env[Any, Any], seed: int) -> None:
    _checked_reset(env, seed)
    for action in HOSTILE:
        _, _, terminated, truncated, _ = _checked_step(env, action)
        if terminated or truncated:
            _checked_reset(env, seed)


def _check_task_option(env: gym.Env[Any, Any], seed: int, task_id: str) -> None:
    texts = []
    for _ in range(2):
        text, info = _checked_reset(env, seed, {"task": task_id})
        texts.append(text)
        if info["task_id"] != task_id:
            raise EnvContractError(
                f"reset(options={{'task': {task_id!r}}}) began the task {info['task_id']!r}: the option must choose the task"
            )
    if texts[0] != texts[1]:
        raise EnvContractError(
            f"the task {task_id!r} began with {_short(texts[0])} and then, with the same seed, with {_short(texts[1])}: take all "
            "randomness from self.np_random"
        )
    for options, meaning in (({"task": "no such task"}, "an unknown task"), ({"tsak": 0}, "an unknown option")):
        try:
            env.reset(seed=seed, options=options)
        except (KeyError, ValueError, IndexError):
            continue
        raise EnvContractError(f"reset(options={options}) was accepted: raise KeyError or ValueError for {meaning}")


def _check_determinism(env: gym.Env[Any, Any], seed: int) -> None:
    first, second = _script(env, seed), _script(env, seed)
    for step, (one, two) in enumerate(zip(first, second)):
        if one != two:
            raise EnvContractError(
                f"with the same seed and actions, step {step} gave {_short(one)} and then {_short(two)}: take all randomness "
                "from self.np_random, and clear all state in reset()"
            )


def _script(env: gym.Env[Any, Any], seed: int) -> list[tuple[Any, ...]]:
    """One short episode with fixed choices, as what came back."""
    observation, info = _checked_reset(env, seed)
    choices = np.random.default_rng(seed)
    history: list[tuple[Any, ...]] = [(observation, info["task_id"], info["instructions"])]
    for step in range(_SCRIPT_LENGTH):
        commands = info.get("admissible_actions") or (
            ["", "<answer>0</answer>"] if step == 0 else [f"<answer>{step}</answer>"]
        )
        action = commands[int(choices.integers(len(commands)))]
        observation, reward, terminated, truncated, info = _checked_step(env, action)
        history.append((observation, reward, terminated, truncated, info["success"], info.get("outcome")))
        if terminated or truncated:
            break
    return history


# The process around.


@contextmanager
def _generators_untouched() -> Iterator[None]:
    python, legacy = random.getstate(), _legacy_numpy_state()
    yield
    for name, before, after in (("random", python, random.getstate()), ("numpy.random", legacy, _legacy_numpy_state())):
        if before != after:
            raise EnvContractError(
                f"the environment used the process-wide generator of {name}: draw from self.np_random instead"
            )


def _legacy_numpy_state() -> tuple[Any, ...]:
    name, keys, *rest = np.random.get_state()  # noqa: NPY002  # read, to see that nobody moved it
    return (name, np.asarray(keys).tobytes(), *rest)


def _check_render(env: gym.Env[Any, Any]) -> None:
    if env.render_mode == "ansi":
        text: object = env.render()
        if not isinstance(text, str):
            raise EnvContractError(f"render() in mode 'ansi' returned {_short(text)}: return the transcript as a str")


def _check_pickle(env: gym.Env[Any, Any]) -> None:
    """Vector environments send an environment, or the spec that makes it, to other processes."""
    try:
        pickle.dumps(env.unwrapped if env.spec is None else env.spec)
    except Exception as error:
        raise EnvContractError(
            f"the environment cannot be sent to another process ({error}): keep locks, sockets and lambdas out of its arguments "
            "and attributes, or drop them in __getstate__"
        ) from error


def _check_close(env: gym.Env[Any, Any]) -> None:
    for time in ("once", "twice"):
        try:
            env.close()
        except Exception as error:
            raise EnvContractError(
                f"close() called {time} raised {type(error).__name__}: {error}. A second close() must do nothing"
            ) from error


# Words for messages.

_ABSENT = object()


def _got(info: Mapping[str, Any], key: str) -> str:
    return _short(info[key]) if key in info else "missing"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
