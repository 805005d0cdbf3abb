"""What the player has seen so far: the difference between knowing the game and knowing the world."""

from __future__ import annotations

from typing import NamedTuple

from agentic_gym.envs.alfworld.commands import Action
from agentic_gym.envs.alfworld.state import State

__all__ = ["Glimpse", "Memory"]


class Glimpse(NamedTuple):
    """What one command revealed."""

    arrived_first: bool = False
    """It walked to a receptacle for the first time, be it open or closed."""
    shown_first: bool = False
    """It showed what is in a receptacle for the first time."""
    known_place: bool = False
    """It walked to a receptacle whose content had been shown before."""


class Memory:
    """Follows a game from its reset. Positions of the receptacles are known from the start, objects are not."""

    def __init__(self) -> None:
        self.seen: set[int] = set()
        """The objects seen so far."""
        self.shown: set[int] = set()
        """The receptacles whose content was shown."""
        self.visited: set[int] = set()
        """The receptacles walked to."""

    def observe(self, action: Action | None, state: State) -> Glimpse:
        """Take in one command (None: it did nothing), given the state after it."""
        if action is None or action.verb not in ("go to", "open", "examine"):
            return Glimpse()
        r = action.target
        walked, shown_before = action.verb == "go to", r in self.shown
        arrived_first = walked and r not in self.visited
        if walked:
            self.visited.add(r)
        if state.is_open(r):
            self.shown.add(r)
            self.seen.update(state.contents[r])
        return Glimpse(arrived_first, r in self.shown and not shown_before, walked and shown_before)
