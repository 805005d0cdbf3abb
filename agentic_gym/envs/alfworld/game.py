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
from agentic_gym.envs.alfworld.facts import Facts, UnplayableError
from agentic_gym.envs.alfworld.game_file import GameFileError, check_rules, grammar_texts, read_game_file
from agentic_gym.envs.alfworld.goals import STATES, Goal, GoalError, parse_goal

__all__ = ["Game"]

_KNIVES = {"knifetype", "butterknifetype"}
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
            facts = Facts(pddl.atoms(pddl.section(problem, ":init")))
            return _build(name, task, help_text, goal, data, facts)
        except (GoalError, UnplayableError) as error:
            raise GameFileError(f'{name}: {error}. Play it with engine="textworld".') from error
        except ValueError as error:
            raise GameFileError(f"{name}: {error}. The problem is incomplete: copy the file again.") from error


def _build(name: str, task: str, help_text: str, goal: Goal, data: Mapping[str, Any], facts: Facts) -> Game:
    object_types = facts.object_types()
    of_type: defaultdict[str, set[int]] = defaultdict(set)
    for r, types in enumerate(facts.receptacle_types()):
        for kind in types:
            of_type[kind].add(r)
    takers: defaultdict[str, set[int]] = defaultdict(set)
    for receptacle_type, object_type in facts.can_contain():
        takers[object_type] |= of_type[receptacle_type]
    able = {state: facts.objects_with(ability) for state, (ability, _) in STATES.items()}
    toggleable = facts.objects_with("toggleable")
    wanted = frozenset(o for o, types in enumerate(object_types) if goal.object_type in types)
    return Game(
        name=name,
        task=task,
        help=help_text,
        goal=goal,
        walkthrough=tuple(data.get("walkthrough") or ()),
        objects=facts.objects,
        receptacles=facts.receptacles,
        object_types=object_types,
        receptacle_at=facts.receptacle_at(),
        receptacles_at=facts.receptacles_at(),
        openable=facts.receptacles_with("openable"),
        accepts=tuple(frozenset().union(*(takers[kind] for kind in types)) for types in object_types),
        tools={state: frozenset(of_type[tool]) for state, tool in _TOOLS.items()},
        able=able,
        pickupable=facts.objects_with("pickupable"),
        toggleable=toggleable,
        sliceable=facts.objects_with("sliceable"),
        knives=frozenset(o for o, types in enumerate(object_types) if types & _KNIVES),
        candidates=wanted if goal.state is None else wanted & able[goal.state],
        targets=tuple(sorted(of_type[goal.target_type])),
        lamps=frozenset(o for o in toggleable if goal.target_type in object_types[o]),
        nested=facts.nested(),
        start=facts.start(),
        start_contents=facts.contents(),
        start_objects_at=facts.objects_at(),
        start_opened=facts.receptacles_with("opened"),
        start_states={state: facts.objects_with(state) for state in (*STATES, "issliced", "istoggled")},
    )
