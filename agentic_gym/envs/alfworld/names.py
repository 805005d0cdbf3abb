"""How ALFWorld turns a PDDL id into the name a player reads.

An id is a type, then its coordinates: `Cabinet_bar__plus_00_dot_68_bar__...` is shown as `cabinet 3`. The number is not in
the id: the ids of one type, sorted, are numbered downwards, so the first id gets the highest number.
"""

from collections import Counter
from collections.abc import Iterable

_SIGNS = (("_bar_", "|"), ("_minus_", "-"), ("_plus_", "+"), ("_dot_", "."), ("_comma_", ","))


def display_names(ids: Iterable[str]) -> dict[str, str]:
    """Map every lower-case PDDL id to the name shown in observations and used in commands.

    An id without coordinates keeps its text and a trailing blank, as in the stock engine: no typed command can then
    reach it, because commands are stripped.
    """
    ordered = sorted(ids)
    left = Counter(_type_of(name) for name in ordered if "_bar_" in name)
    names = {}
    for name in ordered:
        if "_bar_" not in name:
            names[name] = f"{_readable(name)} "
            continue
        kind = _type_of(name)
        names[name] = f"{kind} {left[kind]}"
        left[kind] -= 1
    return names


def _type_of(name: str) -> str:
    kind = name.split("_bar_", 1)[0]
    return f"{kind}basin" if "basin" in name else kind


def _readable(name: str) -> str:
    for sign, text in _SIGNS:
        name = name.replace(sign, text)
    return name
