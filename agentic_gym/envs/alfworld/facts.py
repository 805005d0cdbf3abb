"""The facts of a PDDL problem as tables of numbers.

Objects, receptacles and locations are numbered in the order of their ids, which is the order in which the engine lists them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from agentic_gym.envs.alfworld.names import display_names

__all__ = ["Facts", "UnplayableError"]

_OF_OBJECTS = ("pickupable", "toggleable", "sliceable", "cleanable", "heatable", "coolable", "isreceptacleobject")


class UnplayableError(ValueError):
    """A beginning that the fast engine does not play."""


class Facts:
    """What is true at the beginning of a game.

    Args:
        facts: tuples (predicate, argument, ...) in lower case.

    Raises:
        UnplayableError: not exactly one agent with empty hands, or a receptacle without one location.
    """

    def __init__(self, facts: Iterable[tuple[str, ...]]) -> None:
        self._one: defaultdict[str, set[str]] = defaultdict(set)
        self._two: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
        arguments_seen: set[str] = set()
        for predicate, *arguments in facts:
            arguments_seen.update(arguments)
            if len(arguments) == 1:
                self._one[predicate].add(arguments[0])
            elif len(arguments) == 2:
                self._two[predicate].add((arguments[0], arguments[1]))
        one, two = self._one, self._two
        if len(two["atlocation"]) != 1 or two["holds"] or one["holdsany"]:
            raise UnplayableError("the game does not begin with one agent whose hands are empty")
        if len(dict(two["receptacleatlocation"])) != len(two["receptacleatlocation"]):
            raise UnplayableError("a receptacle stands at several locations")
        of_pairs = two["objecttype"] | two["objectatlocation"] | two["inreceptacle"]
        nested = {o for pair in two["inreceptacleobject"] for o in pair}
        objects = {o for o, _ in of_pairs}.union(nested, *(one[predicate] for predicate in _OF_OBJECTS))
        receptacles = {r for r, _ in two["receptacletype"] | two["receptacleatlocation"]} | one["openable"]
        if receptacles - {r for r, _ in two["receptacleatlocation"]}:
            raise UnplayableError("a receptacle stands at no location")
        at = two["atlocation"] | two["receptacleatlocation"] | two["objectatlocation"]
        self._objects, self._receptacles = _numbered(objects), _numbered(receptacles)
        self._locations = _numbered(place for _, place in at)
        names = display_names(arguments_seen)
        self.objects = tuple(names[o] for o in self._objects)
        """The objects' names."""
        self.receptacles = tuple(names[r] for r in self._receptacles)
        """The receptacles' names."""

    def objects_with(self, predicate: str) -> frozenset[int]:
        """The objects of which `predicate` is true."""
        return frozenset(self._objects[o] for o in self._one[predicate] if o in self._objects)

    def receptacles_with(self, predicate: str) -> frozenset[int]:
        """The receptacles of which `predicate` is true."""
        return frozenset(self._receptacles[r] for r in self._one[predicate] if r in self._receptacles)

    def object_types(self) -> tuple[frozenset[str], ...]:
        """The types of each object, nearly always one."""
        return _types(self._two["objecttype"], self._objects)

    def receptacle_types(self) -> tuple[frozenset[str], ...]:
        """The types of each receptacle."""
        return _types(self._two["receptacletype"], self._receptacles)

    def can_contain(self) -> set[tuple[str, str]]:
        """Pairs (type of receptacle, type of object that may be put there)."""
        return self._two["cancontain"]

    def start(self) -> int:
        """The agent's location."""
        ((_, place),) = self._two["atlocation"]
        return self._locations[place]

    def receptacle_at(self) -> tuple[int, ...]:
        """The location of each receptacle."""
        at = dict(self._two["receptacleatlocation"])
        return tuple(self._locations[at[r]] for r in self._receptacles)

    def receptacles_at(self) -> tuple[tuple[int, ...], ...]:
        """The receptacles of each location."""
        pairs = ((self._locations[place], self._receptacles[r]) for r, place in self._two["receptacleatlocation"])
        return _lists(pairs, len(self._locations))

    def contents(self) -> tuple[tuple[int, ...], ...]:
        """The objects in each receptacle."""
        pairs = (
            (self._receptacles[r], self._objects[o]) for o, r in self._two["inreceptacle"] if r in self._receptacles
        )
        return _lists(pairs, len(self._receptacles))

    def objects_at(self) -> tuple[tuple[int, ...], ...]:
        """The objects at each location."""
        pairs = ((self._locations[place], self._objects[o]) for o, place in self._two["objectatlocation"])
        return _lists(pairs, len(self._locations))

    def nested(self) -> dict[int, tuple[int, ...]]:
        """For each object that can hold others, what lies in it."""
        pairs = ((self._objects[outer], self._objects[inner]) for inner, outer in self._two["inreceptacleobject"])
        inside = _lists(pairs, len(self._objects))
        return {o: inside[o] for o in sorted(self.objects_with("isreceptacleobject"))}


def _numbered(ids: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(set(ids)))}


def _lists(pairs: Iterable[tuple[int, int]], length: int) -> tuple[tuple[int, ...], ...]:
    lists: list[list[int]] = [[] for _ in range(length)]
    for index, value in sorted(pairs):
        lists[index].append(value)
    return tuple(tuple(values) for values in lists)


def _types(pairs: set[tuple[str, str]], numbers: dict[str, int]) -> tuple[frozenset[str], ...]:
    groups: list[set[str]] = [set() for _ in numbers]
    for name, kind in pairs:
        groups[numbers[name]].add(kind)
    return tuple(frozenset(group) for group in groups)
