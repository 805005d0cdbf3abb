"""Settings that are refused where they come in: the annotation tells the type and the range, one place checks both.

- ``Range``: which numbers; it stands in an annotation, ``Annotated[float, Range(least=0)]``. ``Count``, ``Natural``,
  ``Positive``, ``NonNegative`` and ``Share`` are the common ones.
- ``Checked``: base of a dataclass whose fields are checked when it is made.
- ``check``: one value against an annotation.
"""

from __future__ import annotations

import collections.abc
import functools
import math
import numbers
import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, Union

import numpy as np

__all__ = ["Checked", "Count", "Natural", "NonNegative", "Port", "Positive", "Range", "Share", "check"]


@dataclass(frozen=True)
class Range:
    """Numbers within bounds; without bounds, every finite number. NaN is never one.

    >>> 0.0 in Range(above=0), 1 in Range(least=0, most=1), float("inf") in Range(least=0)
    (False, True, False)
    >>> str(Range(least=0, below=1)), str(Range(above=0))
    ('from 0 to below 1', 'above 0')
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    below: float | None = None
    infinite: bool = False
    """Whether infinity counts."""

    def __contains__(self, value: float) -> bool:
        return (
            value == value
            and (self.infinite or abs(value) != math.inf)
            and (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )

    def __str__(self) -> str:
        if self.least is not None and (self.most is not None or self.below is not None):
            return f"from {self.least:g} to {f'below {self.below:g}' if self.most is None else f'{self.most:g}'}"
        words = (("at least", self.least), ("above", self.above), ("at most", self.most), ("below", self.below))
        return " and ".join(f"{word} {bound:g}" for word, bound in words if bound is not None)


Count = Annotated[int, Range(least=1)]
Port = Annotated[int, Range(least=0, most=65_535)]
Natural = Annotated[int, Range(least=0)]
Positive = Annotated[float, Range(above=0)]
NonNegative = Annotated[float, Range(least=0)]
Share = Annotated[float, Range(least=0, most=1)]


@dataclass(frozen=True)
class Checked:
    """A dataclass of this kind refuses a value that does not fit its field: ValueError with name, range and value.

    >>> @dataclass(frozen=True)
    ... class Clip(Checked):
    ...     low: Share = 0.2
    >>> Clip(low=2)
    Traceback (most recent call last):
    ValueError: low must be from 0 to 1, got 2
    >>> Clip(low="2")
    Traceback (most recent call last):
    ValueError: low must be a finite number from 0 to 1, got '2'
    """

    def __post_init__(self) -> None:
        cls: Any = type(self)  # mypy takes the class of a dataclass for one that has no hash
        kinds = _hints(cls)
        for field in fields(self):
            check(field.name, getattr(self, field.name), kinds[field.name])


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return typing.get_type_hints(cls, include_extras=True)


def check(name: str, value: object, kind: Any) -> None:
    """Raise ValueError unless ``value`` is of the type and in the range that the annotation ``kind`` tells.

    As in annotations, a whole number is a number; numpy's scalars count as Python's, and a list as a tuple.
    """
    if not _fits(value, kind):
        raise ValueError(f"{name} must be {_missed(value, kind) or _described(kind)}, got {value!r:.200}")


def _missed(value: object, kind: Any) -> str:
    """The range that a finite number of the right type lies outside of; empty where that is not what is wrong."""
    for each in typing.get_args(kind) if typing.get_origin(kind) in (Union, types.UnionType) else (kind,):
        base, *extras = typing.get_args(each) if typing.get_origin(each) is Annotated else (each,)
        ranges = [extra for extra in extras if isinstance(extra, Range)]
        if ranges and _is_number(value, base) and value in Range():  # type: ignore[operator]
            return " and ".join(map(str, ranges))
    return ""


def _fits(value: object, kind: Any) -> bool:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        ranges = [extra for extra in arguments[1:] if isinstance(extra, Range)]
        typed = _is_number(value, arguments[0]) if ranges else _fits(value, arguments[0])
        return typed and all(value in each for each in ranges)  # type: ignore[operator]
    if origin in (Union, types.UnionType):
        return any(_fits(value, member) for member in arguments)
    if origin is Literal:
        return any(isinstance(value, type(allowed)) and value == allowed for allowed in arguments)
    if origin is tuple:
        return isinstance(value, (list, tuple)) and _all_fit(value, arguments)
    if origin is not None:
        return isinstance(value, origin)
    if kind in (int, float):
        return _is_number(value, kind) and value in Range()  # type: ignore[operator]
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    if kind is Path:
        return isinstance(value, (str, os.PathLike))
    return kind is Any or getattr(kind, "_is_protocol", False) or isinstance(value, kind)


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, numbers.Integral if kind is int else numbers.Real) and not isinstance(value, bool)


def _all_fit(values: list[Any] | tuple[Any, ...], kinds: tuple[Any, ...]) -> bool:
    if len(kinds) == 2 and kinds[1] is Ellipsis:
        return all(_fits(value, kinds[0]) for value in values)
    return len(values) == len(kinds) and all(map(_fits, values, kinds))


_NAMES: Mapping[Any, str] = {
    int: "a whole number",
    float: "a finite number",
    bool: "True or False",
    str: "a text",
    Path: "a path",
    type(None): "None",
    collections.abc.Callable: "a function",
    dict: "a dict",
}


def _described(kind: Any) -> str:
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        ranges = [extra for extra in arguments[1:] if isinstance(extra, Range)]
        base = "a number" if any(each.infinite for each in ranges) else _described(arguments[0])
        return " ".join([base, *("of " * text.startswith("at") + text for text in map(str, ranges) if text)])
    if origin in (Union, types.UnionType):
        return " or ".join(map(_described, arguments))
    if origin is Literal:
        *first, last = map(repr, arguments)
        return f"{', '.join(first)} or {last}" if first else last
    if origin is tuple:
        each = " and ".join(dict.fromkeys(_described(argument) for argument in arguments if argument is not Ellipsis))
        length = "" if Ellipsis in arguments else f" of {len(arguments)}"
        return f"a list{length}, each {each}"
    return _NAMES.get(origin or kind, getattr(origin or kind, "__name__", str(kind)))
