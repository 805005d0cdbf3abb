"""The fast engine: ALFWorld's rules in plain Python.

- ``Frame``: what an engine returns after a reset or a command.
- ``Engine``: the two methods that both engines have.
- ``FastEngine``: plays a `Game`.

Every text, every list of commands and every odd case equals the stock engine's (alfworld 0.4.2 on textworld 1.7.0), which needs
about ten thousand times as long. Where a rule looks strange, it is so there as well.
"""

from __future__ import annotations

import copy
from typing import NamedTuple, Protocol

from agentic_gym.envs.alfworld import text
from agentic_gym.envs.alfworld.commands import Action, CommandTable
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.state import State

__all__ = ["Engine", "FastEngine", "Frame"]


_CHANGES_COMMANDS = frozenset({"go to", "open", "close", "take", "move"})


class Frame(NamedTuple):
    """What the player gets."""

    observation: str
    admissible: list[str]
    """The commands that do something now, sorted, without repeats."""
    won: bool


class Engine(Protocol):
    """What the environment needs of an engine."""

    def reset(self) -> Frame:
        """Put the game into its first state."""
        ...

    def step(self, command: str) -> Frame:
        """Carry out a command; one that is not admissible changes nothing and says `Nothing happens.`"""
        ...


class FastEngine:
    """Plays one `Game`; `state` is the full hidden state, `commands` the game's commands in words.

    Example:
        >>> from agentic_gym.envs.alfworld.generator import generate
        >>> engine = FastEngine(Game.load(generate(seed=1).data))
        >>> engine.reset().won
        False
        >>> engine.step("dance").observation
        'Nothing happens.'
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.commands = CommandTable(game)
        self._deciding = {"take", "move", "go to", "use"} if game.goal.light else {"take", "move"}
        self.reset()

    def reset(self) -> Frame:
        """Put the game into its first state."""
        self.state = State(self.game)
        self.last_action: Action | None = None
        """What the last command did; None before the first one and after one that did nothing."""
        self._admissible = self.commands.admissible(self.state)
        self._won = self.state.won()
        return Frame(text.opening(self.state), list(self._admissible), self._won)

    def step(self, command: str) -> Frame:
        """Carry out a command; one that is not admissible changes nothing and says `Nothing happens.`

        White space around the command is dropped; apart from that it must be one of the admissible ones, letter for letter.
        """
        command = command.strip()
        if command not in self._admissible:
            self.last_action = None
            return Frame("Nothing happens.", list(self._admissible), self._won)
        action = self.last_action = self.commands.actions[command]
        observation = self._carry_out(action)
        if action.verb in _CHANGES_COMMANDS:
            self._admissible = self.commands.admissible(self.state)
        if action.verb in self._deciding:
            self._won = self.state.won()
        return Frame(observation, list(self._admissible), self._won)

    def copy(self) -> FastEngine:
        """An independent engine in the same state, to try things out."""
        other = copy.copy(self)
        other.state = self.state.copy()
        return other

    @property
    def admissible(self) -> list[str]:
        """The commands that do something now, sorted, without repeats."""
        return list(self._admissible)

    def _carry_out(self, action: Action) -> str:
        verb, target, other = action
        game, state = self.game, self.state
        objects, receptacles = game.objects, game.receptacles
        match verb:
            case "go to":
                state.go_to(target)
                return f"You arrive at {receptacles[target]}. {text.examine_receptacle(state, target)}"
            case "open":
                state.open(target)
                return f"You open the {receptacles[target]}. {text.examine_receptacle(state, target)}"
            case "close":
                state.close(target)
                return f"You close the {receptacles[target]}."
            case "take":
                state.take(target, other)
                return f"You pick up the {objects[target]} from the {receptacles[other]}."
            case "move":
                state.move(target, other)
                return f"You move the {objects[target]} to the {receptacles[other]}."
            case "examine":
                return text.examine_receptacle(state, target)
            case "examine object":
                return text.examine_object(state, target)
            case "use":
                state.use(target)
                return f"You turn on the {objects[target]}."
            case "slice":
                state.slice(target)
                return f"You sliced the {objects[target]} with the {objects[other]}."
            case "look":
                return text.look(state)
            case "inventory":
                return text.inventory(state)
            case "help":
                return game.help
            case "clean":
                state.clean(target)
            case "heat":
                state.heat(target)
            case "cool":
                state.cool(target)
        return f"You {verb} the {objects[target]} using the {receptacles[other]}."
