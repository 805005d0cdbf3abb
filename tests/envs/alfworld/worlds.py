"""Games bent out of shape, for comparing engines where ordinary games never go."""

from __future__ import annotations

import random
import re
from typing import Any

from agentic_gym.envs.alfworld.generator import SPLITS, generate


def bent(seed: int, *, twice: bool = False) -> dict[str, Any]:
    """A generated game with an unusual beginning.

    Receptacles may be open, things hot, cold, clean, sliced or turned on, the agent at a receptacle, two locations one, a lamp
    portable; with `twice` an object may also lie in two receptacles at once.
    """
    rng = random.Random(seed)
    content = dict(generate(seed, split=rng.choice(SPLITS)).data)
    head, goal = content["pddl_problem"].split("(:goal", 1)
    places = re.findall(r"\(receptacleAtLocation (\S+) (\S+)\)", head)
    objects = re.findall(r"\(objectType (\S+) ", head)
    extra = [f"(opened {r})" for r in re.findall(r"\(openable (\S+)\)", head) if rng.random() < 0.3]
    states = ("isClean", "isHot", "isCool", "isSliced", "isToggled")
    extra += [f"({state} {o})" for o in objects for state in states if rng.random() < 0.08]
    extra += [f"(inReceptacleObject {rng.choice(objects)} {rng.choice(objects)})"]
    if rng.random() < 0.4:
        head = re.sub(r"\(atLocation agent1 \S+\)", f"(atLocation agent1 {rng.choice(places)[1]})", head)
    if twice:
        o, _ = rng.choice(re.findall(r"\(inReceptacle (\S+) (\S+)\)", head))
        extra += [f"(inReceptacle {o} {rng.choice(places)[0]})", f"(objectAtLocation {o} {rng.choice(places)[1]})"]
        thing = rng.choice(objects)
        extra += [f"(pickupable {thing})", f"(toggleable {thing})"]
    if rng.random() < 0.5:
        head = _merged(head, rng.choice(places)[1], rng.choice(places)[1])
    end = head.rindex(")")
    content["pddl_problem"] = head[:end] + "\n".join(extra) + ")\n(:goal" + goal
    return content


def _merged(head: str, first: str, second: str) -> str:
    objects, facts = head.split("(:init", 1)
    return f"{objects}(:init{facts.replace(first + ')', second + ')')}"
