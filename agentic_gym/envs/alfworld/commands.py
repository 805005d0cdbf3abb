"""Which commands do something now, and what each of them stands for."""

from __future__ import annotations

from typing import NamedTuple

from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.state import NOTHING, State

__all__ = ["Action", "CommandTable"]

_TREATMENTS = (("clean", "isclean"), ("cool", "iscool"), ("heat", "ishot"))


class Action(NamedTuple):
    """One command, understood. `target` is an object for take, move, clean, heat, cool, slice, use, examine_object."""

    verb: str
    target: int = NOTHING
    other: int = NOTHING
    """The receptacle of take, move, clean, heat, cool; the knife of slice."""


class CommandTable:
    """The commands of one game, in words.

    A command is written when it becomes admissible for the first time and then kept: a list of commands is put together from
    strings that exist already.
    """

    def __init__(self, game: Game) -> None:
        self.game = game
        self.actions = {verb: Action(verb) for verb in ("help", "inventory", "look")}
        """Every command that was admissible so far, and its meaning."""
        self._words: dict[tuple[str, int, int], str] = {}
        self._go_to: dict[int, list[str]] = {}

    def text(self, verb: str, target: int, other: int = NOTHING) -> str:
        """The command for an action."""
        key = (verb, target, other)
        command = self._words.get(key)
        if command is None:
            action = Action(*key)
            command = self._words[key] = self._write(action)
            self.actions[command] = action
        return command

    def _write(self, action: Action) -> str:
        verb, objects, receptacles = action.verb, self.game.objects, self.game.receptacles
        if verb in ("go to", "open", "close", "examine"):
            return f"{verb} {receptacles[action.target]}"
        name = objects[action.target]
        match verb:
            case "examine object":
                return f"examine {name}"
            case "use":
                return f"use {name}"
            case "take":
                return f"take {name} from {receptacles[action.other]}"
            case "move":
                return f"move {name} to {receptacles[action.other]}"
            case "slice":
                return f"slice {name} with {objects[action.other]}"
        return f"{verb} {name} with {receptacles[action.other]}"

    def admissible(self, state: State) -> list[str]:
        """The commands that do something in `state`, sorted, without repeats.

        The verbs are visited in alphabetical order, so that only the few commands of one verb have to be sorted.
        """
        game, here, held, text = self.game, state.here, state.held, self.text
        opens, closes, takes, uses, examines = [], [], [], [], []
        for r in here:
            examines.append(text("examine", r))
            is_open = True
            if r in game.openable:
                is_open = r in state.opened
                if is_open:
                    closes.append(text("close", r))
                else:
                    opens.append(text("open", r))
            for o in state.contents[r]:
                if o in game.toggleable:
                    uses.append(text("use", o))
                if is_open and held == NOTHING and o in game.pickupable:
                    takes.append(text("take", o, r))
        uses = sorted(set(uses))
        before: tuple[list[str], ...]
        after: tuple[list[str], ...]
        if held == NOTHING:
            before = (closes, examines)
            after = (opens, takes)
            heat: list[str] = []
        else:
            examines.append(text("examine object", held))
            clean, cool, heat = (
                [text(verb, held, r) for r in here if r in game.tools[made]] if held in game.able[made] else []
                for verb, made in _TREATMENTS
            )
            moves = [text("move", held, r) for r in here if r in game.accepts[held] and state.is_open(r)]
            slices: list[str] = []
            if held in game.knives:
                slices = [text("slice", o, held) for o in state.objects_at[state.location] if o in game.sliceable]
            before = (clean, closes, cool, examines)
            after = (moves, opens, slices)
        commands: list[str] = []
        for group in before:
            commands += sorted(group)
        commands += self._elsewhere(state)
        commands += sorted(heat)
        commands += ("help", "inventory", "look")
        for group in after:
            commands += sorted(group)
        commands += uses
        return commands

    def _elsewhere(self, state: State) -> list[str]:
        """`go to` for every receptacle that does not stand here; those that do can be used at once."""
        commands = self._go_to.get(state.location)
        if commands is None:
            at = self.game.receptacle_at
            commands = sorted(self.text("go to", r) for r in range(len(at)) if at[r] != state.location)
            self._go_to[state.location] = commands
        return commands
