"""How fast ALFWorld runs: the fast engine, the real one with its memory, and the stock one, on the same games.

    python benchmarks/throughput.py alfworld
    python benchmarks/throughput.py alfworld --games 12 --stock-steps 100

Every engine plays random admissible commands in episodes of 50, each beginning with a reset; CPU seconds of one process are
counted, so that other work on the machine disturbs little. The stock engine is measured first, before its functions are given
a memory.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agentic_gym.envs.alfworld.engine import FastEngine, Frame
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.generator import generate
from agentic_gym.envs.alfworld.goals import TASK_TYPES

__all__ = ["main"]

EPISODE = 50
"""Commands an episode, the environment's turn limit."""


class Player(Protocol):
    """An engine under test."""

    def load(self, game: Mapping[str, Any]) -> None:
        """Load a game."""
        ...

    def reset(self) -> Frame:
        """Begin an episode."""
        ...

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        ...


class Cost(NamedTuple):
    """Mean CPU seconds."""

    load: float
    reset: float
    step: float

    @property
    def rate(self) -> float:
        """Steps a second, a reset every 50 steps included."""
        return EPISODE / (self.reset + EPISODE * self.step)


class FastPlayer:
    """The fast engine."""

    def load(self, game: Mapping[str, Any]) -> None:
        """Parse the game."""
        self.engine = FastEngine(Game.load(game))

    def reset(self) -> Frame:
        """Begin an episode."""
        return self.engine.reset()

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        return self.engine.step(command)


class StockPlayer:
    """Textworld's engine as alfworld sets it up, untouched."""

    def __init__(self) -> None:
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs import PddlEnv

        self.env = AlfredDemangler(PddlEnv(textworld.EnvInfos(won=True, admissible_commands=True)), shuffle=False)

    def load(self, game: Mapping[str, Any]) -> None:
        """Translate the game."""
        self.env.load(game)

    def reset(self) -> Frame:
        """Translate the game again."""
        return self._frame(self.env.reset())

    def step(self, command: str) -> Frame:
        """Carry out a command."""
        return self._frame(self.env.step(command)[0])

    @staticmethod
    def _frame(state: Any) -> Frame:
        return Frame(state.feedback, state["admissible_commands"], state["won"])


def measure(player: Player, games: Sequence[Mapping[str, Any]], steps: int) -> Cost:
    """Play `steps` random commands in each game."""
    rng = random.Random(0)
    load = reset = step = 0.0
    episodes = 0
    for game in games:
        start = time.process_time()
        player.load(game)
        load += time.process_time() - start
        player.reset()
        for first in range(0, steps, EPISODE):
            start = time.process_time()
            frame = player.reset()
            began = time.process_time()
            for _ in range(min(EPISODE, steps - first)):
                frame = player.step(rng.choice(frame.admissible))
            reset += began - start
            step += time.process_time() - began
            episodes += 1
    return Cost(load / len(games), reset / episodes, step / (steps * len(games)))


def main(argv: list[str]) -> int:
    """Print the table. Without the extra `alfworld` only the fast engine is measured."""
    parser = argparse.ArgumentParser(prog="throughput.py alfworld", description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--games", type=int, default=6, help="generated games, one task type after the other (default 6)"
    )
    parser.add_argument("--steps", type=int, default=20_000, help="steps a game on the fast engine (default 20000)")
    parser.add_argument(
        "--memory-steps", type=int, default=100, help="steps a game on the remembering engine (default 100)"
    )
    parser.add_argument("--stock-steps", type=int, default=20, help="steps a game on the stock engine (default 20)")
    options = parser.parse_args(argv)
    games = [generate(i, task_type=TASK_TYPES[i % len(TASK_TYPES)]).data for i in range(options.games)]
    costs: dict[str, Cost] = {}
    try:
        costs["stock"] = measure(StockPlayer(), games, options.stock_steps)
    except ImportError as error:
        print(f"The real engine is left out ({error}): pip install 'agentic-gym[alfworld]'")
    else:
        from agentic_gym.envs.alfworld.textworld_engine import TextWorldEngine

        costs["textworld"] = measure(TextWorldEngine(), games, options.memory_steps)
    costs["fast"] = measure(FastPlayer(), games, options.steps)
    print(f"{'engine':<10} {'load ms':>9} {'reset ms':>9} {'step ms':>9} {'steps/s':>10} {'x stock':>9}")
    for name, cost in costs.items():
        ratio = f"{cost.rate / costs['stock'].rate:,.0f}" if "stock" in costs else ""
        parts = " ".join(f"{1000 * value:>9.3f}" for value in cost)
        print(f"{name:<10} {parts} {cost.rate:>10,.0f} {ratio:>9}")
    return 0
