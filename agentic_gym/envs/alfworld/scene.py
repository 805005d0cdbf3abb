"""`Scene`: a furnished room with a task, and how it is written as a game file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentic_gym.envs.alfworld.game_file import bundled_rules
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.rooms import Spot, load_types, type_of

__all__ = ["Scene", "TaskGoal", "identifier"]

_SENTENCES: dict[str, tuple[str, str]] = {
    "pick_and_place_simple": ("put a {o} in {t}", "put some {o} on {t}"),
    "look_at_obj_in_light": ("look at {o} under the {t}", "examine the {o} with the {t}"),
    "pick_clean_then_place_in_recep": ("put a clean {o} in {t}", "clean some {o} and put it in {t}"),
    "pick_heat_then_place_in_recep": ("put a hot {o} in {t}", "heat some {o} and put it in {t}"),
    "pick_cool_then_place_in_recep": ("put a cool {o} in {t}", "cool some {o} and put it in {t}"),
    "pick_two_obj_and_place": ("put two {o} in {t}", "find two {o} and put them in {t}"),
}
_STATES = {
    "pick_clean_then_place_in_recep": "(cleanable ?o) (isClean ?o)",
    "pick_heat_then_place_in_recep": "(heatable ?o) (isHot ?o)",
    "pick_cool_then_place_in_recep": "(coolable ?o) (isCool ?o)",
}


@dataclass(frozen=True, slots=True)
class TaskGoal:
    """A task: its type (one of `TASK_TYPES`), the type of object and the type of receptacle or lamp."""

    task_type: str
    object_type: str
    target_type: str

    def __post_init__(self) -> None:
        if self.task_type not in TASK_TYPES:
            raise ValueError(f"unknown task type {self.task_type!r}: choose one of {', '.join(TASK_TYPES)}")

    def sentence(self, variant: int) -> str:
        """One of the two ways (0 or 1) in which ALFWorld states the task."""
        return _SENTENCES[self.task_type][variant].format(o=self.object_type.lower(), t=self.target_type.lower())

    def pddl(self) -> str:
        """The goal as PDDL."""
        o, t = f"{self.object_type}Type", f"{self.target_type}Type"
        if self.task_type == "look_at_obj_in_light":
            return (
                "(and (exists (?ot - object ?r - receptacle ?a - agent ?l - location)\n"
                f"  (and (objectType ?ot {t}) (toggleable ?ot) (isToggled ?ot)\n"
                "  (receptacleAtLocation ?r ?l) (atLocation ?a ?l) (inReceptacle ?ot ?r)))\n"
                f"(exists (?o - object ?a - agent) (and (objectType ?o {o}) (holds ?a ?o))))"
            )
        if self.task_type == "pick_two_obj_and_place":
            return (
                "(and (exists (?r - receptacle) (exists (?o1 - object)\n"
                f"  (and (objectType ?o1 {o}) (receptacleType ?r {t}) (inReceptacle ?o1 ?r)\n"
                f"  (exists (?o2 - object) (and (not (= ?o1 ?o2)) (objectType ?o2 {o})\n"
                f"  (receptacleType ?r {t}) (inReceptacle ?o2 ?r)))))))"
            )
        return (
            "(and (exists (?r - receptacle) (exists (?o - object)\n"
            f"  (and (inReceptacle ?o ?r) (objectType ?o {o}) (receptacleType ?r {t}) {_STATES.get(self.task_type, '')}))))"
        )


@dataclass(slots=True)
class Scene:
    """A room with everything in it, the agent's start and a task."""

    room: int
    goal: TaskGoal
    sentence: str
    receptacles: Mapping[str, Spot]
    start: Spot
    placed: dict[str, str] = field(default_factory=dict)
    """Id of an object -> id of the receptacle that it lies in."""
    fixed: dict[str, Spot] = field(default_factory=dict)
    """Id of an object that lies in no receptacle (a chair, a window) -> the spot next to it."""
    nested: list[tuple[str, str]] = field(default_factory=list)
    """Pairs (inner, outer) of objects: the inner one lies in the outer one, a bowl or a pan."""

    def problem(self) -> str:
        """The PDDL problem."""
        types = load_types()
        things = [*self.placed, *self.fixed]
        spots = sorted({*self.receptacles.values(), *self.fixed.values(), self.start})
        lines = ["(define (problem p)", "(:domain alfred)", "(:objects", "agent1 - agent"]
        lines += [f"{name}Type - otype" for name in sorted(types.object_types)]
        lines += [f"{name}Type - rtype" for name in sorted(types.contains)]
        lines += [f"{identifier(name)} - object" for name in things]
        lines += [f"{identifier(name)} - receptacle" for name in self.receptacles]
        lines += [f"{_place(spot)} - location" for spot in spots]
        lines += [")", "(:init", f"(atLocation agent1 {_place(self.start)})"]
        for name, spot in self.receptacles.items():
            r, kind = identifier(name), type_of(name)
            lines += [f"(receptacleType {r} {kind}Type)", f"(receptacleAtLocation {r} {_place(spot)})"]
            if kind in types.openable:
                lines.append(f"(openable {r})")
        here = {type_of(name) for name in things}
        for kind in sorted({type_of(name) for name in self.receptacles}):
            lines += [f"(canContain {kind}Type {name}Type)" for name in sorted(types.contains[kind] & here)]
        for name in things:
            lines += self._object_facts(name)
        lines += [f"(inReceptacleObject {identifier(a)} {identifier(b)})" for a, b in self.nested]
        lines += [")", f"(:goal {self.goal.pddl()})", ")"]
        return "\n".join(lines)

    def _object_facts(self, name: str) -> list[str]:
        types, o, kind = load_types(), identifier(name), type_of(name)
        facts = [f"(objectType {o} {kind}Type)"]
        if name in self.placed:
            r = self.placed[name]
            facts += [f"(inReceptacle {o} {identifier(r)})", f"(objectAtLocation {o} {_place(self.receptacles[r])})"]
        else:
            facts.append(f"(objectAtLocation {o} {_place(self.fixed[name])})")
        for ability in ("pickupable", "cleanable", "heatable", "coolable", "sliceable", "toggleable"):
            if kind in getattr(types, ability):
                facts.append(f"({ability} {o})")
        if kind in types.holds:
            facts.append(f"(isReceptacleObject {o})")
        return facts

    def game(self) -> dict[str, Any]:
        """The content of `game.tw-pddl`; the walkthrough is for the caller to fill in."""
        domain, grammar = bundled_rules()
        return {
            "pddl_domain": domain,
            "grammar": grammar.replace("UNKNOWN GOAL", self.sentence),
            "pddl_problem": self.problem(),
            "solvable": True,
            "walkthrough": None,
        }

    def trajectory(self, sentences: list[str] | None = None) -> dict[str, Any]:
        """The content of the `traj_data.json` that ALFWorld's loader and experts want beside a game."""
        light = self.goal.task_type == "look_at_obj_in_light"
        return {
            "task_type": self.goal.task_type,
            "pddl_params": {
                "object_target": self.goal.object_type,
                "parent_target": "" if light else self.goal.target_type,
                "toggle_target": self.goal.target_type if light else "",
                "mrecep_target": "",
                "object_sliced": False,
            },
            "scene": {"floor_plan": f"FloorPlan{self.room}", "scene_num": self.room},
            "turk_annotations": {"anns": [{"task_desc": sentence} for sentence in sentences or [self.sentence]]},
        }


def identifier(name: str) -> str:
    """An id as PDDL can hold it: `Mug|+00.84|-01.63` becomes `Mug_bar__plus_00_dot_84_bar__minus_01_dot_63`."""
    for sign, word in (("|", "_bar_"), ("-", "_minus_"), ("+", "_plus_"), (".", "_dot_"), (",", "_comma_")):
        name = name.replace(sign, word)
    return name


def _place(spot: Spot) -> str:
    return identifier("loc|" + "|".join(str(number) for number in spot))
