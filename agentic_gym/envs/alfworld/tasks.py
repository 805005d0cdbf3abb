"""Where games come from: generated ones, files, folders, and ALFWorld's own data folder, all as a `TaskSet`.

A task names its game; the file is read (or the game generated) when an episode begins.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.game_file import GameFileError, grammar_texts, read_game_file
from agentic_gym.envs.alfworld.generator import SPLITS, GeneratedGame, draw_task, generate
from agentic_gym.envs.alfworld.goals import TASK_TYPES
from agentic_gym.envs.alfworld.planner import is_exact, plan
from agentic_gym.envs.alfworld.state import State
from agentic_gym.tasks import Task, TaskSet

__all__ = [
    "DATA_VERSION",
    "MARKER",
    "Games",
    "alfworld_tasks",
    "default_folder",
    "game_data",
    "generated_tasks",
    "load_game",
    "load_tasks",
]

Games: TypeAlias = "TaskSet | str | Path | Mapping[str, Any] | Sequence[str | Path | Mapping[str, Any]] | None"
"""What the environment takes as `games`."""

_GAME = "game.tw-pddl"
DATA_VERSION = "json_2.1.1"
"""The folder inside ALFWORLD_DATA that holds the splits."""

MARKER = "REBUILT_FROM_ALFRED"
"""The file that marks a folder of games rebuilt from ALFRED."""

_FIX = "Set ALFWORLD_DATA to the folder that holds json_2.1.1/, or pass its path; `agentic-gym data alfworld` says how to get it."


def load_tasks(games: Games, *, split: str = "train", count: int = 600, seed: int = 0) -> TaskSet:
    """Turn what a user gives into a `TaskSet`.

    Args:
        games: None (generated), a TaskSet, a game file, a folder searched for `game.tw-pddl`, the content of a game
            file, or a list of such.
        split, count, seed: for generated games only.

    Raises:
        GameFileError: a file or folder without games; the message names it and the fix.
    """
    if games is None:
        return generated_tasks(count, split=split, seed=seed)
    if isinstance(games, TaskSet):
        return games
    if isinstance(games, (str, Path, Mapping)):
        games = [games]
    sources = [source if isinstance(source, Mapping) else _expanded(source) for source in games]
    name = _set_name(source for source in sources if isinstance(source, Path))
    return TaskSet((task for source in sources for task in _tasks_of(source)), name=name)


def generated_tasks(
    count: int, *, split: str = "train", seed: int = 0, task_types: Sequence[str] = TASK_TYPES
) -> TaskSet:
    """The generated games `seed` to `seed + count - 1` of a split, cycling through the task types; levels are task types."""
    if count < 1:
        raise ValueError(f"count must be at least 1, got {count}")

    def make(i: int) -> Task:
        kind = task_types[i % len(task_types)]
        number = seed + i
        _, sentence = draw_task(number, split=split, task_type=kind)
        recipe = {"seed": number, "split": split, "task_type": kind}
        return Task(f"{split}/{kind}/{number}", sentence, None, kind, {"generated": recipe})

    return TaskSet((make(i) for i in range(count)), name="alfworld-generated", split=split)


def alfworld_tasks(path: str | Path | None = None, *, split: str = "train") -> TaskSet:
    """ALFWorld's own games, or games rebuilt from ALFRED, in the folder layout of ALFWorld.

    Args:
        path: the folder that holds `json_2.1.1/` (or that folder itself); None takes the variable ALFWORLD_DATA, or
            ~/.cache/alfworld where it is not set, as alfworld does.
        split: `train`, `valid_seen` or `valid_unseen`.

    Raises:
        GameFileError: there is no such folder, or no game in it; the message names it and the fix.
    """
    if split not in SPLITS:
        raise ValueError(f"unknown split {split!r}: choose one of {', '.join(SPLITS)}")
    given = default_folder() if path is None else str(path)
    root = _expanded(given)
    folders = [folder for folder in (root / DATA_VERSION / split, root / split) if folder.is_dir()]
    if not folders:
        source = "from ALFWORLD_DATA" if path is None and "ALFWORLD_DATA" in os.environ else "given or by default"
        raise GameFileError(f"no folder {root / DATA_VERSION / split} ({source}: {given}). {_FIX}")
    tasks = _folder_tasks(folders[0], prefix=f"{split}/")
    return TaskSet(tasks, name=_set_name([folders[0]]), split=split)


def default_folder() -> str:
    """The folder of ALFWorld's data: ALFWORLD_DATA, else ~/.cache/alfworld."""
    return os.environ.get("ALFWORLD_DATA") or "~/.cache/alfworld"


def _set_name(paths: Iterable[Path]) -> str:
    """Games that were rebuilt from ALFRED are called so in every report."""
    places = [place for path in paths for place in (path / DATA_VERSION, path, *path.parents[:4])]
    rebuilt = any((place / MARKER).exists() for place in places)
    return "alfworld (rebuilt from ALFRED)" if rebuilt else "alfworld"


def game_data(task: Task) -> Mapping[str, Any] | str:
    """The game of a task: the content of a game file, or the path of one."""
    info = task.info
    if "generated" in info:
        return _generated(task).data
    if "game" in info:
        content: Mapping[str, Any] = json.loads(info["game"])
        return content
    if "file" not in info:
        raise GameFileError(f"task {task.id!r} names no game: its info has none of 'file', 'game', 'generated'")
    return os.path.expandvars(str(info["file"]))


def _generated(task: Task) -> GeneratedGame:
    recipe = task.info["generated"]
    return generate(recipe["seed"], split=recipe["split"], task_type=recipe["task_type"])


def load_game(task: Task) -> Game:
    """The game of a task, ready for the fast engine; the last hundred games are kept in memory."""
    return _load_game(task)


@lru_cache(maxsize=100)
def _load_game(task: Task) -> Game:
    if "generated" in task.info:
        return _generated(task).game
    game = Game.load(game_data(task))
    if is_exact(game) and plan(State(game)) is None:
        raise GameFileError(
            f"{game.name}: this game cannot be won (task: {game.task}); leave it out of the list of games."
        )
    return game


def _expanded(path: str | Path) -> Path:
    return Path(os.path.expandvars(str(path))).expanduser()


def _tasks_of(source: Path | Mapping[str, Any]) -> Iterable[Task]:
    if isinstance(source, Mapping):
        name, data = read_game_file(source)
        sentence, _ = grammar_texts(name, data["grammar"])
        kind = str(data.get("task_type") or Game.load(data).goal.task_type)
        return [Task(name, sentence, None, kind, {"game": json.dumps(data, sort_keys=True)})]
    if source.is_dir():
        return _folder_tasks(source)
    name = f"{source.parent.parent.name}/{source.parent.name}" if source.name == _GAME else source.name
    return [_file_task(source, name, read_game_file(source)[1])]


def _folder_tasks(folder: Path, prefix: str = "") -> Iterator[Task]:
    """The playable games below a folder, sorted; sliced and movable ones are left out, as ALFWorld does."""
    found = False
    for path in sorted(folder.rglob(_GAME)):
        name = path.parent.relative_to(folder).as_posix()
        if "movable" in name or "Sliced" in name:
            continue
        _, data = read_game_file(path, allow_unsolvable=True)
        if data.get("solvable") is not False:
            found = True
            yield _file_task(path, prefix + name, data)
    if not found:
        raise GameFileError(f"{folder}: no playable {_GAME} in it or below. {_FIX}")


def _file_task(path: Path, name: str, data: Mapping[str, Any]) -> Task:
    sentence, _ = grammar_texts(str(path), data["grammar"])
    digest = hashlib.sha256(data["pddl_problem"].encode()).hexdigest()
    return Task(name, sentence, None, _task_type(path, data), {"file": _portable(path), "sha256": digest})


def _task_type(path: Path, data: Mapping[str, Any]) -> str:
    beside = path.parent / "traj_data.json"
    if beside.is_file():
        kind = json.loads(beside.read_text(encoding="utf-8")).get("task_type")
        if kind in TASK_TYPES:
            return str(kind)
    return Game.load({**data, "game": str(path)}).goal.task_type


def _portable(path: Path) -> str:
    """The path with ALFWORLD_DATA in front where it lies there, so that a set's hash is the same on every machine."""
    root = os.environ.get("ALFWORLD_DATA")
    if root and path.is_relative_to(root):
        return f"$ALFWORLD_DATA/{path.relative_to(root).as_posix()}"
    return str(path)
