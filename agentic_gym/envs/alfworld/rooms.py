"""The 120 rooms of AI2-THOR and the table of what fits where: what scenes are made of.

Rooms 1-30 are kitchens, 201-230 living rooms, 301-330 bedrooms, 401-430 bathrooms. `data/README.md` says where the
data comes from.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

__all__ = ["UNSEEN_ROOMS", "Room", "Types", "load_rooms", "load_types", "type_of"]

UNSEEN_ROOMS = frozenset({9, 10, 29, 215, 219, 226, 308, 315, 325, 404, 424, 425})
"""The rooms that ALFRED keeps out of training; so do we."""

Spot = tuple[int, int, int, int]
"""Where the agent stands: x and z in steps of 25 cm, heading in quarter turns, tilt in degrees."""


@dataclass(frozen=True, slots=True)
class Room:
    """One room without its movable things."""

    number: int
    receptacles: Mapping[str, Spot]
    """Id -> the spot from which it is used; several ids may have one spot."""
    lamps: Mapping[str, str]
    """Id of a lamp -> id of the receptacle that it stands on."""
    objects: tuple[str, ...]
    """The types of objects that occur in the room."""

    @property
    def kind(self) -> str:
        """kitchen, living room, bedroom or bathroom."""
        return {0: "kitchen", 2: "living room", 3: "bedroom", 4: "bathroom"}[self.number // 100]


@dataclass(frozen=True, slots=True)
class Types:
    """What the types of things can do. All names as in ALFRED: `CounterTop`, `Mug`."""

    contains: Mapping[str, frozenset[str]]
    """Type of receptacle -> types of objects that may be put there."""
    holds: Mapping[str, frozenset[str]]
    """Type of movable receptacle (bowl, pan) -> types of objects that may lie in it."""
    pickupable: frozenset[str]
    openable: frozenset[str]
    cleanable: frozenset[str]
    heatable: frozenset[str]
    coolable: frozenset[str]
    sliceable: frozenset[str]
    toggleable: frozenset[str]
    shape: Mapping[str, tuple[float, float, float]]
    """Where things lie in a receptacle of a type, in metres from its own position: their horizontal spread, the middle of their
    height, and the spread of that; measured on the 5,486 pick-ups of ALFRED's training plans. Some types have no entry."""
    object_types: frozenset[str]
    """All types of objects, whether they can be picked up or not."""


def type_of(name: str) -> str:
    """The type in an id: `Mug|+00.1|+00.9|-01.2` is a Mug, `Sink|...|SinkBasin` a SinkBasin."""
    return name.rpartition("|")[2] if name.endswith("Basin") else name.partition("|")[0]


@lru_cache(maxsize=1)
def load_types() -> Types:
    """Read the table of types."""
    path = resources.files("agentic_gym.envs.alfworld") / "data" / "types.json"
    table = json.loads(path.read_text(encoding="utf-8"))
    fields: dict[str, Any] = {
        name: frozenset(value) if isinstance(value, list) else {key: frozenset(v) for key, v in value.items()}
        for name, value in table.items()
        if name != "shape"
    }
    fields["shape"] = {key: tuple(value) for key, value in table["shape"].items()}
    return Types(**fields)


@lru_cache(maxsize=1)
def load_rooms() -> Mapping[int, Room]:
    """Read all rooms, by number."""
    path = resources.files("agentic_gym.envs.alfworld") / "data" / "rooms.json.gz"
    rooms = json.loads(gzip.decompress(path.read_bytes()))
    return {
        int(number): Room(
            number=int(number),
            receptacles={name: tuple(spot) for name, spot in room["receptacles"].items()},
            lamps=room["lamps"],
            objects=tuple(room["objects"]),
        )
        for number, room in rooms.items()
    }
