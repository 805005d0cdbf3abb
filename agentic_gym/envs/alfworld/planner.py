"""Shortest plans, and with them the exact distance to the goal.

A shortest plan of any of the six tasks has one of a few shapes: empty the hands if need be, then for each object that is still
missing fetch it, treat it, put it down (or carry it to the lamp). Which object, tool, receptacle and place to drop things
is all that is left to choose, so the shapes are enumerated instead of searching through states.

Walking costs one command whatever the distance, and nothing between receptacles that share a location.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import permutations

from agentic_gym.envs.alfworld.commands import Action
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.state import NOTHING, State

__all__ = ["distance", "is_exact", "plan"]

_TREATMENT = {"isclean": "clean", "ishot": "heat", "iscool": "cool"}
_STAND = "stand"
"""A stop where nothing has to be done: the lamp is on already."""

_Stops = tuple[Action, ...]


def is_exact(game: Game) -> bool:
    """Whether `distance` is exact in this game: not where a lamp can be carried to the object."""
    return not (game.goal.light and game.lamps & game.pickupable)


def distance(state: State) -> int | None:
    """The number of commands of a shortest plan, 0 when the game is won, None when it cannot be won."""
    best = plan(state)
    return None if best is None else len(best)


def plan(state: State, known: Collection[int] | None = None) -> list[Action] | None:
    """A shortest plan from here; empty when the game is won, None when there is no way.

    Args:
        state: the state to start from; it is not changed.
        known: the objects that may be used; None stands for all.
    """
    if state.won():
        return []
    best: list[Action] | None = None
    for stops in _light_plans(state, known) if state.game.goal.light else _placing_plans(state, known):
        actions = list(_walk(state, stops))
        if best is None or len(actions) < len(best):
            best = actions
    return best


def _walk(state: State, stops: _Stops) -> Iterator[Action]:
    """The commands that visit the stops in order: walking and opening are put in where they are needed."""
    at, location = state.game.receptacle_at, state.location
    opened: tuple[int, ...] = ()
    for stop in stops:
        r = stop.other
        if at[r] != location:
            location = at[r]
            yield Action("go to", r)
        if stop.verb in ("take", "move") and r not in opened and not state.is_open(r):
            opened += (r,)
            yield Action("open", r)
        if stop.verb != _STAND:
            yield stop


# The shapes.


def _placing_plans(state: State, known: Collection[int] | None) -> Iterator[_Stops]:
    game = state.game
    sources = _sources(state, known)
    tools = game.tools[game.goal.state] if game.goal.state else frozenset()
    ready = state.ready()
    places = {state.location} | {game.receptacle_at[r] for _, r in sources} | {game.receptacle_at[r] for r in tools}
    special = {r for _, r in sources}
    by_missing: dict[int, list[int]] = {1: [], 2: []}
    for r in game.targets:
        missing = game.goal.count - len(ready.intersection(state.contents[r]))
        by_missing[missing].append(r)
    for missing, receptacles in by_missing.items():
        for target in _representatives(state, receptacles, places, special):
            fetched = [(o, r) for o, r in sources if o not in ready or o not in state.contents[target]]
            for chosen in _choices(state, fetched, missing):
                trips = [_treated(state, o, tools) for o, _ in chosen]
                for stops in _product(chosen, trips, target):
                    yield from _with_free_hands(state, stops, target)


def _light_plans(state: State, known: Collection[int] | None) -> Iterator[_Stops]:
    game = state.game
    lamps = [(lamp, r) for r, inside in enumerate(state.contents) for lamp in inside if lamp in game.lamps]
    if state.held in game.candidates:
        takes: list[_Stops] = [()]
    else:
        takes = [(Action("take", o, r),) for o, r in _sources(state, known)]
    for lamp, r in lamps:
        if known is not None and lamp not in known:
            continue
        verb = _STAND if lamp in state.states["istoggled"] else "use"
        for take in takes:
            yield from _with_free_hands(state, (*take, Action(verb, lamp, r)), r)


def _sources(state: State, known: Collection[int] | None) -> list[tuple[int, int]]:
    """The candidate objects that can be taken, each with the receptacle that it is in."""
    usable = state.game.candidates & state.game.pickupable
    return [
        (o, r)
        for r, inside in enumerate(state.contents)
        for o in inside
        if o in usable and (known is None or o in known)
    ]


def _choices(state: State, sources: list[tuple[int, int]], missing: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """Ordered choices of as many objects as are missing; a held one goes first and has no receptacle."""
    held = state.held
    if held in state.game.candidates:
        for rest in permutations(sources, missing - 1):
            yield ((held, NOTHING), *rest)
        if missing > 1:
            return
    for chosen in permutations(sources, missing):
        if missing == 1 or chosen[0][0] != chosen[1][0]:
            yield chosen


def _treated(state: State, o: int, tools: Iterable[int]) -> list[_Stops]:
    """The ways to bring o into the state that the goal asks for; one empty way where nothing is to be done."""
    wanted = state.game.goal.state
    if wanted is None or o in state.states[wanted]:
        return [()]
    return [(Action(_TREATMENT[wanted], o, tool),) for tool in tools]


def _product(chosen: tuple[tuple[int, int], ...], trips: list[list[_Stops]], target: int) -> Iterator[_Stops]:
    if not chosen:
        yield ()
        return
    (o, r), *rest = chosen
    take = () if r == NOTHING else (Action("take", o, r),)
    for treatment in trips[0]:
        for later in _product(tuple(rest), trips[1:], target):
            yield (*take, *treatment, Action("move", o, target), *later)


def _with_free_hands(state: State, stops: _Stops, target: int) -> Iterator[_Stops]:
    """Put a stop in front that drops what is held, if the first object is to be taken with full hands."""
    if state.held == NOTHING or stops[0].verb != "take":
        yield stops
        return
    at, source = state.game.receptacle_at, stops[0].other
    special = {source, target}
    receptacles = sorted(state.game.accepts[state.held])
    for r in _representatives(state, receptacles, {state.location, at[source]}, special):
        yield (Action("move", state.held, r), *stops)


def _representatives(
    state: State, receptacles: Iterable[int], places: Collection[int], special: Collection[int]
) -> list[int]:
    """One receptacle of each kind that a plan can tell apart: by location if that is on the way, and by being open."""
    at = state.game.receptacle_at
    kinds: dict[tuple[int, bool, int], int] = {}
    for r in receptacles:
        place = at[r] if at[r] in places else -1
        kinds.setdefault((place, state.is_open(r), r if r in special else -1), r)
    return list(kinds.values())
