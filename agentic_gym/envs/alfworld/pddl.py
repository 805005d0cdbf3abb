"""A reader for the small part of PDDL that game files use: nested lists of lower-case words."""

import re
from typing import TypeAlias

Expression: TypeAlias = "str | list[Expression]"

_TOKEN = re.compile(r"[()]|[^\s()]+")
_COMMENT = re.compile(r";[^\n]*")


def parse(text: str) -> list[Expression]:
    """Parse one parenthesised expression; `ValueError` says where it breaks.

    >>> parse("(and (holds ?a ?o) (not (= ?o1 ?o2)))")
    ['and', ['holds', '?a', '?o'], ['not', ['=', '?o1', '?o2']]]
    """
    stack: list[list[Expression]] = [[]]
    if ";" in text:
        text = _COMMENT.sub("", text)
    for token in _TOKEN.findall(text.lower()):
        if token == "(":
            stack.append([])
        elif token == ")":
            if len(stack) == 1:
                raise ValueError("PDDL: a ')' without its '('")
            closed = stack.pop()
            stack[-1].append(closed)
        else:
            stack[-1].append(token)
    if len(stack) > 1:
        raise ValueError(f"PDDL: {len(stack) - 1} '(' not closed; the text is cut off")
    if len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise ValueError("PDDL: expected exactly one parenthesised expression")
    return stack[0][0]


def section(expression: list[Expression], name: str) -> list[Expression]:
    """The items of the section `(name ...)` of a problem; `ValueError` when it is missing."""
    for part in expression:
        if isinstance(part, list) and part and part[0] == name:
            return part[1:]
    raise ValueError(f"PDDL: the problem has no {name} section")


def atoms(items: list[Expression]) -> list[tuple[str, ...]]:
    """The flat facts among `items`, as tuples (predicate, argument, ...); negations and numbers are left out."""
    return [
        tuple(str(word) for word in item)
        for item in items
        if isinstance(item, list) and item and all(isinstance(word, str) for word in item)
    ]
