"""Games without a download: tasks drawn in the real rooms of AI2-THOR.

A game is a function of (split, seed) alone. The splits follow ALFWorld: `train` and `valid_seen` share the rooms but no task
(a task is a room, a task type, an object and a target), `valid_unseen` has rooms of its own.
"""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from agentic_gym.envs.alfworld.commands import CommandTable
from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.planner import plan
from agentic_gym.envs.alfworld.rooms import UNSEEN_ROOMS, Room, load_rooms, load_types, type_of
from agentic_gym.envs.alfworld.scene import Scene, TaskGoal
from agentic_gym.envs.alfworld.state import State
from agentic_gym.files import write_text

__all__ = ["SPLITS", "GeneratedGame", "draw_task", "generate", "write_games"]

SPLITS = ("train", "valid_seen", "valid_unseen")

_TREATMENTS = {
    "pick_clean_then_place_in_recep": ("cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("coolable", "Fridge"),
}
_COUNTS = (0, 0, 1, 1, 1, 2, 2, 3)
"""How many things of a type are in a room: drawn from this list."""
_LAMP_STANDS = ("Desk", "SideTable", "Dresser", "CoffeeTable", "DiningTable", "Shelf", "Bed", "Sofa")


@dataclass(frozen=True, slots=True)
class GeneratedGame:
    """A game in the two parts that ALFWorld stores in one folder."""

    name: str
    data: dict[str, Any]
    """The content of `game.tw-pddl`."""
    trajectory: dict[str, Any]
    """The content of `traj_data.json`."""
    game: Game = field(compare=False, repr=False)
    """The same game, ready to be played."""

    @classmethod
    def of(cls, name: str, scene: Scene, sentences: list[str] | None = None) -> GeneratedGame:
        """The game of a scene, with a shortest plan as its walkthrough.

        Args:
            name: the folder.
            scene: the room and the task.
            sentences: how people put the task; None takes the task's own sentence.

        Raises:
            ValueError: the game cannot be won, or is won from the start.
        """
        data = scene.game()
        game = Game.load({**data, "game": name})
        actions = plan(State(game))
        if actions is None:
            raise ValueError("a thing that the task needs is missing")
        if not actions:
            raise ValueError("already done at the start")
        commands = CommandTable(game)
        data["walkthrough"] = [commands.text(*action) for action in actions]
        game = replace(game, walkthrough=tuple(data["walkthrough"]))
        return cls(name, data, scene.trajectory(sentences), game)

    def write(self, folder: str | Path) -> Path:
        """Write both files into `folder`/`name` and return the path of the game file."""
        target = Path(folder) / self.name
        write_text(target / "traj_data.json", json.dumps(self.trajectory, indent=1))
        path = target / "game.tw-pddl"
        write_text(path, json.dumps(self.data))
        return path


def generate(seed: int, *, split: str = "train", task_type: str | None = None) -> GeneratedGame:
    """Make the game number `seed` of a split.

    Args:
        seed: any integer; neighbouring seeds are as different as distant ones.
        split: `train`, `valid_seen` or `valid_unseen`.
        task_type: one of `TASK_TYPES`; None draws one.

    Example:
        >>> game = generate(7, split="valid_unseen")
        >>> game == generate(7, split="valid_unseen"), game.data["solvable"]
        (True, True)
    """
    rng, room, goal, sentence = _draw(seed, split, task_type)
    name = f"{goal.task_type}-{goal.object_type}-None-{goal.target_type}-{room.number}/trial_G{seed:08d}"
    return GeneratedGame.of(f"{split}/{name}", _furnish(rng, room, goal, sentence))


def draw_task(seed: int, *, split: str = "train", task_type: str | None = None) -> tuple[TaskGoal, str]:
    """The goal and the sentence of the game that `generate` makes; much quicker than making the game."""
    _, _, goal, sentence = _draw(seed, split, task_type)
    return goal, sentence


def write_games(
    folder: str | Path, count: int, *, split: str = "train", seed: int = 0, task_types: Sequence[str] = TASK_TYPES
) -> Iterator[Path]:
    """Write the games `seed` to `seed + count - 1`, cycling through the task types; yields the game files."""
    for i in range(count):
        yield generate(seed + i, split=split, task_type=task_types[i % len(task_types)]).write(folder)


# Which task.


def _draw(seed: int, split: str, task_type: str | None) -> tuple[random.Random, Room, TaskGoal, str]:
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    if task_type is not None and task_type not in TASK_TYPES:
        raise ValueError(f"unknown task type {task_type!r}: choose one of {', '.join(TASK_TYPES)}")
    rng = random.Random(f"alfworld/{split}/{seed}")
    task_type = task_type or rng.choice(TASK_TYPES)
    number, goals = rng.choice(_tasks(split, task_type))
    goal = rng.choice(goals)
    return rng, load_rooms()[number], goal, goal.sentence(rng.randrange(2))


@cache
def _tasks(split: str, task_type: str) -> tuple[tuple[int, tuple[TaskGoal, ...]], ...]:
    """The rooms of a split in which a task type is possible, each with its goals."""
    found = []
    for number, room in sorted(load_rooms().items()):
        if (number in UNSEEN_ROOMS) != (split == "valid_unseen"):
            continue
        goals = tuple(
            goal
            for goal in _goals(room, task_type)
            if split == "valid_unseen" or _is_kept_back(number, goal) == (split == "valid_seen")
        )
        if goals:
            found.append((number, goals))
    return tuple(found)


def _is_kept_back(number: int, goal: TaskGoal) -> bool:
    """Whether a task of a known room belongs to valid_seen: one in eight does."""
    return zlib.crc32(f"{number}/{goal.task_type}/{goal.object_type}/{goal.target_type}".encode()) % 8 == 0


def _goals(room: Room, task_type: str) -> Iterator[TaskGoal]:
    types = load_types()
    stands = {type_of(name) for name in room.receptacles}
    objects = [kind for kind in room.objects if kind in types.pickupable]
    if task_type == "look_at_obj_in_light":
        if room.kind not in ("living room", "bedroom"):
            return
        lamps = sorted({type_of(lamp) for lamp in _lamps(room)})
        for kind in objects:
            if any(kind in types.contains[stand] for stand in stands):
                for lamp in lamps:
                    yield TaskGoal(task_type, kind, lamp)
        return
    ability, tool = _TREATMENTS.get(task_type, ("pickupable", ""))
    if tool and tool not in stands:
        return
    for kind in objects:
        homes = {stand for stand in stands if kind in types.contains[stand]}
        if kind not in getattr(types, ability) or not homes:
            continue
        for target in sorted(homes - {tool}):
            if homes != {target} or tool:
                yield TaskGoal(task_type, kind, target)


# The room's things.


def _furnish(rng: random.Random, room: Room, goal: TaskGoal, sentence: str) -> Scene:
    types = load_types()
    scene = Scene(room.number, goal, sentence, room.receptacles, _start(rng, room))
    ids: set[str] = set()
    scene.placed.update(_lamps(room))
    needed = 2 if goal.task_type == "pick_two_obj_and_place" else 1
    for kind in room.objects:
        if kind in types.pickupable:
            count = rng.choice(_COUNTS)
            if kind == goal.object_type:
                count = max(count, needed)
            homes = _homes(room, kind)
            if kind == goal.object_type and goal.task_type in ("pick_and_place_simple", "pick_two_obj_and_place"):
                homes.pop(goal.target_type, None)
            for _ in range(count if homes else 0):
                r = rng.choice(homes[rng.choice(sorted(homes))])
                scene.placed[_new_id(rng, kind, r, ids)] = r
        elif kind not in types.toggleable and rng.random() < 0.4:
            near = rng.choice(sorted(room.receptacles))
            scene.fixed[_new_id(rng, kind, near, ids)] = room.receptacles[near]
    if rng.random() < 0.5:
        _nest(rng, scene)
    return scene


def _homes(room: Room, kind: str) -> dict[str, list[str]]:
    """The receptacles that may hold a type of object, by their own type."""
    contains = load_types().contains
    homes: dict[str, list[str]] = {}
    for name in room.receptacles:
        if kind in contains[type_of(name)]:
            homes.setdefault(type_of(name), []).append(name)
    return homes


def _lamps(room: Room) -> dict[str, str]:
    """The room's lamps; where their place is not known, one of each kind stands on the first table."""
    if room.lamps:
        return dict(room.lamps)
    kinds = sorted(load_types().toggleable & set(room.objects))
    stands = [name for stand in _LAMP_STANDS for name in sorted(room.receptacles) if type_of(name) == stand]
    if not stands:
        return {}
    return {f"{kind}|{'|'.join(stands[0].split('|')[1:4])}": stands[0] for kind in kinds}


def _new_id(rng: random.Random, kind: str, near: str, ids: set[str]) -> str:
    x, y, z = (float(number) for number in near.split("|")[1:4])
    while True:
        spot = (x + rng.uniform(-0.4, 0.4), y + rng.uniform(0.0, 0.1), z + rng.uniform(-0.4, 0.4))
        name = f"{kind}|{'|'.join(f'{number:+06.2f}' for number in spot)}"
        if name not in ids:
            ids.add(name)
            return name


def _nest(rng: random.Random, scene: Scene) -> None:
    """Let one object lie in a bowl, a pan or the like that stands in the same receptacle."""
    holds = load_types().holds
    pairs = [
        (inner, outer)
        for outer, r in scene.placed.items()
        for inner, other in scene.placed.items()
        if r == other and inner != outer and type_of(inner) in holds.get(type_of(outer), ())
    ]
    if pairs:
        scene.nested.append(rng.choice(pairs))


def _start(rng: random.Random, room: Room) -> tuple[int, int, int, int]:
    """A spot at which no receptacle is used."""
    taken = set(room.receptacles.values())
    while True:
        x, z = rng.randint(-12, 12), rng.randint(-12, 12)
        spot = (x, z, rng.randrange(4), 30)
        if spot not in taken:
            return spot
