"""Games rebuilt from ALFRED: its rooms, objects, tasks, splits and people's sentences, as ALFWorld games.

ALFRED's `traj_data.json` say where every object is, in coordinates, but not what it lies in. That is inferred here: from the plan
where it names the receptacle (the task's objects), else from the distance to the receptacles of the room. On the pick-ups of the
validation plans, where the truth is known, the inference alone is right in 92 % of the cases. So these are not ALFWorld's own
games, and results on them must be called "rebuilt from ALFRED".
"""

from __future__ import annotations

import gzip
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentic_gym.envs.alfworld.game_file import GameFileError
from agentic_gym.envs.alfworld.generator import SPLITS, GeneratedGame
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.rooms import Room, load_rooms, load_types, type_of
from agentic_gym.envs.alfworld.scene import Scene, TaskGoal
from agentic_gym.envs.alfworld.tasks import DATA_VERSION, MARKER
from agentic_gym.files import write_text

__all__ = ["Trial", "read_trials", "rebuild", "rebuild_folder"]

_ANY_SHAPE = (0.3, 0.1, 0.15)
"""For a type of receptacle from which no plan picks anything up."""

_Position = tuple[float, float, float]


class Trial(NamedTuple):
    """What is needed of one `traj_data.json`."""

    name: str
    """Folder names: `task/trial`."""
    task_type: str
    params: Mapping[str, Any]
    """`object_target`, `parent_target`, `toggle_target`, ..."""
    room: int
    start: Mapping[str, Any]
    """The agent's first position."""
    poses: list[tuple[str, _Position]]
    """Type and position (x, y, z in metres) of every movable object."""
    sentences: list[str]
    """How people put the task."""
    plan: list[Mapping[str, Any]]


def read_trials(source: str | Path, split: str) -> Iterator[Trial]:
    """Read a split of ALFRED, either its own folders or the condensed file `<split>.jsonl.gz`.

    Raises:
        GameFileError: neither is there, or a file is broken; the message names it.
    """
    root = Path(source)
    for name in (f"{split}.jsonl.gz", f"{split}.jsonl"):
        if (root / name).is_file():
            yield from _condensed(root / name)
            return
    folders = [root / part / split for part in ("", "json_2.1.0", "data/json_2.1.0") if (root / part / split).is_dir()]
    if not folders:
        raise GameFileError(
            f"{root}: neither {split}.jsonl.gz nor a folder json_2.1.0/{split}. Give the folder of ALFRED's data (a clone of "
            "the ALFRED repository has it under data/)."
        )
    for path in sorted(folders[0].rglob("traj_data.json")):
        name = path.parent.relative_to(folders[0]).as_posix()
        if "movable" not in name and "Sliced" not in name:
            yield _raw(path, name)


def rebuild(trial: Trial, split: str) -> GeneratedGame:
    """Make the game of a trial.

    Raises:
        ValueError: it cannot be played; the message says why in a few words (no such object, already done, ...).
    """
    room = load_rooms().get(trial.room)
    if room is None or trial.task_type not in TASK_TYPES:
        raise ValueError("unknown room or task type")
    target = trial.params["toggle_target"] or trial.params["parent_target"]
    goal = TaskGoal(trial.task_type, trial.params["object_target"], target)
    sentence = goal.sentence(zlib.crc32(trial.name.encode()) % 2)
    scene = Scene(room.number, goal, sentence, room.receptacles, _start(trial.start))
    _place_objects(scene, room, trial)
    return GeneratedGame.of(f"{split}/{trial.name}", scene, trial.sentences)


def rebuild_folder(source: str | Path, out: str | Path, splits: tuple[str, ...] = SPLITS) -> dict[str, Counter[str]]:
    """Rebuild whole splits into `out`/json_2.1.1, the layout of ALFWorld's data.

    Returns:
        For each split, how many trials were `rebuilt`, and how many were left out for which reason.
    """
    root = Path(out) / DATA_VERSION
    report: dict[str, Counter[str]] = {}
    for split in splits:
        counts: Counter[str] = Counter()
        for trial in read_trials(source, split):
            try:
                game = rebuild(trial, split)
            except ValueError as error:
                counts[str(error)] += 1
                continue
            game.write(root)
            counts["rebuilt"] += 1
        report[split] = counts
    write_text(
        root / MARKER,
        "These games were rebuilt from ALFRED (MIT, Copyright 2019 ALFRED). What lies in what is inferred from geometry, so they "
        "are not ALFWorld's own games. Call results on them: rebuilt from ALFRED.\n",
    )
    return report


# Where things are.


def _place_objects(scene: Scene, room: Room, trial: Trial) -> None:
    types = load_types()
    named = _named_places(room, trial)
    for kind, position in trial.poses:
        # The plan's own id may differ from the position's in the last digit.
        name = next(
            (o for o in named if type_of(o) == kind and math.dist(_position(o), position) < 0.05), _id(kind, position)
        )
        if name in scene.placed or name in scene.fixed or kind not in types.object_types:
            continue
        if kind not in types.pickupable:
            nearest = min(room.receptacles, key=lambda r: math.dist(_position(r), position))
            scene.fixed[name] = room.receptacles[nearest]
            continue
        r = named.get(name) or _likeliest(room, kind, position)
        if r is not None:
            scene.placed[name] = r
    lamps = dict(room.lamps)
    for step in trial.plan:
        if step.get("action") == "ToggleObject" and type_of(step["objectId"]) not in {type_of(lamp) for lamp in lamps}:
            stands = [r for r in room.receptacles if type_of(r) not in types.openable]
            position = _position(step["objectId"])
            lamps[step["objectId"]] = min(stands, key=lambda r: math.dist(_position(r), position))
    scene.placed.update(lamps)


def _named_places(room: Room, trial: Trial) -> dict[str, str]:
    """The objects whose receptacle the plan names: id of the object -> id of the receptacle."""
    found: dict[str, str] = {}
    for step in trial.plan:
        if step.get("action") != "PickupObject" or "coordinateReceptacleObjectId" not in step:
            continue
        kind, numbers = step["coordinateReceptacleObjectId"]
        # Coordinates come in steps of 25 cm, each twice, in the order x, z, y.
        position = (numbers[0] / 4, numbers[4] / 4, numbers[2] / 4)
        candidates = [r for r in room.receptacles if type_of(r) == kind]
        if candidates:
            found.setdefault(step["objectId"], min(candidates, key=lambda r: math.dist(_position(r), position)))
    return found


def _likeliest(room: Room, kind: str, position: _Position) -> str | None:
    """The receptacle in which an object at this position lies most likely, among those that may hold it."""
    types = load_types()
    candidates = [r for r in room.receptacles if kind in types.contains[type_of(r)]]
    return min(candidates, key=lambda r: _surprise(r, position), default=None)


def _surprise(r: str, position: _Position) -> float:
    """Minus the logarithm of the density of things in r at this position, up to a constant.

    Horizontally a normal distribution; vertically one with heavier tails, since shelves and fridges have several levels.
    """
    spread, height, height_spread = load_types().shape.get(type_of(r), _ANY_SHAPE)
    x, y, z = _position(r)
    across = ((position[0] - x) ** 2 + (position[2] - z) ** 2) / (2 * spread**2) + 2 * math.log(spread)
    up = abs(position[1] - y - height) / height_spread
    return across + min(up * up / 2, 2 * up) + math.log(height_spread)


def _position(name: str) -> _Position:
    x, y, z = (float(number) for number in name.split("|")[1:4])
    return x, y, z


def _id(kind: str, position: _Position) -> str:
    return f"{kind}|{'|'.join(f'{number:+06.2f}' for number in position)}"


def _start(action: Mapping[str, Any]) -> tuple[int, int, int, int]:
    x, z = round(action["x"] * 4), round(action["z"] * 4)
    return x, z, round(action["rotation"] / 90) % 4, round(action["horizon"])


# The two forms of the data.


def _condensed(path: Path) -> Iterator[Trial]:
    number = 0
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        try:
            for line in lines:
                number += 1
                row = json.loads(line)
                yield Trial(
                    name=row["game"],
                    task_type=row["task_type"],
                    params=row["pddl_params"],
                    room=row["scene_num"],
                    start=row["init"],
                    poses=[(kind, (x, y, z)) for kind, x, y, z in row["poses"]],
                    sentences=row["anns"],
                    plan=row["plan"],
                )
        except (ValueError, KeyError, TypeError, EOFError, zlib.error) as error:
            raise GameFileError(f"{path}: broken at line {number} ({error!r}); copy the file again.") from error


def _raw(path: Path, name: str) -> Trial:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        scene = data["scene"]
        return Trial(
            name=name,
            task_type=data["task_type"],
            params=data["pddl_params"],
            room=scene["scene_num"],
            start=scene["init_action"],
            poses=[
                (pose["objectName"].partition("_")[0], tuple(round(pose["position"][axis], 3) for axis in "xyz"))
                for pose in scene["object_poses"]
            ],
            sentences=[annotation["task_desc"] for annotation in data["turk_annotations"]["anns"]],
            plan=[step["planner_action"] for step in data["plan"]["high_pddl"]],
        )
    except (ValueError, KeyError, TypeError) as error:
        raise GameFileError(f"{path}: not a traj_data.json of ALFRED ({error!r}).") from error
