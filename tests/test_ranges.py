"""Ranges of settings: what an annotation lets through, and what the refusal says."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentic_gym.ranges import Checked, Count, Natural, NonNegative, Positive, Range, Share, check


class Shape(Protocol):
    def area(self) -> float: ...


FITTING = [
    (1, Count), (np.int64(3), Count), (0, Natural), (10**400, Natural),
    (3, float), (np.float32(0.5), Share), (0, Share), (1.0, Share), (5e-324, Positive), (0.0, NonNegative),
    (math.inf, Annotated[float, Range(above=0, infinite=True)]),
    (True, bool), (np.True_, bool), ("x", str), (None, Count | None), (2, Count | None),
    (Path("a"), Path), ("a", Path), (None, Path | None),
    ("b", Literal["a", "b"]), (1, Literal[0, 1]), (np.float64(0.1), float | Literal["auto"]), ("auto", float | Literal["auto"]),
    ((), tuple[str, ...]), (["a", "b"], tuple[str, ...]), ((0.9, 1), tuple[Share, Share]),
    ({}, dict[str, Any]), ({"a": 1}, Mapping[str, Any]), (len, Callable[[str], int]), ([1], Sequence[int]),
    (object(), Any), (object(), Shape), (Range(), Range),
]  # fmt: skip
REFUSED = [
    (0, Count, "at least 1"),
    (1.0, Count, "a whole number of at least 1"),
    (True, Count, "a whole number of at least 1"),
    ("1", Count | None, "a whole number of at least 1 or None"),
    (-1, Natural, "at least 0"),
    (0, Count | None, "at least 1"),
    (math.nan, float, "a finite number"),
    (math.inf, float, "a finite number"),
    (-math.inf, NonNegative, "a finite number of at least 0"),
    (math.inf, NonNegative, "a finite number of at least 0"),
    (False, float, "a finite number"),
    ("x", Annotated[float, Range(above=0, infinite=True)], "a number above 0"),
    (1j, float, "a finite number"),
    (0.0, Positive, "above 0"),
    (math.nan, Share, "a finite number from 0 to 1"),
    (1.5, Share, "from 0 to 1"),
    (1.0, Annotated[float, Range(least=0, below=1)], "from 0 to below 1"),
    (3.0, Annotated[float, Range(above=0, most=2)], "above 0 and at most 2"),
    (1, bool, "True or False"),
    (b"x", str, "a text"),
    ("c", Literal["a", "b"], "'a' or 'b'"),
    ("x", Literal["a"], "'a'"),
    ("c", float | Literal["a", "b"], "a finite number or 'a' or 'b'"),
    (3, Path, "a path"),
    ("ab", tuple[str, ...], "a list, each a text"),
    ([1], tuple[str, ...], "a list, each a text"),
    ((0.9,), tuple[Share, Share], "a list of 2, each a finite number from 0 to 1"),
    ([], dict[str, Any], "a dict"),
    (3, Callable[[str], int], "a function"),
    (3, Range, "Range"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "kind"), FITTING)
def test_what_fits_is_let_through(value: object, kind: Any) -> None:
    check("x", value, kind)


@pytest.mark.parametrize(("value", "kind", "wanted"), REFUSED)
def test_what_does_not_fit_is_refused_with_the_range(value: object, kind: Any, wanted: str) -> None:
    with pytest.raises(ValueError, match="alpha must be ") as error:
        check("alpha", value, kind)
    assert str(error.value) == f"alpha must be {wanted}, got {value!r}"


def test_a_huge_value_is_not_shown_whole() -> None:
    with pytest.raises(ValueError, match="must be a whole number") as error:
        check("alpha", "x" * 10_000, int)
    assert len(str(error.value)) < 300


@given(st.floats(), st.floats(allow_nan=False), st.floats(allow_nan=False))
def test_a_range_holds_what_its_bounds_say(value: float, low: float, high: float) -> None:
    finite = math.isfinite(value)
    assert (value in Range(least=low, most=high)) == (finite and low <= value <= high)
    assert (value in Range(above=low, below=high)) == (finite and low < value < high)
    assert (value in Range(infinite=True)) == (not math.isnan(value))


@dataclass(frozen=True)
class Settings(Checked):
    rate: Positive = 1e-4
    kind: Literal["a", "b"] = "a"
    tags: tuple[str, ...] = ()


def test_a_checked_dataclass_refuses_the_field_by_name() -> None:
    assert Settings(rate=2, tags=("x",)).rate == 2
    for wrong, message in (
        ({"rate": 0}, "rate must be above 0, got 0"),
        ({"rate": "fast"}, "rate must be a finite number above 0, got 'fast'"),
        ({"kind": "c"}, "kind must be 'a' or 'b', got 'c'"),
        ({"tags": "xy"}, "tags must be a list, each a text, got 'xy'"),
    ):
        with pytest.raises(ValueError, match="must be") as error:
            Settings(**wrong)  # type: ignore[arg-type]
        assert str(error.value) == message
