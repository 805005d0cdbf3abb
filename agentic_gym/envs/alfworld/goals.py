"""The six tasks of ALFWorld, recognised in a game's PDDL goal.

A goal is a nest of `exists` and `and` over a handful of facts. It is read once into a `Goal`, so that an engine can check
it with a few look-ups instead of searching for a binding of the quantified variables after every step.
"""

from dataclasses import dataclass

from agentic_gym.envs.alfworld.pddl import Expression

__all__ = ["STATES", "TASK_TYPES", "Goal", "GoalError", "parse_goal"]

TASK_TYPES: tuple[str, ...] = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
"""The names of the task types, in ALFWorld's order (type 1 to 6)."""

STATES: dict[str, tuple[str, str]] = {
    "isclean": ("cleanable", "pick_clean_then_place_in_recep"),
    "ishot": ("heatable", "pick_heat_then_place_in_recep"),
    "iscool": ("coolable", "pick_cool_then_place_in_recep"),
}
"""What a goal may ask of an object: state -> (the property that the object needs for it, task type)."""


class GoalError(ValueError):
    """The goal is none of the six kinds of ALFWorld."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What has to be true at the end. Type names are lower-case PDDL types, such as `mugtype`."""

    task_type: str
    """One of `TASK_TYPES`."""
    object_type: str
    """The type of the object to be placed, or to be held under the lamp."""
    target_type: str
    """The type of the receptacle, or of the lamp."""
    state: str | None = None
    """`isclean`, `ishot` or `iscool` where the object has to be in that state."""

    @property
    def count(self) -> int:
        """How many objects have to lie in one receptacle."""
        return 2 if self.task_type == "pick_two_obj_and_place" else 1

    @property
    def light(self) -> bool:
        """Whether the task is to hold the object where a lamp was turned on."""
        return self.task_type == "look_at_obj_in_light"


def parse_goal(expression: list[Expression]) -> Goal:
    """Read the items of `(:goal ...)`. Raises `GoalError` for a goal of any other kind."""
    facts: list[tuple[str, ...]] = []
    _flatten(expression, facts)
    predicates = {fact[0] for fact in facts}
    object_types = {fact[2] for fact in facts if fact[0] == "objecttype"}
    if "holds" in predicates:
        return _light_goal(facts, predicates)
    receptacle_types = {fact[2] for fact in facts if fact[0] == "receptacletype"}
    states = predicates & set(STATES)
    placed = {fact[1] for fact in facts if fact[0] == "inreceptacle"}
    known = {"inreceptacle", "objecttype", "receptacletype", "different", *states, *(STATES[s][0] for s in states)}
    if len(object_types) != 1 or len(receptacle_types) != 1 or len(states) > 1 or predicates - known:
        raise _unknown(facts)
    if len(placed) == 2 and "different" in predicates and not states:
        return Goal("pick_two_obj_and_place", object_types.pop(), receptacle_types.pop())
    if len(placed) != 1 or "different" in predicates:
        raise _unknown(facts)
    state = states.pop() if states else None
    task_type = STATES[state][1] if state else "pick_and_place_simple"
    return Goal(task_type, object_types.pop(), receptacle_types.pop(), state)


def _light_goal(facts: list[tuple[str, ...]], predicates: set[str]) -> Goal:
    types = {fact[1]: fact[2] for fact in facts if fact[0] == "objecttype"}
    held = [fact[2] for fact in facts if fact[0] == "holds"]
    lamps = [fact[1] for fact in facts if fact[0] == "istoggled"]
    lamp_facts = {
        "objecttype",
        "toggleable",
        "istoggled",
        "receptacleatlocation",
        "atlocation",
        "inreceptacle",
        "holds",
    }
    if predicates != lamp_facts or len(held) != 1 or len(lamps) != 1 or {held[0], lamps[0]} != set(types):
        raise _unknown(facts)
    return Goal("look_at_obj_in_light", types[held[0]], types[lamps[0]])


def _flatten(items: list[Expression], facts: list[tuple[str, ...]]) -> None:
    for item in items:
        if not isinstance(item, list) or not item:
            raise GoalError(f"a goal is made of parenthesised facts, found {item!r}")
        head = item[0]
        if head == "and":
            _flatten(item[1:], facts)
        elif head == "exists" and len(item) == 3:
            _flatten([item[2]], facts)
        elif head == "not" and len(item) == 2 and isinstance(item[1], list) and item[1][:1] == ["="]:
            facts.append(("different", *(str(word) for word in item[1][1:])))
        elif all(isinstance(word, str) for word in item):
            facts.append(tuple(str(word) for word in item))
        else:
            raise GoalError(f"'{head}' is not part of any goal of ALFWorld")


def _unknown(facts: list[tuple[str, ...]]) -> GoalError:
    return GoalError(f"the goal is none of ALFWorld's six kinds: {' '.join('(' + ' '.join(f) + ')' for f in facts)}")
