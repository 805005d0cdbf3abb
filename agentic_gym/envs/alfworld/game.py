"""`Game`: everything about one game that does not change while it is played.

Objects, receptacles and locations are numbered in the order of their PDDL ids. That is also the order in which the engine lists
them, so a sorted list of numbers is a list as the player reads it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentic_gym.envs.alfworld import pddl
from agentic_gym.envs.alfworld.game_file import GameFileError, check_rules, grammar_texts, read_game_file
from agentic_gym.envs.alfworld.goals import STATES, Goal, GoalError, parse_goal
from agentic_gym.envs.alfworld.names import display_names

__all__ = ["Game"]

_TOOLS = {"isclean": "sinkbasintype", "ishot": "microwavetype", "iscool": "fridgetype"}


@dataclass(frozen=True, slots=True, eq=False)
class Game:
    """One game, ready to be played by the fast engine. Build it with `Game.load`.

    In the tables below o, r and l are the numbers of an object, a receptacle and a location; a table with one entry per object
    is indexed by o, and so on.
    """

    name: str
    """Where the game came from, for messages."""
    task: str
    """The task sentence: `put some book on bed`."""
    help: str
    """What the command `help` prints."""
    goal: Goal
    walkthrough: tuple[str, ...]
    """Commands that win, as the file gives them; may be empty."""

    objects: tuple[str, ...]
    """Names, such as `mug 2`."""
    receptacles: tuple[str, ...]
    object_types: tuple[frozenset[str], ...]
    receptacle_types: tuple[frozenset[str], ...]
    receptacle_at: tuple[int, ...]
    """The location of each receptacle."""
    receptacles_at: tuple[tuple[int, ...], ...]
    """The receptacles of each location."""
    openable: frozenset[int]
    accepts: tuple[frozenset[int], ...]
    """For each object, the receptacles into which it may be put."""
    tools: Mapping[str, frozenset[int]]
    """For each state, the receptacles that bring it about."""
    able: Mapping[str, frozenset[int]]
    """For each state, the objects that can be brought into it."""
    pickupable: frozenset[int]
    toggleable: frozenset[int]
    sliceable: frozenset[int]
    knives: frozenset[int]
    candidates: frozenset[int]
    """The objects that the goal is about: of its type and, where it asks for a state, able to be in it."""
    targets: tuple[int, ...]
    """The receptacles that the goal is about."""
    lamps: frozenset[int]
    """The lamps that the goal is about."""
    nested: Mapping[int, tuple[int, ...]]
    """For each object that can hold others (bowls, mugs), what lies in it. This never changes."""

    start: int
    """The location of the agent at the beginning."""
    start_contents: tuple[tuple[int, ...], ...]
    """What lies in each receptacle at the beginning."""
    start_objects_at: tuple[tuple[int, ...], ...]
    """The objects whose `objectAtLocation` is each location."""
    start_opened: frozenset[int]
    start_states: Mapping[str, frozenset[int]]
    """Objects that are clean, hot, cool, sliced (`issliced`) or turned on (`istoggled`) from the beginning."""

    @classmethod
    def load(cls, source: str | Path | Mapping[str, Any]) -> Game:
        """Read a game file (or a mapping with its content).

        Raises:
            GameFileError: the file is missing, cut off, foreign, or of a kind that the fast engine does not play; the message
                names the file and the fix.
        """
        name, data = read_game_file(source)
        check_rules(name, data["pddl_domain"], data["grammar"])
        task, help_text = grammar_texts(name, data["grammar"])
        try:
            problem = pddl.parse(data["pddl_problem"])
            goal = parse_goal(pddl.section(problem, ":goal"))
            return _build(name, task, help_text, goal, data, pddl.atoms(pddl.section(problem, ":init")))
        except GoalError as error:
            raise GameFileError(f'{name}: {error}. Play it with engine="textworld".') from error
        except ValueError as error:
            raise GameFileError(f"{name}: {error}. The problem is incomplete: copy the file again.") from error


def _build(
    name: str, task: str, help_text: str, goal: Goal, data: Mapping[str, Any], facts: list[tuple[str, ...]]
) -> Game:
    one: defaultdict[str, set[str]] = defaultdict(set)
    two: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for predicate, *arguments in facts:
        if len(arguments) == 1:
            one[predicate].add(arguments[0])
        elif len(arguments) == 2:
            two[predicate].add((arguments[0], arguments[1]))

    object_ids = sorted(
        {o for o, _ in two["objecttype"] | two["objectatlocation"] | two["inreceptacle"]}
        | {o for pair in two["inreceptacleobject"] for o in pair}
        | one["pickupable"] | one["toggleable"] | one["sliceable"] | one["isreceptacleobject"]
        | one["cleanable"] | one["heatable"] | one["coolable"]
    )  # fmt: skip
    receptacle_ids = sorted({r for r, _ in two["receptacletype"] | two["receptacleatlocation"]} | one["openable"])
    agents = {a for a, _ in two["atlocation"]}
    location_ids = sorted(
        {place for pairs in ("atlocation", "receptacleatlocation", "objectatlocation") for _, place in two[pairs]}
    )
    if len(agents) != 1 or len(two["atlocation"]) != 1 or two["holds"] or one["holdsany"]:
        raise GoalError(
            f"the game begins with {len(agents)} agents or with something held; it needs one with empty hands"
        )
    number_o = {o: i for i, o in enumerate(object_ids)}
    number_r = {r: i for i, r in enumerate(receptacle_ids)}
    number_l = {place: i for i, place in enumerate(location_ids)}
    at = dict(two["receptacleatlocation"])
    if set(at) != set(receptacle_ids) or len(two["receptacleatlocation"]) != len(at):
        raise GoalError("a receptacle stands at no location or at several")

    def objects_with(predicate: str) -> frozenset[int]:
        return frozenset(number_o[o] for o in one[predicate] if o in number_o)

    names = display_names({argument for _, *arguments in facts for argument in arguments})
    object_types = _grouped(two["objecttype"], number_o)
    receptacle_types = _grouped(two["receptacletype"], number_r)
    takers: defaultdict[str, set[int]] = defaultdict(set)
    by_type: defaultdict[str, set[int]] = defaultdict(set)
    for r, types in enumerate(receptacle_types):
        for receptacle_type in types:
            by_type[receptacle_type].add(r)
    for receptacle_type, object_type in two["cancontain"]:
        takers[object_type] |= by_type.get(receptacle_type, set())
    nested: dict[int, tuple[int, ...]] = dict.fromkeys(objects_with("isreceptacleobject"), ())
    for inner, outer in sorted(two["inreceptacleobject"]):
        if number_o[outer] in nested:
            nested[number_o[outer]] += (number_o[inner],)
    able = {state: objects_with(ability) for state, (ability, _) in STATES.items()}
    toggleable = objects_with("toggleable")
    wanted = frozenset(o for o, types in enumerate(object_types) if goal.object_type in types)
    place = [number_l[at[r]] for r in receptacle_ids]
    everything = sorted((number_r[r], number_o[o]) for o, r in two["inreceptacle"] if r in number_r)
    return Game(
        name=name,
        task=task,
        help=help_text,
        goal=goal,
        walkthrough=tuple(data.get("walkthrough") or ()),
        objects=tuple(names[o] for o in object_ids),
        receptacles=tuple(names[r] for r in receptacle_ids),
        object_types=object_types,
        receptacle_types=receptacle_types,
        receptacle_at=tuple(place),
        receptacles_at=tuple(
            tuple(r for r in range(len(place)) if place[r] == here) for here in range(len(location_ids))
        ),
        openable=frozenset(number_r[r] for r in one["openable"]),
        accepts=tuple(frozenset().union(*(takers[t] for t in types)) for types in object_types),
        tools={state: frozenset(by_type[tool]) for state, tool in _TOOLS.items()},
        able=able,
        pickupable=objects_with("pickupable"),
        toggleable=toggleable,
        sliceable=objects_with("sliceable"),
        knives=frozenset(o for o, types in enumerate(object_types) if types & {"knifetype", "butterknifetype"}),
        candidates=wanted if goal.state is None else wanted & able[goal.state],
        targets=tuple(sorted(by_type.get(goal.target_type, ()))),
        lamps=frozenset(o for o in toggleable if goal.target_type in object_types[o]),
        nested=nested,
        start=number_l[next(iter(two["atlocation"]))[1]],
        start_contents=tuple(tuple(o for r, o in everything if r == n) for n in range(len(receptacle_ids))),
        start_objects_at=tuple(
            tuple(sorted(number_o[o] for o, place in two["objectatlocation"] if place == here)) for here in location_ids
        ),
        start_opened=frozenset(number_r[r] for r in one["opened"] if r in number_r),
        start_states={state: objects_with(state) for state in ("isclean", "ishot", "iscool", "issliced", "istoggled")},
    )


def _grouped(pairs: set[tuple[str, str]], number: Mapping[str, int]) -> tuple[frozenset[str], ...]:
    groups: list[set[str]] = [set() for _ in number]
    for name, kind in pairs:
        groups[number[name]].add(kind)
    return tuple(frozenset(group) for group in groups)
