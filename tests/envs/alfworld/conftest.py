"""Golden recordings of the stock engine."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentic_gym.envs.alfworld.game import Game
from agentic_gym.envs.alfworld.game_file import bundled_rules

Content = dict[str, Any]


def read_lines(path: Path) -> Iterator[Content]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


@pytest.fixture(scope="session")
def alfworld_data(shared_data: Path) -> Path:
    return shared_data / "alfworld"


@pytest.fixture(scope="session")
def golden_contents(alfworld_data: Path) -> dict[str, Content]:
    """The recorded games as contents of game files, by id."""
    domain, grammar = bundled_rules()
    return {
        row["game"]: {
            "game": row["game"],
            "pddl_domain": domain,
            "grammar": grammar.replace("UNKNOWN GOAL", row["task_desc"]),
            "pddl_problem": row["pddl_problem"],
            "solvable": row["solvable"],
            "walkthrough": row["walkthrough"],
            "task_type": row["task_type"],
        }
        for row in read_lines(alfworld_data / "golden" / "games.jsonl.gz")
    }


@pytest.fixture(scope="session")
def golden_games(golden_contents: dict[str, Content]) -> dict[str, Game]:
    return {name: Game.load(content) for name, content in golden_contents.items()}


@pytest.fixture(scope="session")
def golden_episodes(alfworld_data: Path) -> list[Content]:
    """All recorded episodes."""
    folder = alfworld_data / "golden"
    return [row for name in ("traces", "extra") for row in read_lines(folder / f"{name}.jsonl.gz")]
