"""Players that need no model: two experts and a wanderer.

- ``next_command``: the expert's command; with full knowledge it wins every solvable game on a shortest way, without it searches.
- ``noisy``: a policy function around `info["expert_action"]` that errs at a given rate; at rate 1 it wanders.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

from agentic_gym.envs.alfworld.commands import Action
from agentic_gym.envs.alfworld.engine import FastEngine
from agentic_gym.envs.alfworld.memory import Memory
from agentic_gym.envs.alfworld.planner import plan
from agentic_gym.envs.alfworld.state import State

__all__ = ["next_command", "noisy"]


def next_command(engine: FastEngine, memory: Memory | None = None) -> str:
    """The command that an expert gives now.

    Args:
        engine: the running game; it is not changed.
        memory: what has been seen. Given, the expert uses nothing else: it looks through the likeliest receptacles until it knows
            enough and then goes a shortest way. None: it knows everything.

    A won or unwinnable game yields `look`.
    """
    state = engine.state
    actions = plan(state, None if memory is None else memory.seen)
    action = actions[0] if actions else None
    if actions is None and memory is not None:
        action = _search(state, memory)
    return engine.commands.text(*action) if action else "look"


def _search(state: State, memory: Memory) -> Action | None:
    """The next step of a search: what is here first, then the receptacles where such a thing may lie, then all others."""
    game = state.game
    unknown = [r for r in range(len(game.receptacles)) if r not in memory.shown]
    if not unknown:
        return None
    wanted = game.candidates if not game.candidates & memory.seen or not game.goal.light else game.lamps
    likely = frozenset().union(*(game.accepts[o] for o in wanted))

    def rank(r: int) -> tuple[bool, bool, bool, int]:
        return (r not in state.here, r not in likely, r in game.openable, r)

    r = min(unknown, key=rank)
    if r not in state.here:
        return Action("go to", r)
    return Action("examine" if state.is_open(r) else "open", r)


def noisy(mistake_rate: float = 0.0, *, seed: int = 0) -> Callable[[str, Mapping[str, Any]], str]:
    """A policy function `f(observation, info) -> command` for an environment made with `expert="full"` or `"seen"`.

    Args:
        mistake_rate: the probability, in [0, 1], of a random admissible command in place of the expert's. At 1 this is a
            wanderer, which also plays an environment without an expert.
        seed: where the mistakes come from.

    Example:
        >>> import gymnasium as gym, agentic_gym
        >>> env = gym.make("agentic_gym/ALFWorld-v0", expert="full")
        >>> play = noisy(mistake_rate=0.2)
        >>> observation, info = env.reset(seed=0)
        >>> play(observation, info) in info["admissible_actions"]
        True
    """
    if not 0.0 <= mistake_rate <= 1.0:
        raise ValueError(f"mistake_rate must lie in [0, 1], got {mistake_rate}")
    rng = random.Random(seed)

    def policy(observation: str, info: Mapping[str, Any]) -> str:
        if mistake_rate < 1.0 and "expert_action" not in info:
            raise ValueError(
                'this policy reads info["expert_action"]: make the environment with expert="full" or "seen"'
            )
        if rng.random() < mistake_rate:
            return str(rng.choice(info["admissible_actions"]))
        return str(info["expert_action"])

    return policy
