"""What the player reads, word for word as the stock engine's grammar says it."""

from __future__ import annotations

from collections.abc import Iterable

from agentic_gym.envs.alfworld.state import NOTHING, State

__all__ = ["examine_object", "examine_receptacle", "inventory", "listing", "look", "opening"]

_LOOKS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("isclean", "ishot", "issliced"), "hot and clean sliced"),
    (("isclean", "iscool", "issliced"), "cool and clean sliced"),
    (("isclean", "issliced"), "clean sliced"),
    (("ishot", "issliced"), "hot sliced"),
    (("iscool", "issliced"), "cool sliced"),
    (("isclean", "ishot"), "hot and clean"),
    (("isclean", "iscool"), "cool and clean"),
    (("ishot",), "hot"),
    (("isclean",), "clean"),
    (("iscool",), "cold"),
)
"""The first line whose states all hold describes an object."""


def listing(items: Iterable[str]) -> str:
    """Join names as the game does: `nothing`, `a`, `a, and b`, `a, b, and c`."""
    *first, last = items or ("nothing",)
    return f"{', '.join(first)}, and {last}" if first else last


def opening(state: State) -> str:
    """The text of a reset: a look around and the task."""
    game = state.game
    if state.here:
        around = look(state)
    else:
        seen = listing([f"a {name}" for name in game.receptacles])
        around = f"You are in the middle of a room. Looking quickly around you, you see {seen}."
    return f"-= Welcome to TextWorld, ALFRED! =-\n\n{around}\n\nYour task is to: {game.task}."


def look(state: State) -> str:
    """The answer to `look`. Away from any receptacle nothing is seen; only the opening lists the room."""
    game, here = state.game, state.here
    if not here:
        return "You are in the middle of a room. Looking quickly around you, you see nothing."
    # A thing lies on the floor as often as there are receptacles here that it was taken out of.
    floor = [
        f"a {game.objects[o]}" for o in state.objects_at[state.location] for r in here if (o, r) in state.taken_out
    ]
    facing = listing([game.receptacles[r] for r in here])
    return f"You are facing the {facing}. Next to it, you see {listing(floor)}."


def inventory(state: State) -> str:
    """The answer to `inventory`."""
    if state.held == NOTHING:
        return "You are not carrying anything."
    return f"You are carrying: a {state.game.objects[state.held]}."


def examine_receptacle(state: State, r: int) -> str:
    """What is in or on r."""
    name, names = state.game.receptacles[r], state.game.objects
    if r not in state.game.openable:
        start = f"On the {name}"
    elif r in state.opened:
        start = f"The {name} is open. In it"
    else:
        return f"The {name} is closed."
    return f"{start}, you see {listing([f'a {names[o]}' for o in state.contents[r]])}."


def examine_object(state: State, o: int) -> str:
    """How o looks. A thing that can hold others never shows whether it is hot, cold or clean."""
    game = state.game
    name = game.objects[o]
    if o in game.nested:
        inside = listing([f"a {game.objects[inner]}" for inner in game.nested[o]])
        return f"This is a normal {name}. In it, you see {inside}."
    states = state.states
    for needed, words in _LOOKS:
        if all(o in states[s] for s in needed):
            return f"This is a {words} {name}."
    if o in game.toggleable and o in states["istoggled"]:
        return f"This {name} is on."
    if o in game.sliceable and o in states["issliced"]:
        return f"This is a sliced {name}."
    return f"There's nothing special about {name}."
